"""Adoption: a job that exists at the provider is looked for by what is ours in it, and taken as it
is."""

from sqlalchemy import Connection

from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.ledger import jobs, provider_jobs
from extraction_pipeline.ledger.audit import note, withdrawn_inputs
from extraction_pipeline.ledger.states import AuditEvent, JobState
from extraction_pipeline.lifecycle.naming import custom_id_prefix
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.sent import Sent
from extraction_pipeline.providers.base import FoundJob, Search, Sought
from extraction_pipeline.providers.http_failures import safe_token


def find(pipeline: Pipeline, job: jobs.JobRow) -> Search:
    """Look at the provider for a job that a create call was made for. Raises `ProviderError`."""
    assert job.submit_started_at is not None
    # An earlier attempt may have been taken late; none was made before the key existed.
    first = job.submit_started_at if job.submit_attempt == 1 else job.created_at
    with pipeline.engine.connect() as connection:
        others = provider_jobs.ids_since(connection, job.provider, first)
        uploads = withdrawn_inputs(connection, job.id)
    return pipeline.provider(job.provider).find(
        Sought(
            job_key=job.job_key,
            first_tried_at=first,
            last_tried_at=job.submit_started_at,
            request_count=job.request_count,
            custom_id_prefix=custom_id_prefix(job.job_key),
            known_job_ids=frozenset(others),
            input_ids=frozenset([*uploads, *([job.input_id] if job.input_id else [])]),
        )
    )


def adopt(pipeline: Pipeline, job: jobs.JobRow, found: tuple[FoundJob, ...], actor: str) -> Sent:
    """Keep the oldest of the jobs that were found, and name the others, to be cancelled."""
    ours, *others = sorted(
        found, key=lambda one: (one.created_at is None, one.created_at, one.job_id)
    )
    with pipeline.engine.begin() as connection:
        mark_submitted(
            connection,
            job,
            ours.job_id,
            ours.provider_state,
            job.submit_http_status,
            job.submit_request_id,
        )
        note(connection, AuditEvent.JOB_ADOPTED, actor, job=job.id, details={"job_id": ours.job_id})
        for other in others:
            note(
                connection,
                AuditEvent.DUPLICATE_JOB,
                actor,
                job=job.id,
                details={"job_id": other.job_id},
            )
    crash_point(CrashPoint.ADOPTED)
    cause = (
        f"Job {job.job_key} exists {len(found)} times at {job.provider}; {ours.job_id} is kept. "
        f"Cancel there: {', '.join(other.job_id for other in others)}."
        if others
        else None
    )
    return Sent(JobState.SUBMITTED, cause)


def mark_submitted(
    connection: Connection,
    job: jobs.JobRow,
    provider_job_id: str,
    provider_state: str,
    http_status: int | None,
    request_id: str | None,
) -> None:
    """Write the provider's id of a job: from here on it is only ever polled."""
    jobs.move(
        connection,
        job,
        JobState.SUBMITTED,
        values={
            "job_id": provider_job_id,
            "provider_state": safe_token(provider_state),
            "submit_http_status": http_status,
            "submit_request_id": request_id,
            "failure_kind": None,
            "failure_code": None,
            **jobs.WELL,
        },
        stamp="submitted_at",
    )
    jobs.due_now(connection, job.id)
