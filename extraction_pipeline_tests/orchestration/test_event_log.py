"""Records written a thousand at a time are the records that Dagster writes one by one."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from dagster import (
    AssetKey,
    AssetMaterialization,
    AssetObservation,
    AssetRecordsFilter,
    DagsterEventType,
    DagsterInstance,
    GraphDefinition,
    MetadataValue,
    MultiPartitionKey,
    OpExecutionContext,
    op,
)
from dagster._core.definitions.metadata import RawMetadataValue
from sqlalchemy import Connection, Engine, create_engine, text

from extraction_pipeline.dagster_storage.plain_record import Plain, PlainRecord, RecordKind
from extraction_pipeline.orchestration.driving import QUIET
from extraction_pipeline.orchestration.event_clock import AHEAD_AT_MOST_MS, EventClock
from extraction_pipeline.orchestration.event_log import Record, write_records

Writer = Callable[[OpExecutionContext, Sequence[Record]], object]

PLAIN, SCATTERED, SEEN = AssetKey("plain"), AssetKey(["group", "scattered"]), AssetKey("seen")
TABLES = ("event_logs", "asset_event_tags", "asset_keys")

# Columns and fields that must differ between two runs, and the names of process and op, which
# Dagster repeats in every event and we leave out.
OF_THE_RUN = {
    *("id", "run_id", "last_run_id", "timestamp", "event_timestamp", "create_timestamp"),
    *("last_materialization_timestamp", "pid", "logging_tags"),
    *("solid_handle", "step_handle", "step_kind_value"),
}


def one_by_one(context: OpExecutionContext, records: Sequence[Record]) -> None:
    for record in records:
        context.log_event(record.as_dagster() if isinstance(record, PlainRecord) else record)


def in_batches(context: OpExecutionContext, records: Sequence[Record]) -> None:
    write_records(
        context.instance,
        run_id=context.run_id,
        job_name=context.job_name,
        step_key=str(context.op_handle),
        records=records,
    )


def some_records() -> list[Record]:
    """Every kind: without partition, one and two dimensions, tags, repeated, and observations."""
    metadata: dict[str, RawMetadataValue] = {
        "text": "a word",
        "number": 3,
        "share": 0.5,
        "time": MetadataValue.timestamp(1_790_000_000.25),
        "table": MetadataValue.json({"some": ["thing", None]}),
    }
    plain: dict[str, Plain] = {
        "text": 'a word \\ with\ttab, "quotes"\nand a line',
        "share": 0.5,
        "large": 1e300,
        "yes": True,
        "time": datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
    }
    return [
        AssetMaterialization(PLAIN, metadata=metadata, description="Told in words."),
        *(
            AssetMaterialization(
                SCATTERED,
                partition=MultiPartitionKey({"document": f"{one:064x}", "version": version}),
                metadata={**metadata, "number": one},
            )
            for one in range(3)
            for version in ("v1", "v2")
        ),
        AssetMaterialization(SCATTERED, partition=f"{0:064x}|v1", metadata={"number": 7}),
        AssetMaterialization(
            SCATTERED,
            partition=f"{9:064x}|v2",
            tags={"dagster/partition/document": f"{9:064x}", "dagster/partition/version": "v2"},
        ),
        AssetMaterialization(PLAIN, partition="a", tags={"dagster/data_version": "one"}),
        *(
            PlainRecord(kind, SEEN, f"{one:064x}|v1", {**plain, "number": one}, description)
            for kind in RecordKind
            for one, description in ((1, None), (2, "In words: ü."), (2**70, ""))
        ),
        AssetObservation(SEEN, partition="b", metadata=metadata),
        AssetObservation(SEEN, metadata={"number": 1}),
    ]


@dataclass(frozen=True)
class Written:
    """What one way of writing left in the tables, and what Dagster answers from it."""

    rows: dict[str, list[dict[str, Any]]]
    answers: dict[str, Any]


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = create_engine(database_url.replace("postgresql:", "postgresql+psycopg2:"))
    yield engine
    engine.dispose()


def test_rows_and_answers_are_those_of_stock_dagster(
    instance: DagsterInstance, engine: Engine
) -> None:
    stock = written_by(one_by_one, instance, engine)
    bulk = written_by(in_batches, instance, engine)
    assert len(stock.rows["event_logs"]) == len(some_records())
    for table in TABLES:
        assert bulk.rows[table] == stock.rows[table], table
    assert bulk.answers == stock.answers


def written_by(writer: Writer, instance: DagsterInstance, engine: Engine) -> Written:
    """Run a job that writes the records in this way into empty tables."""
    with engine.begin() as connection:
        connection.execute(text(f"TRUNCATE {', '.join(TABLES)} RESTART IDENTITY"))
    run_job(writer, some_records(), instance)
    with engine.connect() as connection:
        return Written({table: rows_of(table, connection) for table in TABLES}, answers(instance))


def run_job(writer: Writer, records: Sequence[Record], instance: DagsterInstance) -> None:
    @op(name="write")
    def write(context: OpExecutionContext) -> None:
        writer(context, records)

    job = GraphDefinition("job", node_defs=[write]).to_job()
    result = job.execute_in_process(instance=instance, run_config={"loggers": QUIET})
    assert result.success


def rows_of(table: str, connection: Connection) -> list[dict[str, Any]]:
    """All rows, without what names the run and the time."""
    query = f"SELECT * FROM {table}"
    if table == "event_logs":
        query += (
            " WHERE dagster_event_type IN ('ASSET_MATERIALIZATION', 'ASSET_OBSERVATION')"
            " ORDER BY id"
        )
    rows = []
    for row in connection.execute(text(query)).mappings():
        kept = {name: value for name, value in row.items() if name not in OF_THE_RUN}
        for name in ("event", "last_materialization"):
            if kept.get(name):
                kept[name] = without_run(json.loads(kept[name]))
        rows.append(kept)
    return sorted(rows, key=str) if table != "event_logs" else rows


def without_run(stored: Any) -> Any:
    """Nested JSON without what names the run, the time and the process."""
    if isinstance(stored, list):
        return [without_run(one) for one in stored]
    if not isinstance(stored, dict):
        return stored
    kept = {name: without_run(value) for name, value in stored.items() if name not in OF_THE_RUN}
    # What Dagster's own message of an observation says is no more than the event's type.
    if kept.get("event_type_value") == "ASSET_OBSERVATION":
        kept.pop("message")
    inner = kept.get("dagster_event")
    if isinstance(inner, dict) and inner.get("event_type_value") == "ASSET_OBSERVATION":
        kept.pop("user_message")
    return kept


def answers(instance: DagsterInstance) -> dict[str, Any]:
    """What readers of the event log get: the UI, backfills, sensors, our own checks."""
    found: dict[str, Any] = {"keys": sorted(instance.get_asset_keys())}
    for key in (PLAIN, SCATTERED, SEEN):
        fetched = instance.fetch_materializations(key, limit=100, ascending=True).records
        seen = instance.fetch_observations(key, limit=100, ascending=True).records
        latest = instance.get_latest_materialization_event(key)
        some = AssetRecordsFilter(asset_key=key, asset_partitions=[f"{1:064x}|v1", "a"])
        found[key.to_user_string()] = {
            "partitions": instance.get_materialized_partitions(key),
            "by partition": instance.event_log_storage.get_latest_storage_id_by_partition(
                key, DagsterEventType.ASSET_MATERIALIZATION
            ),
            "fetched": [record.asset_materialization for record in fetched],
            "observed": [record.asset_observation for record in seen],
            "of some": [
                record.partition_key for record in instance.fetch_materializations(some, 9).records
            ],
            "latest": latest and latest.asset_materialization,
            "tags": instance.get_event_tags_for_asset(key),
            "tags of v2": instance.get_event_tags_for_asset(
                key, filter_tags={"dagster/partition/version": "v2"}
            ),
        }
    return found


@pytest.mark.parametrize("count", [999, 1000, 1001, 2500])
def test_any_number_of_records_is_written_whole(
    instance: DagsterInstance, engine: Engine, count: int
) -> None:
    partitions = [f"{one:064x}|v1" for one in range(count)]
    run_job(
        in_batches,
        [AssetMaterialization(SCATTERED, partition=partition) for partition in partitions],
        instance,
    )
    with engine.connect() as connection:
        stored = connection.execute(
            text(
                "SELECT partition FROM event_logs"
                " WHERE dagster_event_type = 'ASSET_MATERIALIZATION' ORDER BY id"
            )
        ).scalars()
        assert list(stored) == partitions
    assert len(milliseconds(instance, SCATTERED)) == count
    assert instance.get_materialized_partitions(SCATTERED) == set(partitions)
    latest = instance.get_latest_materialization_event(SCATTERED)
    assert latest is not None
    assert latest.asset_materialization is not None
    assert latest.asset_materialization.partition == partitions[-1]


def test_events_of_one_asset_have_a_millisecond_each_over_writes_and_kinds(
    instance: DagsterInstance,
) -> None:
    for _ in range(2):
        run_job(
            in_batches,
            [
                kind(asset_key=SCATTERED, partition=f"{one:064x}|v1")
                for kind in (AssetMaterialization, AssetObservation)
                for one in range(50)
            ],
            instance,
        )
    assert len(milliseconds(instance, SCATTERED)) == 200


def milliseconds(instance: DagsterInstance, key: AssetKey) -> set[int]:
    """What the UI tells the events of an asset apart by."""
    records = [
        *instance.fetch_materializations(key, limit=5000).records,
        *instance.fetch_observations(key, limit=5000).records,
    ]
    return {int(record.timestamp * 1000) for record in records}


def test_the_clock_gives_the_present_or_the_next_free_millisecond() -> None:
    seconds = [1_790_000_000.123]
    clock = EventClock(lambda: seconds[0])
    first = int(seconds[0] * 1000)
    stamps = [int(clock.stamp(PLAIN) * 1000) for _ in range(1000)]
    assert stamps == list(range(first, first + 1000))
    assert int(clock.stamp(SEEN) * 1000) == first
    seconds[0] += 5
    assert int(clock.stamp(PLAIN) * 1000) == int(seconds[0] * 1000)


def test_a_clock_that_was_put_back_is_followed() -> None:
    seconds = [1_790_000_000.0]
    clock = EventClock(lambda: seconds[0])
    clock.stamp(PLAIN)
    seconds[0] -= 3600
    assert clock.stamp(PLAIN) == pytest.approx(seconds[0], abs=0.002)
    ahead = [clock.stamp(PLAIN) - seconds[0] for _ in range(AHEAD_AT_MOST_MS + 2)]
    assert max(ahead) < AHEAD_AT_MOST_MS / 1000 + 0.001
