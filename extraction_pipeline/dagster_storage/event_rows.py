"""Events as rows of Dagster's tables, and `COPY` of many of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import StringIO
from typing import Any

from dagster._core.storage.event_log.schema import AssetEventTagsTable, SqlEventLogStorageTable
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from extraction_pipeline.dagster_storage.refusals import refusals

NULL = r"\N"

EVENT_COLUMNS = (
    *("id", "run_id", "event", "dagster_event_type"),
    *("timestamp", "step_key", "asset_key", "partition"),
)
TAG_COLUMNS = ("event_id", "asset_key", "key", "value", "event_timestamp")


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event of an asset: a row of `event_logs`, and one of `asset_event_tags` for each tag."""

    run_id: str
    text: str
    kind: str
    timestamp: datetime
    step_key: str | None
    asset_key: str
    partition: str | None
    tags: Sequence[tuple[str, str]] = ()


def copy_rows(connection: Connection, rows: Sequence[EventRow]) -> list[int]:
    """Write rows in the transaction of this connection; their ids, rising in the order of rows."""
    ids = _ids(connection, len(rows))
    times = [row.timestamp.isoformat(sep=" ") for row in rows]
    _copy(
        connection,
        SqlEventLogStorageTable.name,
        EVENT_COLUMNS,
        (
            (
                str(event_id),
                row.run_id,
                row.text,
                row.kind,
                time,
                row.step_key,
                row.asset_key,
                row.partition,
            )
            for event_id, time, row in zip(ids, times, rows, strict=True)
        ),
    )
    if any(row.tags for row in rows):
        _copy(
            connection,
            AssetEventTagsTable.name,
            TAG_COLUMNS,
            (
                (str(event_id), row.asset_key, key, value, time)
                for event_id, time, row in zip(ids, times, rows, strict=True)
                for key, value in row.tags
            ),
        )
    return ids


def hold_assets(connection: Connection, asset_keys: Iterable[str]) -> None:
    """Let no other transaction that calls this write events of these assets before the end of this.

    Who reads an asset's events after the last one that it knows would never see those that were
    given a lower id and came later: the grid of partitions is read so.
    """
    for key in sorted(set(asset_keys)):
        connection.execute(
            text("SELECT pg_advisory_xact_lock(hashtextextended(:key, 0))"), {"key": key}
        )


def _ids(connection: Connection, count: int) -> list[int]:
    drawn = connection.execute(
        text(
            "SELECT nextval(pg_get_serial_sequence(:table, 'id')) FROM generate_series(1, :count)"
        ),
        {"table": SqlEventLogStorageTable.name, "count": count},
    )
    return sorted(drawn.scalars())


def _copy(
    connection: Connection,
    table: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str | None]],
) -> None:
    lines = StringIO()
    for row in rows:
        fields = [NULL if field is None else _escaped(field) for field in row]
        lines.write("\t".join(fields))
        lines.write("\n")
    lines.seek(0)
    named = ", ".join(f'"{column}"' for column in columns)
    driver: Any = connection.dialect.loaded_dbapi
    raw = connection.connection.cursor()
    try:
        raw.copy_expert(f"COPY {table} ({named}) FROM STDIN", lines)
    except driver.Error as error:
        # SQLAlchemy makes these of every other statement's errors; and a server's sentence about a
        # COPY shows the row.
        raised = DBAPIError.instance(f"COPY {table}", None, error, driver.Error)
        assert isinstance(raised, DBAPIError)
        refusals.keep(raised)
        raise raised from None
    finally:
        raw.close()


def _escaped(field: str) -> str:
    if field.isalnum():
        return field
    if "\\" in field:
        field = field.replace("\\", "\\\\")
    if field.isprintable():
        return field
    return field.replace("\t", r"\t").replace("\n", r"\n").replace("\r", r"\r")
