"""Which runs are alive: each holds a lock while it works, and PostgreSQL frees it when a process
dies.

Dagster's launcher for one machine notices a dead worker only while the code server lives. Without
this, a run that was lost together with it would stay STARTED: it would keep its place in the queue
and hold its batch job back for ever.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from dagster import (
    AssetExecutionContext,
    DagsterInstance,
    DagsterRunStatus,
    OpExecutionContext,
    RunRecord,
    RunsFilter,
)
from sqlalchemy import Connection, Engine, text

from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.orchestration.failures import one_line_failures
from extraction_pipeline.orchestration.resource import PipelineResource

LOCKED_TAG = "extraction/locked"
"""A run that carries it holds its lock for as long as it is alive."""

RUN_LOCK = 0x65787072
"""First half of the two-integer advisory lock keys; the ledger's kinds are others."""

BEGINNING_SECONDS = 10.0
"""A run may have started and not have its lock yet."""


@contextmanager
def working(
    context: OpExecutionContext | AssetExecutionContext, resource: PipelineResource
) -> Iterator[Pipeline]:
    """The pipeline, for a run that is known to be alive until the block ends.

    Errors of this project become failures of one line.
    """
    with one_line_failures():
        pipeline = resource.open()
        # A connection of its own: the pool is sized for the work.
        engine = _engine_of(pipeline)
        try:
            with engine.connect() as connection:
                _take(connection, context.run.run_id)
                context.instance.add_run_tags(context.run.run_id, {LOCKED_TAG: "yes"})
                yield pipeline
        finally:
            engine.dispose()


def report_lost_runs(pipeline: Pipeline, instance: DagsterInstance) -> int:
    """Let runs end as failed whose process is gone; returns how many.

    Dagster starts them again where its retries are on; the ledger makes that harmless.
    """
    records = instance.get_run_records(
        RunsFilter(statuses=[DagsterRunStatus.STARTED], tags={LOCKED_TAG: "yes"})
    )
    suspects = [record for record in records if _age(record) > BEGINNING_SECONDS]
    if not suspects:
        return 0
    lost = 0
    engine = _engine_of(pipeline)
    try:
        for record in suspects:
            with engine.connect() as connection:
                free = _take(connection, record.dagster_run.run_id)
                connection.invalidate()  # its end frees the lock
            if free:
                instance.report_run_failed(
                    record.dagster_run,
                    "The process of this run is gone: its lock is free.",
                )
                lost += 1
    finally:
        engine.dispose()
    return lost


def _engine_of(pipeline: Pipeline) -> Engine:
    return open_engine(pipeline.engine.url.render_as_string(hide_password=False), pool_size=1)


def _take(connection: Connection, run_id: str) -> bool:
    taken = connection.execute(
        text("SELECT pg_try_advisory_lock(:kind, hashtext(:run))"),
        {"kind": RUN_LOCK, "run": run_id},
    ).scalar_one()
    connection.commit()
    return bool(taken)


def _age(record: RunRecord) -> float:
    return (datetime.now(UTC) - record.update_timestamp).total_seconds()
