"""Asking again for a job that the provider once took: its id is known, so it is asked for by that.

Such a job exists, or did. That no list shows it, or that it is not known under its id any more,
never makes it absent: it is not sent again, and only a person's `give_up_batch` frees its
documents. The database holds to that as well: a job with an id cannot be `prepared`.
"""

from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.ledger import jobs, readings
from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.states import AuditEvent, JobState, Trouble
from extraction_pipeline.lifecycle.calls_made import with_calls
from extraction_pipeline.lifecycle.pausing import heeding, paused
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.sent import Sent
from extraction_pipeline.providers.errors import ProviderError
from extraction_pipeline.providers.http_failures import safe_code


def ask_again(pipeline: Pipeline, job: jobs.JobRow, job_id: str, actor: str) -> Sent:
    """Read the batch `job_id` of a held job, whose lock the caller holds. Where it answers, the job
    is polled from here on as before; else it stays held."""
    with pipeline.engine.connect() as connection:
        why = paused(connection, pipeline, job.provider)
    if why is not None:
        return Sent(job.state, f"Job {job.job_key} is not asked for yet: {why}.", paused=True)
    crash_point(CrashPoint.SEARCH_DUE)
    try:
        with heeding(pipeline, job.provider):
            status = pipeline.provider(job.provider).status(job_id)
    except ProviderError as error:
        return _stays_held(pipeline, job, error, actor)
    crash_point(CrashPoint.FOUND)
    with pipeline.engine.begin() as connection:
        # `submitted_at` stays: how long the answers are kept counts from there.
        jobs.move(
            connection,
            job,
            JobState.SUBMITTED,
            values={
                "provider_state": safe_code(status.provider_state),
                "failure_kind": None,
                "failure_code": None,
                **jobs.WELL,
            },
        )
        jobs.due_now(connection, job.id)
        note(
            connection,
            AuditEvent.JOB_ADOPTED,
            actor,
            job=job.id,
            details=with_calls({"job_id": job_id}),
        )
    crash_point(CrashPoint.ADOPTED)
    return Sent(JobState.SUBMITTED)


def _stays_held(pipeline: Pipeline, job: jobs.JobRow, error: ProviderError, actor: str) -> Sent:
    with pipeline.engine.begin() as connection:
        if job.state is JobState.UNRESOLVED:
            jobs.move(connection, job, JobState.HELD)
            note(connection, AuditEvent.JOB_HELD, actor, job=job.id, details=with_calls())
        trouble = Trouble.NOT_FOUND if error.gone else Trouble.UNREACHABLE
        readings.postpone(connection, job, pipeline.settings.poll_max_seconds, trouble)
    return Sent(
        JobState.HELD,
        f"Job {job.job_key} stays held: batch {job.job_id} was taken by {job.provider}, so it is "
        f"not sent again, and it does not answer ({error.message}) Check the base URL and the "
        "account and run resolve_submission again, or run give_up_batch to have its documents "
        "asked about again.",
    )
