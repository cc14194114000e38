"""Which runs are alive: each holds a lock for as long as its process lives.

Dagster's launcher for one machine notices a dead worker only while the code server lives. Without
this, a run that was lost together with it would stay STARTED: it would keep its place in the queue
and hold its batch job back for ever.

There is no moment in which a live run can be taken for a lost one. Who finds a run's lock free
takes it, and only then ends the run; a run that comes for its lock after that finds itself ended,
and stops before it has done anything. A lock that is lost with its session is back by the second
look. A process that was cut off for longer than that ends by itself (see `lifeline`).
"""

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial

from dagster import (
    AssetKey,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    RunRecord,
    RunsFilter,
)
from sqlalchemy import Engine

from extraction_pipeline.errors import LedgerError
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.orchestration.lifeline import (
    PULSE_SECONDS,
    lifeline,
    lock_engine,
    take_run_lock,
)
from extraction_pipeline.orchestration.partitions import NIGHTLY, assets_of

OURS: dict[str, str] = {"extraction/pipeline": "yes"}
"""Tags of the definitions of our jobs: their runs hold locks. Runs of assets are known by those."""

BOUNDS = {
    DagsterRunStatus.STARTED: 30.0,
    DagsterRunStatus.STARTING: 300.0,
    DagsterRunStatus.NOT_STARTED: 300.0,
}
"""Seconds in which a run in this state may be without its lock: it loads, or it was written and is
about to be begun."""

ENDED_BY_OTHERS = frozenset({DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED})
"""A run that its own process brings to one of these lets go of its lock."""

SECOND_LOOK_SECONDS = 3 * PULSE_SECONDS


def hold_for_life(url: str, instance: DagsterInstance, run_id: str) -> None:
    """Hold the lock of a run of this process from here on.

    Raises `LedgerError` if the run was taken for lost before it came here, and
    `DatabaseUnavailable`.
    """
    lifeline(url).hold(run_id, partial(_was_ended, instance, run_id))
    run = instance.get_run_by_id(run_id)
    if run is not None and run.is_finished:
        lifeline(url).let_go(run_id)
        raise LedgerError(
            "This run was ended, or taken for lost, before it had begun its work.",
            remedy="Nothing was done; start it again if nobody has.",
        )


def _was_ended(instance: DagsterInstance, run_id: str) -> bool:
    """Whether somebody has ended this run while its process could not hold its lock."""
    run = instance.get_run_by_id(run_id)
    return run is not None and run.status in ENDED_BY_OTHERS


def report_lost_runs(pipeline: Pipeline, instance: DagsterInstance) -> int:
    """Let runs of ours end as failed whose process is gone; returns how many.

    Dagster starts them again where its retries are on; the ledger makes that harmless.
    """
    ours = frozenset((AssetKey(NIGHTLY), *assets_of(pipeline.collections)))
    suspects = [
        record.dagster_run.run_id
        for record in instance.get_run_records(RunsFilter(statuses=list(BOUNDS)))
        if _age(record) > BOUNDS[record.dagster_run.status] and _is_ours(record.dagster_run, ours)
    ]
    if not suspects:
        return 0
    engine = lock_engine(pipeline.engine.url.render_as_string(hide_password=False))
    try:
        free = [run_id for run_id in suspects if _is_free(engine, run_id)]
        if free:
            time.sleep(SECOND_LOOK_SECONDS)
        return sum(_end_if_lost(engine, instance, run_id) for run_id in free)
    finally:
        engine.dispose()


def _is_ours(run: DagsterRun, ours: Iterable[AssetKey]) -> bool:
    """Whether this run takes a lock. Others may share the instance, and are left alone."""
    if run.tags.items() >= OURS.items():
        return True
    checked = {check.asset_key for check in run.asset_check_selection or ()}
    return not checked.union(run.asset_selection or ()).isdisjoint(ours)


def _is_free(engine: Engine, run_id: str) -> bool:
    with engine.connect() as session:
        free = take_run_lock(session, run_id)
        session.invalidate()  # its end frees the lock
    return free


def _end_if_lost(engine: Engine, instance: DagsterInstance, run_id: str) -> bool:
    with engine.connect() as session:
        try:
            if not take_run_lock(session, run_id):
                return False
            # Read under the lock: a run writes its last event before its process ends.
            run = instance.get_run_by_id(run_id)
            if run is None or run.status not in BOUNDS:
                return False
            instance.report_run_failed(run, "The process of this run is gone: its lock is free.")
            return True
        finally:
            session.invalidate()


def _age(record: RunRecord) -> float:
    return (datetime.now(UTC) - record.update_timestamp).total_seconds()
