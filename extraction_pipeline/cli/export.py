"""`extraction-pipeline export`."""

from pathlib import Path

import click

from extraction_pipeline.cli.signals import importing
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.reports.export_format import ExportFormat


@click.command()
@click.option("--collection", required=True, metavar="NAME", help="The collection to export.")
@click.option("--extraction-version", "version", metavar="NAME", help="Default: the active one.")
@click.option(
    "--format",
    "form",
    type=click.Choice([form.value for form in ExportFormat]),
    help="Default: by the ending of the file.",
)
@click.option(
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write: .parquet, .csv or .jsonl.",
)
def export(collection: str, version: str | None, form: str | None, output: Path) -> None:
    """Write a collection's published records, with where each came from, to a file.

    The file holds what was extracted from the documents: keep it as you keep them. Only you can
    read it, and it replaces one of the same name. In CSV, null is \\N and an empty cell is an empty
    text.

    \b
    Example:
      extraction-pipeline export --collection payer_notes --output payer_notes.parquet
    """
    chosen = _format(form, output)
    if not output.absolute().parent.is_dir():
        raise ConfigurationError(
            f"The folder of {output} does not exist.", remedy="Make it, or name another file."
        )
    with importing():
        from extraction_pipeline.cli.exporting import export_collection
    export_collection(collection, version, chosen, output)


def _format(form: str | None, output: Path) -> ExportFormat:
    try:
        return ExportFormat(form or output.suffix.removeprefix(".").lower())
    except ValueError:
        raise ConfigurationError(
            f"The ending of {output} names no format.",
            remedy="Use .parquet, .csv or .jsonl, or say --format.",
        ) from None
