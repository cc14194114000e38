"""Polling: one reading of a job, and when the next one is due. Waiting belongs to the job."""

import time
from dataclasses import dataclass

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.ledger import jobs
from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.states import AuditEvent, JobState
from extraction_pipeline.lifecycle.pacing import next_poll
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.providers.errors import ProviderError
from extraction_pipeline.providers.http_failures import safe_token


@dataclass(frozen=True)
class Reading:
    """What one poll found: whether the job ended, or one line on why it could not be read."""

    ended: bool
    cause: str | None = None


def poll(pipeline: Pipeline, job: jobs.JobRow, actor: str) -> Reading:
    """Read a submitted job once. A failed call moves nothing: the job is read again later."""
    settings = pipeline.settings
    try:
        status = pipeline.provider(job.provider).status(job.job_id or "")
    except (ProviderError, ConfigurationError) as error:
        # The latter: this process lacks what one job's provider needs, a key for example. The
        # other jobs must not wait for that.
        wait = next_poll(
            job.poll_count,
            job.trouble_count,
            first=settings.poll_seconds,
            longest=settings.poll_max_seconds,
            retry_after=error.retry_after if isinstance(error, ProviderError) else None,
        )
        with pipeline.engine.begin() as connection:
            jobs.postpone(connection, job, wait, trouble=True)
        return Reading(False, f"Job {job.job_key} could not be polled: {error}")
    code = safe_token(status.error_code)
    with pipeline.engine.begin() as connection:
        jobs.note_reading(
            connection,
            job,
            provider_state=safe_token(status.provider_state),
            total=status.counts.total,
            completed=status.counts.completed,
            failed=status.counts.failed,
        )
        if not status.phase.is_end:
            wait = next_poll(
                job.poll_count, 0, first=settings.poll_seconds, longest=settings.poll_max_seconds
            )
            jobs.postpone(connection, job, wait, trouble=False)
            return Reading(False)
        try:
            jobs.move(
                connection,
                job,
                JobState.ENDED,
                values={
                    "phase": status.phase.value,
                    "failure_code": code,
                    "trouble_count": 0,
                },
                stamp="ended_at",
            )
        except jobs.StateMoved:
            return Reading(True)  # another tick read the same end
        note(
            connection,
            AuditEvent.JOB_ENDED,
            actor,
            job=job.id,
            details={"phase": status.phase.value, "code": code},
        )
    return Reading(True)


def poll_due(pipeline: Pipeline, actor: str, limit: int, *, seconds: float) -> list[Reading]:
    """Read the jobs that are due, the longest waiting first: at most `limit` of them, and none
    begun after `seconds`."""
    until = time.monotonic() + seconds
    with pipeline.engine.connect() as connection:
        due = jobs.jobs_in(connection, [JobState.SUBMITTED], due_only=True, limit=limit)
    readings: list[Reading] = []
    for job in due:
        if time.monotonic() >= until:
            break
        readings.append(poll(pipeline, job, actor))
    return readings
