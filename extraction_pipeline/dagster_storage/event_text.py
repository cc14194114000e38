"""The text in which Dagster stores an event, written faster for those that come by the thousand.

`serialize_value` walks every object by its declared fields, in 0.3 ms an event. Materializations
and observations with simple metadata are written from a plain dictionary here, as the same JSON but
for blanks. Whatever is not of this form is left to Dagster.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import uuid4

import orjson
from dagster import (
    AssetKey,
    AssetMaterialization,
    AssetObservation,
    BoolMetadataValue,
    FloatMetadataValue,
    IntMetadataValue,
    MetadataValue,
    TextMetadataValue,
    TimestampMetadataValue,
)
from dagster._core.events import (
    AssetMaterializationPlannedData,
    AssetObservationData,
    DagsterEvent,
    StepMaterializationData,
)
from dagster._core.events.log import EventLogEntry
from dagster._serdes import serialize_value

SIMPLE: Mapping[type[MetadataValue[Any]], Callable[[Any], dict[str, object]]] = {
    TextMetadataValue: lambda one: {"__class__": "TextMetadataEntryData", "text": one.text},
    IntMetadataValue: lambda one: {"__class__": "IntMetadataEntryData", "value": one.value},
    FloatMetadataValue: lambda one: {"__class__": "FloatMetadataEntryData", "value": one.value},
    BoolMetadataValue: lambda one: {"__class__": "BoolMetadataEntryData", "value": one.value},
    TimestampMetadataValue: lambda one: {
        "__class__": "TimestampMetadataValue",
        "value": one.value,
    },
}


class NotSimple(Exception):
    """An event has something that is written by Dagster's own way alone."""


def text_of(entry: EventLogEntry) -> str:
    """The text of an event, as Dagster stores it."""
    try:
        written = orjson.dumps(_packed(entry))
    except (NotSimple, TypeError):  # orjson's errors are of the second kind
        return serialize_value(entry)
    # Dagster writes ASCII, which any encoding of a database can hold.
    return written.decode() if written.isascii() else serialize_value(entry)


def planned_texts(entry: EventLogEntry, partitions: Iterator[str]) -> Iterator[tuple[str, str]]:
    """Each partition of a planned event with the text of an event of its own."""
    event = entry.get_dagster_event()
    asset_key = event.asset_key
    assert asset_key is not None
    place = uuid4().hex
    data = AssetMaterializationPlannedData(asset_key, partition=place)
    one = entry._replace(dagster_event=event._replace(event_specific_data=data))
    before, after = serialize_value(one).split(f'"{place}"')
    for partition in partitions:
        yield partition, f"{before}{json.dumps(partition)}{after}"


def _packed(entry: EventLogEntry) -> dict[str, object]:
    event = entry.get_dagster_event()
    if entry.error_info is not None or event.step_handle or event.node_handle:
        raise NotSimple
    return {
        "__class__": "EventLogEntry",
        "dagster_event": {
            "__class__": "DagsterEvent",
            "event_specific_data": _packed_data(event),
            "event_type_value": event.event_type_value,
            "logging_tags": event.logging_tags,
            "message": event.message,
            "pid": event.pid,
            "pipeline_name": event.job_name,
            "solid_handle": None,
            "step_handle": None,
            "step_key": event.step_key,
            "step_kind_value": event.step_kind_value,
        },
        "error_info": None,
        "level": entry.level,
        "message": "",
        "pipeline_name": entry.job_name,
        "run_id": entry.run_id,
        "step_key": entry.step_key,
        "timestamp": entry.timestamp,
        "user_message": entry.user_message,
    }


def _packed_data(event: DagsterEvent) -> dict[str, object]:
    data = event.event_specific_data
    if type(data) is StepMaterializationData and not data.asset_lineage:
        return {
            "__class__": "StepMaterializationData",
            "asset_lineage": [],
            "materialization": _packed_asset(data.materialization),
        }
    if type(data) is AssetObservationData:
        return {
            "__class__": "AssetObservationData",
            "asset_observation": _packed_asset(data.asset_observation),
        }
    raise NotSimple


def _packed_asset(said: AssetMaterialization | AssetObservation) -> dict[str, object]:
    partition = said.partition
    return {
        "__class__": type(said).__name__,
        "asset_key": _packed_key(said.asset_key),
        "description": said.description,
        "metadata_entries": [
            {
                "__class__": "EventMetadataEntry",
                "description": None,
                "entry_data": _packed_metadata(value),
                "label": label,
            }
            for label, value in said.metadata.items()
        ],
        # A key of several dimensions is a string of a kind of its own, which orjson refuses.
        "partition": None if partition is None else str(partition),
        "tags": said.tags,
    }


def _packed_key(key: AssetKey) -> dict[str, object]:
    return {"__class__": "AssetKey", "path": list(key.path)}


def _packed_metadata(value: MetadataValue[Any]) -> dict[str, object]:
    pack = SIMPLE.get(type(value))
    if pack is None:
        raise NotSimple
    packed = pack(value)
    number = packed.get("value")
    if isinstance(number, float) and not math.isfinite(number):
        raise NotSimple
    return packed
