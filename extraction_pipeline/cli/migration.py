"""What `extraction-pipeline migrate` does."""

import click

from extraction_pipeline.cli.environment import read_settings
from extraction_pipeline.installation.stack import database
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.ledger.migrate import current_version


def migrate_ledger() -> None:
    """Bring the tables to this version, and say which it is."""
    with database(read_settings()) as settings:
        assert settings.database_url is not None
        engine = open_engine(settings.database_url.get_secret_value())
        with engine.connect() as connection:
            click.echo(f"The ledger's tables are at version {current_version(connection)}.")
        engine.dispose()
