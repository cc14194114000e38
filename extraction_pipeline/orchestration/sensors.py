"""The status sensor: it polls batch jobs, and asks for the run that carries each one on.

A tick does a bounded amount of work. It changes nothing that a second tick at the same time could
not change too: every move in the ledger is conditional, and every run holds its job's lock.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dagster import (
    DagsterInstance,
    DagsterRunStatus,
    DefaultSensorStatus,
    RunRequest,
    RunsFilter,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES

from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.ledger import jobs
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.announcements import attend
from extraction_pipeline.lifecycle.pacing import LONGEST_RUN_AGAIN_SECONDS, RUN_AGAIN_SECONDS
from extraction_pipeline.lifecycle.pausing import accounts, pauses_of
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.polling import Reading, poll_due
from extraction_pipeline.lifecycle.submission import BUSY_PATIENCE_SECONDS
from extraction_pipeline.orchestration.jobs import (
    ATTEMPT_TAG,
    JOB_KEY_TAG,
    collect_batch,
    resolve_submission,
)
from extraction_pipeline.orchestration.liveness import report_lost_runs
from extraction_pipeline.orchestration.resource import PipelineResource

POLLS_PER_TICK = 200
"""Of each provider."""
SECONDS_PER_TICK = 4.0
"""In which readings are begun. One that is never answered is given up after `poll_timeout` more,
one that is dripped after four times that; Dagster cuts a tick off after 60 seconds."""
RUNS_PER_TICK = 25

COLLECTABLE = frozenset({JobState.ENDED, JobState.COLLECTED, JobState.PUBLISHED})


@sensor(
    name="batch_status",
    jobs=[collect_batch, resolve_submission],
    minimum_interval_seconds=15,
    default_status=DefaultSensorStatus.RUNNING,
    description="Polls open batch jobs and requests a run for each one that ended, or whose "
    "submission is not certain.",
)
def batch_status(
    context: SensorEvaluationContext, pipeline: PipelineResource
) -> SensorResult | SkipReason:
    """One tick."""
    opened = pipeline.open()
    result = tick(opened, context.instance)
    for cause in result.causes:
        context.log.warning(cause)
    if result.requests:
        return SensorResult(run_requests=list(result.requests))
    with opened.engine.connect() as connection:
        waiting = len(jobs.unfinished(connection))
    told = "".join(f" {line}." for line in result.pauses)
    return SkipReason(
        f"{result.polled} batch jobs polled, nothing to run; {waiting} are open.{told}"
    )


@dataclass(frozen=True)
class Tick:
    """What one tick found: the polls it made, and the runs it asks for."""

    readings: tuple[Reading, ...]
    requests: tuple[RunRequest, ...]
    pauses: tuple[str, ...] = ()
    """One line for each account that waits because its provider asked for it."""

    @property
    def polled(self) -> int:
        """How many jobs were read, well or not."""
        return len(self.readings)

    @property
    def causes(self) -> tuple[str, ...]:
        """One line for each job that could not be read."""
        return tuple(reading.cause for reading in self.readings if reading.cause)


def tick(
    pipeline: Pipeline,
    instance: DagsterInstance,
    *,
    daemon: bool = True,
    versions: Sequence[int] | None = None,
) -> Tick:
    """Poll what is due, and name the runs that are needed.

    Without a `daemon` nothing starts a run that waits in the queue, so such a run keeps no job
    back. `versions` narrows the tick to jobs of these versions.
    """
    report_lost_runs(pipeline, instance)
    attend(pipeline)
    readings = poll_due(
        pipeline, "batch_status", POLLS_PER_TICK, seconds=SECONDS_PER_TICK, versions=versions
    )
    return Tick(
        readings=tuple(readings),
        requests=tuple(run_requests(pipeline, instance, daemon=daemon, versions=versions)),
        pauses=tuple(pauses_of(pipeline)),
    )


def run_requests(
    pipeline: Pipeline,
    instance: DagsterInstance,
    *,
    daemon: bool = True,
    versions: Sequence[int] | None = None,
) -> list[RunRequest]:
    """Runs for the jobs that need one and have none under way.

    The attempt is part of the run key, because a failed run blocks its key for ever.
    """
    with pipeline.engine.connect() as connection:
        waiting = jobs.jobs_to_run(
            connection,
            RUNS_PER_TICK,
            accounts=accounts(pipeline),
            again=(RUN_AGAIN_SECONDS, LONGEST_RUN_AGAIN_SECONDS),
            patience=BUSY_PATIENCE_SECONDS,
            versions=versions,
        )
    statuses = NOT_FINISHED_STATUSES if daemon else [DagsterRunStatus.STARTED]
    busy = _keys_with_run(instance, [job.job_key for job in waiting], statuses)
    requests: list[RunRequest] = []
    for job in waiting:
        if job.job_key in busy:
            continue
        with pipeline.engine.begin() as connection:
            if not jobs.claim_run(connection, job):
                continue
        crash_point(CrashPoint.RUN_CLAIMED)
        requests.append(_request(job, job.run_attempt + 1))
    return requests


def _request(job: jobs.JobRow, attempt: int) -> RunRequest:
    target, op_name = (
        (collect_batch, "collect_batch_results")
        if job.state in COLLECTABLE
        else (resolve_submission, "resolve_batch_job")
    )
    return RunRequest(
        run_key=f"{job.job_key}:{attempt}",
        job_name=target.name,
        run_config={"ops": {op_name: {"config": {"job_key": job.job_key, "attempt": attempt}}}},
        tags={
            JOB_KEY_TAG: job.job_key,
            ATTEMPT_TAG: str(attempt),
            "extraction/collection": job.collection,
            "extraction/version": job.version_name,
        },
    )


def _keys_with_run(
    instance: DagsterInstance, job_keys: Sequence[str], statuses: Sequence[DagsterRunStatus]
) -> set[str]:
    if not job_keys:
        return set()
    found = instance.get_runs(
        RunsFilter(tags={JOB_KEY_TAG: list(job_keys)}, statuses=list(statuses))
    )
    return {run.tags[JOB_KEY_TAG] for run in found}
