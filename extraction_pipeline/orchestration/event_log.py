"""Writing many records at once into Dagster's event log.

Dagster's own way (`context.log_event`) is one transaction on a fresh connection an event: 25 to 35
ms each. A thousand at once are copied by the storage of `dagster_storage`, or inserted in one
statement by Dagster's own. The rows are the same but for the names of the process and the op, which
Dagster repeats in each event; a test compares them.
"""

from collections.abc import Iterable
from itertools import groupby, islice

from dagster import DagsterInstance

from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.dagster_storage.event_log import BulkEventLogStorage
from extraction_pipeline.dagster_storage.plain_record import (
    DagsterRecord,
    Origin,
    PlainRecord,
    RecordKind,
    entry_of,
)
from extraction_pipeline.orchestration.event_clock import EventClock

BATCH = 1000

_clock = EventClock()

Record = PlainRecord | DagsterRecord


def write_records(
    instance: DagsterInstance,
    *,
    run_id: str,
    job_name: str,
    step_key: str,
    records: Iterable[Record],
) -> int:
    """Write records into the event log of a run, a thousand a statement. Returns how many.

    A batch holds one asset and one kind of event: Dagster's own storage updates its table of assets
    from the last event of a batch only.
    """
    origin = Origin(run_id, job_name, step_key)
    written = 0
    for _, group in groupby(records, key=_kind_of):
        while batch := list(islice(group, BATCH)):
            _write(instance, batch, origin)
            crash_point(CrashPoint.EVENTS_PARTLY_WRITTEN)
            written += len(batch)
    return written


def _write(instance: DagsterInstance, batch: list[Record], origin: Origin) -> None:
    storage = instance.event_log_storage
    plain = [one for one in batch if isinstance(one, PlainRecord)]
    if isinstance(storage, BulkEventLogStorage) and len(plain) == len(batch):
        storage.store_plain([(one, _clock.stamp(one.asset_key)) for one in plain], origin)
        return
    made = [one.as_dagster() if isinstance(one, PlainRecord) else one for one in batch]
    storage.store_event_batch([entry_of(one, origin, _clock.stamp(one.asset_key)) for one in made])


def _kind_of(record: Record) -> tuple[type[Record] | RecordKind, object]:
    kind = record.kind if isinstance(record, PlainRecord) else type(record)
    return kind, record.asset_key
