"""Cleaning: what a provider holds of a collected job is deleted there, where a setting asks for it.

Payload and results are stored here by then. What could not be deleted is tried again later, and a
provider that cannot be reached holds nothing else up.
"""

from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.ledger import cleaned
from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.states import AuditEvent
from extraction_pipeline.lifecycle.calls_made import with_calls
from extraction_pipeline.lifecycle.pausing import accounts, asks_to_wait, heeding
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.providers.call_log import calls_kept
from extraction_pipeline.providers.errors import ProviderError

MOST_AT_ONCE = 100
"""Jobs of one call; what is more is left for the next."""


def clean_up(pipeline: Pipeline, actor: str) -> list[str]:
    """Delete what providers hold of collected jobs; a line for each job that it did not work for.

    Does nothing where `EXTRACTION_DELETE_AT_PROVIDER` is not set.
    """
    if not pipeline.settings.delete_at_provider:
        return []
    with pipeline.engine.connect() as connection:
        due = cleaned.jobs_to_clean(connection, MOST_AT_ONCE, accounts(pipeline))
    faults: list[str] = []
    paused: set[str] = set()
    for job in due:
        if job.provider in paused:
            continue
        try:
            with calls_kept(), heeding(pipeline, job.provider):
                pipeline.provider(job.provider).clean_up(job.job_id, job.file_ids)
                details = with_calls()
        except (ProviderError, ConfigurationError) as error:
            if isinstance(error, ProviderError) and asks_to_wait(error):
                paused.add(job.provider)
            faults.append(f"Job {job.job_key} could not be deleted at {job.provider}: {error}")
            continue
        crash_point(CrashPoint.CLEANED_NOT_WRITTEN)
        with pipeline.engine.begin() as connection:
            note(connection, AuditEvent.PROVIDER_CLEANED, actor, job=job.id, details=details)
    return faults
