"""The text in which Dagster stores an event, for those that come by the thousand.

It is the JSON that `serialize_value` writes, but for blanks between its parts.
"""

import json
import logging
import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from uuid import uuid4

import orjson
from dagster import AssetKey, EventLogEntry
from dagster._core.events import AssetMaterializationPlannedData
from dagster._serdes import serialize_value

from extraction_pipeline.dagster_storage.plain_record import (
    Origin,
    Plain,
    PlainRecord,
    RecordKind,
    message_of,
)


def planned_texts(entry: EventLogEntry, partitions: Iterable[str]) -> Iterator[tuple[str, str]]:
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


def plain_text(record: PlainRecord, origin: Origin, timestamp: float) -> str:
    """The text of the event of a record."""
    message = message_of(record.kind, record.asset_key, record.description)
    packed = {
        "__class__": "EventLogEntry",
        "dagster_event": {
            "__class__": "DagsterEvent",
            "event_specific_data": _packed_data(record),
            "event_type_value": record.kind.value,
            "logging_tags": {},
            "message": message,
            "pid": None,
            "pipeline_name": origin.job_name,
            "solid_handle": None,
            "step_handle": None,
            "step_key": origin.step_key,
            "step_kind_value": None,
        },
        "error_info": None,
        "level": logging.DEBUG,
        "message": "",
        "pipeline_name": origin.job_name,
        "run_id": origin.run_id,
        "step_key": origin.step_key,
        "timestamp": timestamp,
        "user_message": message,
    }
    if all(isinstance(one, str) or _is_ordinary(one) for one in record.metadata.values()):
        with suppress(orjson.JSONEncodeError):  # half of a character, which JSON's escapes can tell
            written = orjson.dumps(packed)
            # Dagster writes ASCII, which a database of any encoding can hold.
            if written.isascii():
                return written.decode()
    return json.dumps(packed)


def _is_ordinary(value: Plain) -> bool:
    """Whether a number is one that both ways write alike."""
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or -(2**53) < value < 2**53


def _packed_data(record: PlainRecord) -> dict[str, object]:
    said = {
        "asset_key": _packed_key(record.asset_key),
        "description": record.description,
        "metadata_entries": [
            {
                "__class__": "EventMetadataEntry",
                "description": None,
                "entry_data": _packed_value(value),
                "label": label,
            }
            for label, value in record.metadata.items()
        ],
        # A key of several dimensions is a string of a kind of its own, which orjson refuses.
        "partition": str(record.partition),
    }
    if record.kind is RecordKind.MATERIALIZATION:
        return {
            "__class__": "StepMaterializationData",
            "asset_lineage": [],
            "materialization": {"__class__": "AssetMaterialization", **said, "tags": None},
        }
    return {
        "__class__": "AssetObservationData",
        "asset_observation": {"__class__": "AssetObservation", **said, "tags": {}},
    }


def _packed_key(key: AssetKey) -> dict[str, object]:
    return {"__class__": "AssetKey", "path": list(key.path)}


def _packed_value(value: Plain) -> dict[str, object]:
    if isinstance(value, str):
        return {"__class__": "TextMetadataEntryData", "text": value}
    if isinstance(value, bool):
        return {"__class__": "BoolMetadataEntryData", "value": value}
    if isinstance(value, int):
        return {"__class__": "IntMetadataEntryData", "value": value}
    if isinstance(value, float):
        return {"__class__": "FloatMetadataEntryData", "value": value}
    assert isinstance(value, datetime)
    return {"__class__": "TimestampMetadataValue", "value": value.timestamp()}
