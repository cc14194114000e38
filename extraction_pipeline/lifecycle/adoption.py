"""Adoption: a job that exists at the provider is looked for by what is ours in it, and taken as it
is."""

from sqlalchemy import Connection

from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.errors import LedgerError
from extraction_pipeline.ledger import jobs, provider_jobs
from extraction_pipeline.ledger.audit import note, withdrawn_inputs
from extraction_pipeline.ledger.database import JOB_ID_LOCK, lock_until_commit
from extraction_pipeline.ledger.states import AuditEvent, JobState, StuckReason
from extraction_pipeline.lifecycle.calls_made import with_calls
from extraction_pipeline.lifecycle.naming import custom_id_prefix
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.sent import Sent
from extraction_pipeline.providers.base import FoundJob, Search, Sought
from extraction_pipeline.providers.http_failures import safe_code


def find(pipeline: Pipeline, job: jobs.JobRow) -> Search:
    """Look at the provider for a job that a create call was made for and whose id is not known.
    Raises `ProviderError`."""
    assert job.submit_started_at is not None and job.job_id is None
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
    """Keep the oldest of the jobs that were found, and name the others, to be cancelled. Where all
    are those of other jobs of ours, the job is held."""
    with pipeline.engine.connect() as connection:
        keys = {
            one.job_id: provider_jobs.key_of(connection, job.provider, one.job_id) for one in found
        }
    free = [one for one in found if keys[one.job_id] in (None, job.job_key)]
    ours, *others = sorted(
        free or found, key=lambda one: (one.created_at is None, one.created_at, one.job_id)
    )
    try:
        _write(pipeline, job, ours, others if free else [], actor)
    except IdOfAnother as taken:
        return hold_for_id(
            pipeline,
            job,
            taken,
            actor,
            http_status=job.submit_http_status,
            request_id=job.submit_request_id,
        )
    crash_point(CrashPoint.ADOPTED)
    cause = (
        f"Job {job.job_key} exists {len(free)} times at {job.provider}; {ours.job_id} is kept. "
        f"The job settle_second_batch cancels {', '.join(other.job_id for other in others)} there."
        if others
        else None
    )
    return Sent(JobState.SUBMITTED, cause)


def _write(
    pipeline: Pipeline, job: jobs.JobRow, ours: FoundJob, others: list[FoundJob], actor: str
) -> None:
    with pipeline.engine.begin() as connection:
        mark_submitted(
            connection,
            job,
            ours.job_id,
            ours.provider_state,
            job.submit_http_status,
            job.submit_request_id,
        )
        note(
            connection,
            AuditEvent.JOB_ADOPTED,
            actor,
            job=job.id,
            details=with_calls({"job_id": ours.job_id}),
        )
        for other in others:
            note(
                connection,
                AuditEvent.DUPLICATE_JOB,
                actor,
                job=job.id,
                details={"job_id": other.job_id},
            )


ID_OF_ANOTHER = StuckReason.ID_OF_ANOTHER.value
"""Failure code of a job that is held because the provider named another job of ours for it."""


class IdOfAnother(LedgerError):
    """The provider names the same batch for two jobs; the first keeps it."""

    def __init__(self, job: jobs.JobRow, provider_job_id: str, other: str) -> None:
        super().__init__(
            f"Batch {provider_job_id} is that of job {other}, so it cannot be that of "
            f"{job.job_key} as well.",
            remedy="Look at the provider for one that no other job has.",
        )
        self.provider_job_id = provider_job_id
        self.other = other


def hold_for_id(
    pipeline: Pipeline,
    job: jobs.JobRow,
    taken: IdOfAnother,
    actor: str,
    *,
    http_status: int | None,
    request_id: str | None,
) -> Sent:
    """Hold a job that was answered with the id of another one: whether it exists is not known."""
    with pipeline.engine.begin() as connection:
        jobs.move(
            connection,
            job,
            JobState.HELD,
            values={
                "failure_code": ID_OF_ANOTHER,
                "submit_http_status": http_status,
                "submit_request_id": request_id,
            },
        )
        note(
            connection,
            AuditEvent.JOB_HELD,
            actor,
            job=job.id,
            details=with_calls(
                {
                    "code": ID_OF_ANOTHER,
                    "job_id": taken.provider_job_id,
                    "other_job": taken.other,
                }
            ),
        )
    return Sent(
        JobState.HELD,
        f"Job {job.job_key} is held: {job.provider} gave it the id {taken.provider_job_id}, which "
        f"is that of job {taken.other}. Look there for what it made of it; then run "
        "resolve_submission to have it searched for, adopt_batch, or give_up_batch.",
    )


def mark_submitted(
    connection: Connection,
    job: jobs.JobRow,
    provider_job_id: str,
    provider_state: str,
    http_status: int | None,
    request_id: str | None,
) -> None:
    """Write the provider's id of a job: from here on it is only ever polled.

    A batch that the job had before keeps its time, from which on its answers are kept; with another
    one, what was recorded of the submission is recorded anew. Raises `IdOfAnother` where another
    job has that id.
    """
    lock_until_commit(connection, JOB_ID_LOCK, f"{job.provider} {provider_job_id}")
    other = provider_jobs.key_of(connection, job.provider, provider_job_id)
    if other not in (None, job.job_key):
        raise IdOfAnother(job, provider_job_id, other)
    same = job.job_id == provider_job_id and job.submitted_at is not None
    jobs.move(
        connection,
        job,
        JobState.SUBMITTED,
        values={
            "job_id": provider_job_id,
            **({} if same else {"submission_recorded_at": None}),
            "provider_state": safe_code(provider_state),
            "submit_http_status": http_status,
            "submit_request_id": request_id,
            "failure_kind": None,
            "failure_code": None,
            **jobs.WELL,
        },
        stamp=None if same else "submitted_at",
    )
    jobs.due_now(connection, job.id)
