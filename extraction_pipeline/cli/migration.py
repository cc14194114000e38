"""What `extraction-pipeline migrate` does."""

import click

from extraction_pipeline.cli.environment import read_settings
from extraction_pipeline.installation.dagster_tables import make_dagster_tables
from extraction_pipeline.installation.stack import database
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.ledger.migrate import current_version


def migrate_ledger() -> None:
    """Bring the ledger's tables to this version, and say which it is; make Dagster's."""
    with database(read_settings()) as settings:
        assert settings.database_url is not None
        url = settings.database_url.get_secret_value()
        make_dagster_tables(url)
        engine = open_engine(url)
        with engine.connect() as connection:
            click.echo(f"The ledger's tables are at version {current_version(connection)}.")
        engine.dispose()
