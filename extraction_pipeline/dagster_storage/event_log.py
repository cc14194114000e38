"""Dagster's event log in PostgreSQL, with planned events and batches of records in bulk.

Dagster stores an event in three transactions of a connection each, 25 to 35 ms, and a ranged run
has a planned event for each partition, without which a failed document would not be shown red. Here
the run's one event with all its partitions is taken, and written as the same rows.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from itertools import islice
from typing import Any

from dagster import AssetKey, DagsterEventType
from dagster._core.events import AssetMaterializationPlannedData
from dagster._core.events.log import EventLogEntry
from dagster._serdes import serialize_value

from extraction_pipeline.dagster_storage.event_rows import EventRow, copy_rows, hold_assets
from extraction_pipeline.dagster_storage.event_text import plain_text, planned_texts
from extraction_pipeline.dagster_storage.partition_status import PartitionStatusStorage
from extraction_pipeline.dagster_storage.plain_record import Origin, PlainRecord, entry_of
from extraction_pipeline.dagster_storage.table_statistics import LOOK_AT_ROWS, analyze_if_grown

ROWS_AT_ONCE = 2000
"""In a transaction, during which no other one writes events of the same asset."""

Entry = Callable[[], EventLogEntry]
"""The event of a row, made only where it is asked for."""

IN_BULK = frozenset(
    {
        DagsterEventType.ASSET_MATERIALIZATION,
        DagsterEventType.ASSET_OBSERVATION,
        DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
    }
)


class BulkEventLogStorage(PartitionStatusStorage):
    """Dagster's storage of events, with another way of writing many at once. `BulkPostgresStorage`
    makes it."""

    _uncounted = 0
    """Rows written since the table was last counted."""
    _look_at = LOOK_AT_ROWS
    """With how many of them the table is looked at next."""

    @property
    def supports_partition_subset_in_asset_materialization_planned_events(self) -> bool:
        """Dagster hands over one planned event a run and asset; one a partition is stored."""
        return True

    def store_event(self, event: EventLogEntry) -> None:
        """Store an event; a planned one of many partitions as one each."""
        if event.dagster_event_type in IN_BULK:
            # A single one as well, which else would pass those of an asset that are on their way.
            self._store(self._rows(event))
        else:
            super().store_event(event)

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        """Store events in bulk where all are of a kind that can be."""
        if all(event.dagster_event_type in IN_BULK for event in events):
            self._store(one for event in events for one in self._rows(event))
        else:
            super().store_event_batch(events)

    def store_plain(self, records: Iterable[tuple[PlainRecord, float]], origin: Origin) -> None:
        """Store records of one step, each with its time in seconds since 1970."""
        name_of = cache(AssetKey.to_string)
        self._store(
            (
                EventRow(
                    run_id=origin.run_id,
                    text=plain_text(record, origin, timestamp),
                    kind=record.kind.value,
                    timestamp=datetime.fromtimestamp(timestamp, UTC).replace(tzinfo=None),
                    step_key=origin.step_key,
                    asset_key=name_of(record.asset_key),
                    partition=str(record.partition),
                ),
                partial(_entry_of_plain, record, origin, timestamp),
            )
            for record, timestamp in records
        )

    def dispose(self) -> None:
        """Close what is idle. Another instance of this process opens anew what it needs."""
        super().dispose()
        self._engine.dispose()

    def _store(self, rows: Iterable[tuple[EventRow, Entry]]) -> None:
        remaining = iter(rows)
        while chunk := list(islice(remaining, ROWS_AT_ONCE)):
            with self.index_transaction() as connection:
                hold_assets(connection, (row.asset_key for row, _ in chunk))
                ids = copy_rows(connection, [row for row, _ in chunk])
                for entry, event_id in _last_of_each(chunk, ids):
                    self._store_asset_event(connection, entry(), event_id)
            self._uncounted += len(chunk)
        if self._uncounted >= self._look_at:
            with self.index_connection() as connection:
                if analyze_if_grown(connection, self._uncounted):
                    self._uncounted = 0
            self._look_at = self._uncounted + LOOK_AT_ROWS

    def _rows(self, event: EventLogEntry) -> Iterator[tuple[EventRow, Entry]]:
        told = event.get_dagster_event()
        asset_key = told.asset_key
        assert asset_key is not None
        subset = _planned_subset(event)
        pairs: Iterable[tuple[str | None, str]] = (
            [(told.partition, serialize_value(event))]
            if subset is None
            else planned_texts(event, subset.get_partition_keys())
        )
        timestamp: datetime = self._event_insert_timestamp(event)  # type: ignore[no-untyped-call]
        tags = tuple(self._tags_for_asset_event(event).items())
        for partition, text in pairs:
            row = EventRow(
                run_id=event.run_id,
                text=text,
                kind=told.event_type_value,
                timestamp=timestamp,
                step_key=told.step_key,
                asset_key=asset_key.to_string(),
                partition=partition or None,
                tags=tags,
            )
            yield row, lambda: event


def _entry_of_plain(record: PlainRecord, origin: Origin, timestamp: float) -> EventLogEntry:
    return entry_of(record.as_dagster(), origin, timestamp)


def _planned_subset(event: EventLogEntry) -> Any:
    """The partitions of a planned event that has several, or `None`."""
    told = event.dagster_event
    if told is None or not isinstance(told.event_specific_data, AssetMaterializationPlannedData):
        return None
    return told.event_specific_data.partitions_subset


def _last_of_each(
    chunk: Sequence[tuple[EventRow, Entry]], ids: Sequence[int]
) -> list[tuple[Entry, int]]:
    """The last event of each asset and kind: what the row of an asset is written from, in order."""
    last = {
        (row.asset_key, row.kind): (entry, event_id)
        for (row, entry), event_id in zip(chunk, ids, strict=True)
    }
    return sorted(last.values(), key=lambda one: one[1])
