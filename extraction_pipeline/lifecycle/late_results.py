"""Late results: a job that a person gave up is looked at now and then, for it may end after all.

What it brings is paid for. So it is collected like any other: a document without a record gets it
from there, and requests for it that are still open are superseded; see `ledger.late`.
"""

from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.ledger import jobs, readings
from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.states import AuditEvent, JobState
from extraction_pipeline.lifecycle.calls_made import with_calls
from extraction_pipeline.lifecycle.pausing import asks_to_wait, heeding
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.providers.errors import ProviderError

LOOK_SECONDS = 6 * 3600.0
"""From one look at a job that was given up to the next, for 45 days."""

GIVEN_UP = "given_up"
"""Failure code of a job that was given up and may still bring something."""
NOTHING_CAME = "given_up_and_ended"
"""The same, once its provider says that it never will."""


def look(pipeline: Pipeline, job: jobs.JobRow, actor: str) -> bool | None:
    """Look at a job that was given up; whether it has ended with results. `None`: the provider asks
    for no further call. What goes wrong is nobody's trouble: it is looked at again later."""
    try:
        with heeding(pipeline, job.provider):
            status = pipeline.provider(job.provider).status(job.job_id or "")
    except (ProviderError, ConfigurationError) as error:
        _later(pipeline, job)
        return None if isinstance(error, ProviderError) and asks_to_wait(error) else False
    if not status.phase.is_end:
        _later(pipeline, job)
        return False
    crash_point(CrashPoint.LATE_END_SEEN)
    with pipeline.engine.begin() as connection:
        if not status.results:
            jobs.move(connection, job, job.state, values={"failure_code": NOTHING_CAME})
            return False
        jobs.move(
            connection,
            job,
            JobState.ENDED,
            values={
                "phase": status.phase.value,
                # The code stays until its results are here: see `close_again`.
                "results_recorded_at": None,
                **jobs.WELL,
            },
            stamp="ended_at",
        )
        note(
            connection,
            AuditEvent.LATE_RESULTS,
            actor,
            job=job.id,
            details=with_calls({"phase": status.phase.value}),
        )
    crash_point(CrashPoint.LATE_END_WRITTEN)
    return True


def close_again(pipeline: Pipeline, job: jobs.JobRow) -> None:
    """Of a job that was given up, ended, and whose results cannot be had: let it be over as before,
    and look again later. Else it would be open for a person to give up once more."""
    with pipeline.engine.begin() as connection:
        before = JobState.FAILED if job.published_at is None else JobState.PUBLISHED
        jobs.move(connection, job, before)
        readings.postpone(connection, job, LOOK_SECONDS)


def _later(pipeline: Pipeline, job: jobs.JobRow) -> None:
    with pipeline.engine.begin() as connection:
        readings.postpone(connection, job, LOOK_SECONDS)
