"""`extraction-pipeline export`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from sqlalchemy import Connection

from extraction_pipeline.cli.environment import read_settings
from extraction_pipeline.cli.output import counted
from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.installation.stack import database
from extraction_pipeline.ledger.published import published_rows
from extraction_pipeline.ledger.versions import find_version
from extraction_pipeline.lifecycle.opening import open_pipeline
from extraction_pipeline.lifecycle.recipes import recipe_of
from extraction_pipeline.reports.export import Export, ExportFormat, write_export


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
    with database(read_settings()) as settings:
        pipeline = open_pipeline(settings)
        declared = pipeline.collection(collection)
        name = version or declared.active_version
        with pipeline.engine.connect() as connection:
            written = write_export(
                Export(_schema(connection, declared, name), with_paths=declared.show_paths),
                published_rows(connection, declared.name, name),
                output,
                chosen,
            )
    click.echo(f"{counted(written, 'record')} of {declared.name} at {name} in {output}.")


def _schema(connection: Connection, collection: Collection, version: str) -> Mapping[str, Any]:
    """The schema that the version was asked with, or would be. Raises `CollectionError`."""
    used = find_version(connection, collection.name, version)
    if used is not None:
        schema: Mapping[str, Any] = used.recipe["json_schema"]
        return schema
    return recipe_of(collection, collection.version(version)).json_schema


def _format(form: str | None, output: Path) -> ExportFormat:
    try:
        return ExportFormat(form or output.suffix.removeprefix(".").lower())
    except ValueError:
        raise ConfigurationError(
            f"The ending of {output} names no format.",
            remedy="Use .parquet, .csv or .jsonl, or say --format.",
        ) from None
