"""Bring the ledger's tables to the version of this code."""

from importlib.resources import files

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from extraction_pipeline.errors import LedgerError
from extraction_pipeline.ledger.tables import SCHEMA

MIGRATION_LOCK = 0x6578706D


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(files(__package__) / "migrations"))
    config.set_main_option("path_separator", "os")
    return config


def migrate(engine: Engine) -> tuple[str | None, str]:
    """Upgrade to the newest version; returns the versions before and after. Safe to run twice,
    and by two processes at once: the second waits, then finds nothing to do. Raises `LedgerError`
    where a later release has made the tables."""
    config = _config()
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
        connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        before = current_version(connection)
        _require_known(ScriptDirectory.from_config(config), before)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        after = current_version(connection)
    return before, after or ""


def current_version(connection: Connection) -> str | None:
    """The version that the tables have, `None` for no tables."""
    context = MigrationContext.configure(
        connection,
        opts={"version_table": "alembic_version", "version_table_schema": SCHEMA},
    )
    return context.get_current_revision()


def require_current(engine: Engine) -> None:
    """Raise `LedgerError` unless the tables have the version of this code."""
    known = ScriptDirectory.from_config(_config())
    newest = known.get_current_head()
    with engine.connect() as connection:
        found = current_version(connection)
    _require_known(known, found)
    if found != newest:
        raise LedgerError(
            f"The ledger's tables are at version {found or 'none'}, this code needs {newest}.",
            remedy="Run: extraction-pipeline migrate",
        )


def _require_known(known: ScriptDirectory, found: str | None) -> None:
    if found is not None and found not in {one.revision for one in known.walk_revisions()}:
        raise LedgerError(
            f"The ledger's tables are at version {found}, which this code does not know: a later "
            "release has migrated them.",
            remedy="Run that release, or a later one.",
        )
