"""`extraction-pipeline migrate`."""

import click

from extraction_pipeline.cli.signals import importing


@click.command()
def migrate() -> None:
    """Bring the ledger's tables to the version of this code, and make Dagster's. Safe to repeat.

    \b
    Example:
      EXTRACTION_DATABASE_URL=postgresql://user@host/name extraction-pipeline migrate
    """
    with importing():
        from extraction_pipeline.cli.migration import migrate_ledger
    migrate_ledger()
