"""How much a provider takes at once: of jobs, and of payload in them."""

from sqlalchemy import Connection

from extraction_pipeline.ledger import jobs, provider_jobs
from extraction_pipeline.providers.base import BatchProvider

TOO_LARGE = "too_large_for_provider"
"""Reason of a request, or of a job's requests, that the provider does not take for their size."""

QUEUE_FULL_CODES = ("token_limit_exceeded", "RESOURCE_EXHAUSTED")
"""Codes of jobs that failed at their validation because more was queued than the account may."""


def queue_full(connection: Connection, provider: BatchProvider, job: jobs.JobRow) -> str | None:
    """Why this job has no room beside those that are under way; `None` if it has.

    A job is never kept back from an empty queue: it is within the limits, or the provider says so.
    """
    limits = provider.limits
    if limits.jobs_at_once is None and limits.queued_bytes is None:
        return None
    under_way, queued = provider_jobs.under_way(connection, provider.name, provider.base_url)
    if under_way == 0:
        return None
    if limits.jobs_at_once is not None and under_way >= limits.jobs_at_once:
        return f"{provider.name} works on {under_way} jobs, as many as the account may have"
    if limits.queued_bytes is not None and queued + (job.payload_bytes or 0) > limits.queued_bytes:
        return f"with it, more would be queued at {provider.name} than the account may"
    return None


def bytes_per_job(connection: Connection, provider: BatchProvider) -> int:
    """How large jobs are made: half of what was last refused for its size, if anything was."""
    refused = provider_jobs.smallest_refused(
        connection, provider.name, provider.base_url, QUEUE_FULL_CODES
    )
    most = provider.limits.bytes_per_job
    return most if refused is None else min(most, refused // 2)
