"""Records written a thousand at a time are the records that Dagster writes one by one."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from dagster import (
    AssetKey,
    AssetMaterialization,
    AssetObservation,
    AssetRecordsFilter,
    DagsterInstance,
    GraphDefinition,
    MetadataValue,
    MultiPartitionKey,
    OpDefinition,
    OpExecutionContext,
    op,
)
from sqlalchemy import Engine, create_engine, text

from extraction_pipeline.orchestration.event_log import Record, write_records

Writer = Callable[[OpExecutionContext, Sequence[Record]], object]

PLAIN, SCATTERED, SEEN = AssetKey("plain"), AssetKey(["group", "scattered"]), AssetKey("seen")
TABLES = ("event_logs", "asset_event_tags", "asset_keys")


def one_by_one(context: OpExecutionContext, records: Sequence[Record]) -> None:
    for record in records:
        context.log_event(record)


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
    metadata = {
        "text": "a word",
        "number": 3,
        "share": 0.5,
        "time": MetadataValue.timestamp(1_790_000_000.25),
        "table": MetadataValue.json({"some": ["thing", None]}),
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
        AssetMaterialization(PLAIN, partition="a", tags={"dagster/data_version": "one"}),
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


def run_job(writer: Writer, records: Sequence[Record], instance: DagsterInstance) -> str:
    @op(name="write")
    def write(context: OpExecutionContext) -> None:
        writer(context, records)

    assert isinstance(write, OpDefinition)
    job = GraphDefinition("job", node_defs=[write]).to_job()
    result = job.execute_in_process(instance=instance)
    assert result.success
    return str(result.run_id)
