"""`extraction-pipeline status`."""

import click

from extraction_pipeline.cli.signals import importing


@click.command()
@click.option("--collection", "only", metavar="NAME", help="Just this collection.")
@click.option(
    "--extraction-version",
    "version",
    metavar="NAME",
    help="Just this version. Default: the active one and all that were ever used.",
)
@click.option(
    "--documents",
    is_flag=True,
    help="List documents that are not published at the active version, or at the one named, and "
    "what to do about them.",
)
@click.option(
    "--document",
    metavar="HASH",
    help="The whole history of one document, by its hash or the first 8 or more characters of it: "
    "sources, attempts with kinds and reasons, answers, records, costs, decisions.",
)
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="Lines a list."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of tables.")
def status(
    only: str | None,
    version: str | None,
    documents: bool,
    document: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show how far every collection is, what is open at providers, and what needs a person.

    \b
    Example:
      extraction-pipeline status --collection payer_notes --documents
      extraction-pipeline status --document 9f86d081
    """
    if document is not None:
        with importing():
            from extraction_pipeline.cli.document_history import show_history
        show_history(document, only, as_json=as_json)
        return
    with importing():
        from extraction_pipeline.cli.standing import show_status
    show_status(only, version, documents=documents, limit=limit, as_json=as_json)
