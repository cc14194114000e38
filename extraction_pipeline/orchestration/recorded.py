"""What Dagster's records say: which partitions have one, and which content the last one names.

A night asks this of every document of a collection. Dagster builds an object of each field of an
event, a thousand times over what a look at one of them costs, so the stored JSON is looked at here;
an event of any other form is read by Dagster itself.
"""

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

import orjson
from dagster import AssetKey, AssetMaterialization, DagsterEventType, DagsterInstance, EventLogEntry
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from dagster._serdes import deserialize_value
from sqlalchemy import ARRAY, ColumnElement, Row, Select, Text, any_, literal, select

from extraction_pipeline.ledger.stages import Stage

PARTITIONS_AT_ONCE = 5000

CONTENT_NAMED = {
    Stage.DOCUMENTS: "content_hash",
    Stage.SUBMISSIONS: "job_id",
    Stage.RESPONSES: "raw_hash",
    Stage.EXTRACTIONS: "extraction_hash",
}
"""Which metadata of a stage's records names its content."""


def asset_of(collection: str, stage: Stage) -> AssetKey:
    """The asset of a stage."""
    return AssetKey([collection, stage.value])


def recorded_partitions(
    instance: DagsterInstance, collection: str, stage: Stage, partitions: Collection[str]
) -> set[str]:
    """Those of these partitions that have a record, as Dagster's own questions find them."""
    wanted = select(SqlEventLogStorageTable.c.partition).distinct()
    rows = _records_of(instance, asset_of(collection, stage), partitions, wanted)
    return {row.partition for row in rows}


def recorded_contents(
    instance: DagsterInstance, collection: str, stage: Stage, partitions: Collection[str]
) -> dict[str, str | None]:
    """What the last record of each of these partitions names as its content; those without a
    record are left out."""
    event = SqlEventLogStorageTable.c
    last = select(event.partition, event.event).distinct(event.partition)
    in_order = (event.partition, event.id.desc())
    label = CONTENT_NAMED[stage]
    return {
        row.partition: named_in(row.event, label)
        for row in _records_of(instance, asset_of(collection, stage), partitions, last, *in_order)
    }


def named_in(event: str, label: str) -> str | None:
    """The value of one metadata of a stored materialization, as text; `None` without it."""
    try:
        data = orjson.loads(event)["dagster_event"]["event_specific_data"]
        for entry in data["materialization"]["metadata_entries"]:
            if entry["label"] == label and entry["entry_data"]["__class__"] == _TEXT:
                return str(entry["entry_data"]["text"])
    except (ValueError, LookupError, TypeError):
        pass  # not the form that this version of Dagster writes
    value = _materialization(event).metadata.get(label)
    return None if value is None else str(value.value)


_TEXT = "TextMetadataEntryData"


def _materialization(event: str) -> AssetMaterialization:
    found = deserialize_value(event, EventLogEntry).asset_materialization
    assert found is not None
    return found


def _records_of(
    instance: DagsterInstance,
    asset: AssetKey,
    partitions: Collection[str],
    wanted: Select[Any],
    *in_order: ColumnElement[Any],
) -> Iterator[Row[Any]]:
    """What is wanted of the records of these partitions that were not wiped."""
    storage = instance.event_log_storage
    assert isinstance(storage, SqlEventLogStorage)
    event = SqlEventLogStorageTable.c
    wiped = storage._get_assets_details([asset])
    remaining = iter(partitions)
    while chunk := list(islice(remaining, PARTITIONS_AT_ONCE)):
        # As one value: a thousand of them cost more to write down than to look up.
        asked = wanted.where(
            event.asset_key == asset.to_string(),
            event.dagster_event_type == DagsterEventType.ASSET_MATERIALIZATION.value,
            event.partition == any_(literal(chunk, ARRAY(Text))),
        )
        query = storage._add_assets_wipe_filter_to_query(asked, wiped, [asset])
        with storage.index_connection() as connection:
            yield from connection.execute(query.order_by(*in_order))
