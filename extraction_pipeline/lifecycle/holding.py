"""Holding a job for a person: the provider does not know it, or its results, any more.

One such answer proves nothing: it may come from a replica that lags, or from the wrong place. So it
is counted, and only many in a row, from the place that the job was sent to, hold the job.
"""

from extraction_pipeline.ledger import jobs, readings
from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.states import AuditEvent, JobState, Trouble
from extraction_pipeline.lifecycle.calls_made import with_calls
from extraction_pipeline.lifecycle.pacing import next_poll
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.resolution import is_same_place
from extraction_pipeline.providers.errors import ProviderError

GONE_PATIENCE = 6
"""Answers in a row that say so before the job is held."""


def count_gone(
    pipeline: Pipeline, job: jobs.JobRow, error: ProviderError, actor: str
) -> tuple[str, bool]:
    """Count an answer that says that the job or its results are gone, and hold the job after many.

    Returns one line on it, and whether nothing but a person can help from here on.
    """
    settings = pipeline.settings
    here = pipeline.provider(job.provider).base_url
    wait = next_poll(
        job.poll_count,
        job.trouble_count,
        first=settings.poll_seconds,
        longest=settings.poll_max_seconds,
    )
    with pipeline.engine.begin() as connection:
        count = readings.postpone(connection, job, wait, Trouble.NOT_FOUND)
        if not is_same_place(job, here):
            return (
                f"Job {job.job_key} was sent to {job.base_url}, and the setting names {here} now, "
                "where it is not known. Set the base URL back.",
                True,
            )
        if count < GONE_PATIENCE:
            return f"Job {job.job_key}: {error}", False
        jobs.move(connection, job, JobState.HELD)
        note(
            connection,
            AuditEvent.JOB_HELD,
            actor,
            job=job.id,
            details=with_calls({"http_status": error.http_status}),
        )
    return (
        f"Job {job.job_key} is held: {job.provider} does not know batch {job.job_id} or its results"
        f" any more (HTTP {error.http_status}, {count} times in a row). Check the base URL and the "
        "account; then run resolve_submission to have it searched for, or give_up_batch to have its"
        " documents asked about again.",
        True,
    )
