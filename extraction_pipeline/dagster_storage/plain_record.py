"""A record of one partition of an asset, before it is an event of Dagster.

Dagster makes an object of each field of an event, and walks them all again to store it: 0.4 ms.
What comes by the hundred thousand is said in plain values here, and stored as the same row.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from dagster import (
    AssetKey,
    AssetMaterialization,
    AssetObservation,
    DagsterEventType,
    EventLogEntry,
    MetadataValue,
)
from dagster._core.definitions.metadata import RawMetadataValue
from dagster._core.events import AssetObservationData, DagsterEvent, StepMaterializationData

Plain = str | int | float | datetime
DagsterRecord = AssetMaterialization | AssetObservation


class RecordKind(Enum):
    """What a record asserts: that a partition passed, or only that something was seen."""

    MATERIALIZATION = DagsterEventType.ASSET_MATERIALIZATION.value
    OBSERVATION = DagsterEventType.ASSET_OBSERVATION.value


@dataclass(frozen=True, slots=True)
class PlainRecord:
    """One record; `metadata` is shown as text, number or time, and `description` as its message."""

    kind: RecordKind
    asset_key: AssetKey
    partition: str
    metadata: Mapping[str, Plain]
    description: str | None = None

    def as_dagster(self) -> DagsterRecord:
        """The same as an object of Dagster."""
        values: dict[str, RawMetadataValue] = {
            label: MetadataValue.timestamp(value.timestamp())
            if isinstance(value, datetime)
            else value
            for label, value in self.metadata.items()
        }
        made: type[DagsterRecord] = (
            AssetMaterialization if self.kind is RecordKind.MATERIALIZATION else AssetObservation
        )
        return made(self.asset_key, self.description, values, self.partition)


@dataclass(frozen=True, slots=True)
class Origin:
    """The step of a run that says it."""

    run_id: str
    job_name: str
    step_key: str


def message_of(kind: RecordKind, asset_key: AssetKey, description: str | None) -> str:
    """The message of an event that has no description of its own is Dagster's."""
    if description:
        return description
    label = " ".join(asset_key.path)
    return (
        f"Materialized value {label}."
        if kind is RecordKind.MATERIALIZATION
        else f"Observed {label}."
    )


def entry_of(record: DagsterRecord, origin: Origin, timestamp: float) -> EventLogEntry:
    """The event of a record, as Dagster logs it."""
    if isinstance(record, AssetMaterialization):
        kind = RecordKind.MATERIALIZATION
        data: StepMaterializationData | AssetObservationData = StepMaterializationData(record)
    else:
        kind = RecordKind.OBSERVATION
        data = AssetObservationData(record)
    message = message_of(kind, record.asset_key, record.description)
    event = DagsterEvent(
        event_type_value=kind.value,
        job_name=origin.job_name,
        step_key=origin.step_key,
        event_specific_data=data,
        message=message,
    )
    return EventLogEntry(  # type: ignore[no-untyped-call]
        error_info=None,
        level=logging.DEBUG,
        user_message=message,
        run_id=origin.run_id,
        timestamp=timestamp,
        step_key=origin.step_key,
        job_name=origin.job_name,
        dagster_event=event,
    )
