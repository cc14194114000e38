"""Dagster's tables in the one PostgreSQL: made under a lock, and anew where a start was killed.

Dagster makes them statement by statement, and at each later start looks for one of them alone. A
start that was killed, or ran out of disk, would leave a database that no command works with again.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from importlib.resources import files

from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from dagster._core.storage.event_log import SqlEventLogStorageMetadata
from dagster._core.storage.event_log.migration import (
    ASSET_DATA_MIGRATIONS,
    EVENT_LOG_DATA_MIGRATIONS,
)
from dagster._core.storage.runs import RunStorageSqlMetadata
from dagster._core.storage.runs.migration import OPTIONAL_DATA_MIGRATIONS, REQUIRED_DATA_MIGRATIONS
from dagster._core.storage.schedules import ScheduleStorageSqlMetadata
from dagster._core.storage.schedules.migration import (
    OPTIONAL_SCHEDULE_DATA_MIGRATIONS,
    REQUIRED_SCHEDULE_DATA_MIGRATIONS,
)
from dagster._core.storage.sql import ALEMBIC_SCRIPTS_LOCATION
from dagster_postgres import DagsterPostgresStorage
from dagster_postgres.utils import DagsterPostgresException
from sqlalchemy import Column, Connection, Inspector, MetaData, String, Table, inspect, select, text
from sqlalchemy.exc import DBAPIError

from extraction_pipeline.errors import LedgerError
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.ledger.lost_database import lost_database
from extraction_pipeline.ledger.tables import SCHEMA

DAGSTER_LOCK = 0x65787064

_STAMP = Table("alembic_version", MetaData(), Column("version_num", String(32)))
_TABLES: Mapping[str, Table] = {
    table.name: table
    for metadata in (RunStorageSqlMetadata, SqlEventLogStorageMetadata, ScheduleStorageSqlMetadata)
    for table in metadata.sorted_tables
}
_MARKERS = _TABLES["secondary_indexes"]
_MIGRATIONS: tuple[Mapping[str, Callable[..., object]], ...] = (
    REQUIRED_DATA_MIGRATIONS,
    OPTIONAL_DATA_MIGRATIONS,
    EVENT_LOG_DATA_MIGRATIONS,
    ASSET_DATA_MIGRATIONS,
    REQUIRED_SCHEDULE_DATA_MIGRATIONS,
    OPTIONAL_SCHEDULE_DATA_MIGRATIONS,
)
_MARKED = frozenset(name for migrations in _MIGRATIONS for name in migrations)
"""What a storage marks as done once it has made its tables: the last of its statements."""

_OF_NO_WORK = frozenset({_MARKERS.name, "instance_info", "daemon_heartbeats", "snapshots", "kvs"})
"""Tables with rows that are worth nothing without those of the others."""


class Standing(Enum):
    """How a database stands as to Dagster's tables."""

    COMPLETE = "complete"
    NONE = "none"
    HALF_MADE = "half made"
    """Some of them are there, and nothing is in them."""
    IN_USE = "in use"
    """Some are lacking, and others have contents or are not of this Dagster."""


def make_dagster_tables(url: str) -> None:
    """Make Dagster's tables where there are none, or where a start was killed while it made them.

    Nothing is done where something is in them. Safe to repeat, and by two processes at once: the
    second waits, then finds nothing to do. Raises `LedgerError`.
    """
    engine = open_engine(url)
    try:
        with engine.begin() as lock:
            lock.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": DAGSTER_LOCK})
            with engine.begin() as connection:
                _require_own_schema(connection)
                standing = dagster_standing(connection)
                if standing is Standing.HALF_MADE:
                    _drop(connection)
            if standing is Standing.IN_USE:
                raise LedgerError(
                    "Dagster's tables are not complete, or of another version, and are in use; "
                    "nothing was changed.",
                    remedy="Run: dagster instance migrate. If that does not help, restore the "
                    "database, or name one of its own in EXTRACTION_DATABASE_URL.",
                )
            if standing is not Standing.COMPLETE:
                _make(url)
    finally:
        engine.dispose()


def _require_own_schema(connection: Connection) -> None:
    """Raise `LedgerError` where Dagster's tables would lie among the ledger's, and the versions of
    both in one table."""
    schema, role, name = connection.execute(
        text("SELECT current_schema(), quote_ident(current_user), quote_ident(current_database())")
    ).one()
    if schema == SCHEMA:
        raise LedgerError(
            f"This role makes its tables in the schema {SCHEMA}, as one of that name does by "
            "default; that schema is the ledger's, and Dagster's tables cannot be there.",
            remedy="Use a role of another name, or let it look elsewhere: "
            f"ALTER ROLE {role} IN DATABASE {name} SET search_path = public",
        )


def dagster_standing(connection: Connection) -> Standing:
    """Whether Dagster's tables are there, with the stamp of their version, as Dagster leaves them
    once it has made all of them."""
    inspector = inspect(connection)
    names = set(inspector.get_table_names())
    present = _TABLES.keys() & names
    stamp = None
    if _STAMP.name in names:
        stamp = connection.execute(select(_STAMP.c.version_num)).scalars().first()
    if not present and stamp is None:
        return Standing.HALF_MADE if _STAMP.name in names else Standing.NONE
    whole = present == _TABLES.keys() and stamp is not None
    marked = set()
    if _MARKERS.name in present and _has_its_columns(inspector, _MARKERS):
        marked = set(connection.execute(select(_MARKERS.c.name)).scalars())
    if whole and marked >= _MARKED:
        return Standing.COMPLETE
    if not _of_this_dagster(inspector, present, stamp):
        return Standing.IN_USE
    if any(_has_rows(connection, _TABLES[name]) for name in present - _OF_NO_WORK):
        # Without a mark Dagster only reads by a slower way: that is no reason to refuse work.
        return Standing.COMPLETE if whole else Standing.IN_USE
    return Standing.HALF_MADE


def _of_this_dagster(inspector: Inspector, present: set[str], stamp: str | None) -> bool:
    """Whether no other program, and no other version, can have made what is there."""
    if stamp is not None:
        package, _, folder = ALEMBIC_SCRIPTS_LOCATION.partition(":")
        try:
            ScriptDirectory(str(files(package) / folder)).get_revision(stamp)
        except CommandError:
            return False
    return all(_has_its_columns(inspector, _TABLES[name]) for name in present)


def _has_its_columns(inspector: Inspector, table: Table) -> bool:
    return {column["name"] for column in inspector.get_columns(table.name)} == {*table.c.keys()}


def _has_rows(connection: Connection, table: Table) -> bool:
    return connection.execute(select(text("1")).select_from(table).limit(1)).first() is not None


def _drop(connection: Connection) -> None:
    # In one statement: they refer to each other. Without CASCADE: nothing of others goes with them.
    connection.execute(text(f"DROP TABLE IF EXISTS {', '.join((*_TABLES, _STAMP.name))}"))


def _make(url: str) -> None:
    try:
        DagsterPostgresStorage(url)
    except (DBAPIError, DagsterPostgresException) as error:
        code = getattr(getattr(error, "orig", None), "pgcode", None)
        raise lost_database(error) or LedgerError(
            f"Dagster's tables could not be made (code {code or 'none'}).",
            remedy="Let the database's user make tables in it.",
        ) from None
