"""Runs over ranges, red and green, leave the rows and answers of Dagster's own storage."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from dagster import (
    AssetExecutionContext,
    AssetKey,
    AssetMaterialization,
    AssetObservation,
    AssetRecordsFilter,
    AssetSpec,
    BackfillPolicy,
    DagsterEventType,
    DagsterInstance,
    DataVersion,
    Definitions,
    DynamicPartitionsDefinition,
    EventRecordsFilter,
    Failure,
    MaterializeResult,
    MetadataValue,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    StaticPartitionsDefinition,
    asset,
    multi_asset,
)
from dagster._core.definitions.metadata import RawMetadataValue
from dagster._core.loader import LoadingContextForTest
from dagster._core.storage.partition_status_cache import get_and_update_asset_status_cache_value
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
)
from dagster_postgres import PostgresEventLogStorage
from sqlalchemy import text

from extraction_pipeline.dagster_storage.event_log import BulkEventLogStorage
from extraction_pipeline.dagster_storage.plain_record import Plain, PlainRecord, RecordKind
from extraction_pipeline.orchestration.driving import QUIET
from extraction_pipeline.orchestration.event_log import Record, write_records

DOCUMENTS = DynamicPartitionsDefinition(name="documents")
ANSWERS = MultiPartitionsDefinition(
    {"document": DOCUMENTS, "version": StaticPartitionsDefinition(["v1", "v2"])}
)
PAGES, SENT, NIGHT = AssetKey("pages"), AssetKey(["notes", "sent"]), AssetKey("night")
KEYS = [*(f"{number:064x}" for number in range(5)), "an odd 'key'\\ \"ü\"%s :x"]
TABLES = ("event_logs", "asset_event_tags", "asset_keys", "dynamic_partitions", "runs")

OF_THE_RUN = frozenset(
    {
        *("id", "run_id", "last_run_id", "timestamp", "event_timestamp", "create_timestamp"),
        *("last_materialization_timestamp", "pid", "event_id", "update_timestamp", "storage_id"),
        *("start_time", "end_time", "run_body", "snapshot_id", "wipe_timestamp"),
        *("last_wipe_timestamp", "earliest_in_progress_materialization_event_id"),
        "latest_storage_id",
    }
)
"""Columns and fields that differ between any two runs."""


def key(document: str, version: str) -> MultiPartitionKey:
    return MultiPartitionKey({"document": document, "version": version})


METADATA: dict[str, RawMetadataValue] = {
    "text": 'a word \\ with\ttab, "quotes" and ümlaut\nand a line',
    "number": 3,
    "share": 0.5,
    "large": 1e300,
    "endless": float("inf"),
    "yes": True,
    "time": MetadataValue.timestamp(1_790_000_000.25),
    "none": None,
    "table": MetadataValue.json({"some": ["thing", None]}),
    "path": MetadataValue.path("some/path"),
}


PLAIN: dict[str, Plain] = {
    "text": "a word \\ with\ttab",
    "half of a character": "\ud83d",
    "number": 3,
    "share": 0.5,
    "time": datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
}


def ranged(spec: AssetSpec, passing: Sequence[str]) -> Any:
    """An asset whose run records some of its partitions and fails for the rest."""

    @multi_asset(name=spec.key.path[-1], specs=[spec], backfill_policy=BackfillPolicy.single_run())
    def run(context: AssetExecutionContext) -> Iterator[MaterializeResult[None]]:
        asked = set(context.partition_keys)
        write_records(
            context.instance,
            run_id=context.run.run_id,
            job_name=context.run.job_name,
            step_key="step",
            records=[
                PlainRecord(RecordKind.MATERIALIZATION, spec.key, one, PLAIN)
                if spec.key == PAGES
                else AssetMaterialization(spec.key, partition=one, metadata=METADATA)
                for one in passing
                if one in asked
            ],
        )
        if not asked <= set(passing):
            raise Failure("some did not pass", allow_retries=False)
        yield from ()

    return run


def story(instance: DagsterInstance) -> dict[str, Any]:
    """What happens to an installation, and what Dagster answers in between."""
    instance.add_dynamic_partitions("documents", KEYS)
    passing = [str(key(one, "v1")) for one in KEYS[::2]]
    pages = AssetSpec(PAGES, partitions_def=DOCUMENTS, skippable=True)
    sent = AssetSpec(SENT, partitions_def=ANSWERS, skippable=True)

    @asset(key=NIGHT, code_version="one")
    def night() -> MaterializeResult[None]:
        return MaterializeResult(metadata={"new": 3}, data_version=DataVersion("one"))

    definitions = Definitions(assets=[ranged(pages, KEYS), ranged(sent, passing), night])
    every = definitions.resolve_implicit_global_asset_job_def()

    def run(asset_key: AssetKey, first: str | None = None, last: str | None = None) -> bool:
        tags = {ASSET_PARTITION_RANGE_START_TAG: first, ASSET_PARTITION_RANGE_END_TAG: last}
        result = every.get_subset(asset_selection={asset_key}).execute_in_process(
            instance=instance,
            tags={name: value for name, value in tags.items() if value is not None},
            run_config={"loggers": QUIET},
            raise_on_error=False,
        )
        return result.success

    seen: dict[str, Any] = {}
    seen["succeeded"] = [
        run(PAGES, KEYS[0], KEYS[-1]),
        run(SENT, key(KEYS[0], "v1"), key(KEYS[-1], "v1")),
        run(NIGHT),
    ]
    seen["after the first runs"] = answers(instance)
    seen["one alone"] = [run(SENT, one, one) for one in (passing[0], key(KEYS[1], "v2"))]
    records(instance, [AssetObservation(SENT, partition=passing[1], metadata=METADATA)])
    instance.report_runless_asset_event(AssetMaterialization(SENT, partition=key(KEYS[1], "v1")))
    seen["after single ones"] = answers(instance)
    instance.wipe_assets([PAGES])
    seen["after a wipe"] = answers(instance)
    run(PAGES, KEYS[1], KEYS[3])
    seen["after a run over what was wiped"] = answers(instance)
    # Records of what is no partition, or not yet.
    records(instance, [AssetMaterialization(PAGES, partition=one) for one in ("later", "never")])
    odd = ("later|v1", "later|v3", "never|v1", "later|v1|v1", "|v1", "later")
    records(instance, [AssetMaterialization(SENT, partition=one) for one in odd])
    seen["after odd records"] = answers(instance)
    instance.add_dynamic_partitions("documents", ["later"])
    instance.delete_dynamic_partition("documents", KEYS[0])
    seen["after a document came and one went"] = answers(instance)
    return seen


def records(instance: DagsterInstance, some: Sequence[Record]) -> None:
    write_records(instance, run_id="a run", job_name="a job", step_key="a step", records=some)


def answers(instance: DagsterInstance) -> dict[str, Any]:
    """What the UI, backfills, sensors and our own checks ask."""
    return {
        str(asset_key): answers_of(instance, asset_key, partitions)
        for asset_key, partitions in ((PAGES, DOCUMENTS), (SENT, ANSWERS), (NIGHT, None))
    }


def answers_of(instance: DagsterInstance, asset_key: AssetKey, partitions: Any) -> dict[str, Any]:
    storage = instance.event_log_storage
    latest = instance.get_latest_materialization_event(asset_key)
    planned = instance.get_latest_planned_materialization_info(asset_key)
    record = next(iter(instance.get_asset_records([asset_key])), None)
    recorded = record and record.asset_entry.last_materialization
    # As a page asks for it first, and then as a daemon does.
    (page,) = storage.get_asset_status_cache_values(
        [(asset_key, partitions)], LoadingContextForTest(instance)
    )
    cache = get_and_update_asset_status_cache_value(instance, asset_key, partitions)
    assert cache == page, "what one kept would be nothing to the other"
    counted = {
        kind: [
            (one.partition_key, one.event_log_entry.message, one.event_log_entry.step_key)
            for one in instance.get_event_records(EventRecordsFilter(kind, asset_key), 100)
        ]
        for kind in (
            DagsterEventType.ASSET_MATERIALIZATION,
            DagsterEventType.ASSET_OBSERVATION,
            DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
        )
    }
    # Dagster plans the partitions of a set, which has no order.
    counted[DagsterEventType.ASSET_MATERIALIZATION_PLANNED].sort(key=str)
    some = AssetRecordsFilter(asset_key, asset_partitions=[KEYS[1], str(key(KEYS[2], "v1"))])
    made = instance.get_event_records(
        EventRecordsFilter(DagsterEventType.ASSET_MATERIALIZATION, asset_key), 100
    )
    middle = made[len(made) // 2].storage_id if made else 1
    found: dict[str, Any] = {
        "events": counted,
        "known": instance.has_asset_key(asset_key),
        "partitions": instance.get_materialized_partitions(asset_key),
        "since": [
            instance.get_materialized_partitions(asset_key, after_cursor=middle),
            instance.get_materialized_partitions(asset_key, before_cursor=middle),
        ],
        "latest": latest and latest.asset_materialization,
        "record": recorded and recorded.asset_materialization,
        "last run is": record and bool(record.asset_entry.last_run_id),
        "planned": planned and planned.run_id == (record and record.asset_entry.last_run_id),
        "of some": [
            one.asset_materialization for one in instance.fetch_materializations(some, 9).records
        ],
        "tags": [dict(one) for one in instance.get_event_tags_for_asset(asset_key)],
        "latest tags": storage.get_latest_tags_by_partition(
            asset_key, DagsterEventType.ASSET_MATERIALIZATION, ["dagster/partition/version"]
        ),
        "by partition": set(
            storage.get_latest_storage_id_by_partition(
                asset_key, DagsterEventType.ASSET_MATERIALIZATION
            )
        ),
        "attempts": [
            set(
                storage.get_latest_asset_partition_materialization_attempts_without_materializations(
                    asset_key, after_storage_id=since
                )
            )
            for since in (None, middle)
        ],
        "keys": instance.get_dynamic_partitions("documents"),
    }
    if cache is not None and partitions is not None:
        with_status = {
            "green": cache.deserialize_materialized_partition_subsets(partitions),
            "red": cache.deserialize_failed_partition_subsets(partitions),
            "running": cache.deserialize_in_progress_partition_subsets(partitions),
        }
        found |= {name: set(one.get_partition_keys()) for name, one in with_status.items()}
    return found


def leaves(tree: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """What a tree of dictionaries holds, each with its place in it."""
    if isinstance(tree, dict) and len(place.split(" / ")) < 4:
        for name, one in tree.items():
            yield from leaves(one, f"{place} / {name}")
    else:
        yield place, tree


def rows_of(instance: DagsterInstance, table: str) -> list[dict[str, Any]]:
    """All rows of a table, without what names the run and the time."""
    storage = instance.event_log_storage
    assert isinstance(storage, PostgresEventLogStorage)
    with storage.index_connection() as connection:
        found = connection.execute(text(f"SELECT * FROM {table}")).mappings().all()
    rows = []
    for row in found:
        if table == "event_logs" and row["asset_key"] is None:
            continue
        kept = {name: value for name, value in row.items() if name not in OF_THE_RUN}
        for name in ("event", "last_materialization", "asset_details", "cached_status_data"):
            if kept.get(name):
                kept[name] = without_run(json.loads(kept[name]))
        rows.append(kept)
    return sorted(rows, key=str)


def without_run(stored: Any) -> Any:
    if isinstance(stored, str) and stored.startswith(("{", "[")):
        return without_run(json.loads(stored))
    if isinstance(stored, list):
        return sorted((without_run(one) for one in stored), key=str)
    if not isinstance(stored, dict):
        return stored
    left = {name: one for name, one in stored.items() if name not in OF_THE_RUN}
    return {name: without_run(one) for name, one in left.items()}


@pytest.fixture
def stock_first(stock: DagsterInstance, instance: DagsterInstance) -> list[DagsterInstance]:
    assert type(stock.event_log_storage) is PostgresEventLogStorage
    assert type(instance.event_log_storage) is BulkEventLogStorage
    return [stock, instance]


def test_rows_and_answers_are_those_of_dagsters_own_storage(
    stock_first: list[DagsterInstance],
) -> None:
    stock, ours = stock_first
    theirs = story(stock)
    assert theirs["succeeded"] == [True, False, True]
    red = {str(key(one, "v1")) for one in KEYS[1::2]}
    assert theirs["after the first runs"][str(SENT)]["red"] == red, "or nothing is compared"
    told = story(ours)
    for place, expected in leaves(theirs):
        assert dict(leaves(told))[place] == expected, place
    for table in TABLES:
        assert rows_of(ours, table) == rows_of(stock, table), table
