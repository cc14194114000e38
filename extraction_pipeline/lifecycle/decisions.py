"""What a person decides where the pipeline cannot: about a job whose fate is not known (about
documents: `releasing`). Each decision is kept with its reason."""

from extraction_pipeline.errors import LedgerError
from extraction_pipeline.ledger import items, jobs, provider_jobs, readings
from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.database import job_lock
from extraction_pipeline.ledger.states import AuditEvent, JobState, NoAnswer
from extraction_pipeline.lifecycle.adoption import mark_submitted
from extraction_pipeline.lifecycle.calls_made import with_calls
from extraction_pipeline.lifecycle.holding import is_gone
from extraction_pipeline.lifecycle.late_results import GIVEN_UP, LOOK_SECONDS
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.providers.base import FailureKind, JobStatus
from extraction_pipeline.providers.call_log import calls_kept
from extraction_pipeline.providers.errors import CallRefused
from extraction_pipeline.providers.http_failures import safe_code

OF_UNKNOWN_FATE = (JobState.HELD, JobState.UNRESOLVED)


@calls_kept()
def adopt(pipeline: Pipeline, job_id: int, provider_job_id: str, actor: str, reason: str) -> None:
    """Take a batch that a person found at the provider for the one of this job.

    From here on it is polled and collected as any other, also where the job was given up before any
    was found. Its results prove whose it is: rows of another job land nowhere. Raises `LedgerError`
    for a job that is not held, unresolved or given up, and for a batch of another job or one that
    the provider does not know; `ProviderError` for a call that failed otherwise.
    """
    with job_lock(pipeline.engine, job_id) as held:
        with pipeline.engine.connect() as connection:
            job = jobs.job_by_id(connection, job_id)
            other = provider_jobs.key_of(connection, job.provider, provider_job_id)
        _require_unknown_fate(job, held.held)
        if other not in (None, job.job_key):
            raise LedgerError(
                f"Batch {provider_job_id} is that of job {other}.",
                remedy="Look at the provider for one that no other job has.",
            )
        status = _of_provider(pipeline, job, provider_job_id)
        with pipeline.engine.begin() as connection:
            mark_submitted(
                connection,
                job,
                status.job_id,
                status.provider_state,
                job.submit_http_status,
                job.submit_request_id,
            )
            note(
                connection,
                AuditEvent.JOB_ADOPTED,
                actor,
                job=job.id,
                details=with_calls({"job_id": status.job_id, "reason": reason}),
            )


@calls_kept()
def cancel(pipeline: Pipeline, job_id: int, actor: str, reason: str) -> str:
    """Ask the provider to stop a batch; returns the state that it says.

    Nothing is changed here: the batch is polled to its end, what was answered by then lands, and
    the rest is given back without an attempt being counted. Raises `LedgerError` for a job that is
    not with the provider, and `ProviderError`.
    """
    with pipeline.engine.connect() as connection:
        job = jobs.job_by_id(connection, job_id)
    if job.state is not JobState.SUBMITTED or job.job_id is None:
        raise LedgerError(
            f"Job {job.job_key} is {job.state.value}.",
            remedy="Only a job that the provider works on can be cancelled.",
        )
    status = pipeline.provider(job.provider).cancel(job.job_id)
    with pipeline.engine.begin() as connection:
        jobs.due_now(connection, job.id)
        note(
            connection,
            AuditEvent.CANCEL_ASKED,
            actor,
            job=job.id,
            details=with_calls({"reason": reason}),
        )
    return safe_code(status.provider_state) or "unknown"


def give_up(pipeline: Pipeline, job_id: int, actor: str, reason: str) -> int:
    """Let the members of a held job that have no answer end with a counted attempt, so that they
    may be asked about again; returns how many. What has been answered is published, and so is what
    comes after all, where no other answer was published by then.

    Raises `LedgerError` for a job that is not held.
    """
    with job_lock(pipeline.engine, job_id) as held, pipeline.engine.begin() as connection:
        job = jobs.job_by_id(connection, job_id)
        if not held or job.state is not JobState.HELD:
            raise LedgerError(
                f"Job {job.job_key} is {job.state.value}, or another run is at work on it.",
                remedy="Only a job that is held can be given up.",
            )
        ended = items.fail_job_items(
            connection, job.id, FailureKind.TRANSPORT.value, NoAnswer.GIVEN_UP.value
        )
        jobs.move(
            connection,
            job,
            JobState.COLLECTED if ended < job.request_count and job.job_id else JobState.FAILED,
            values={"failure_kind": FailureKind.TRANSPORT.value, "failure_code": GIVEN_UP},
            stamp="collected_at",
        )
        readings.postpone(connection, job, LOOK_SECONDS)
        note(
            connection,
            AuditEvent.JOB_GIVEN_UP,
            actor,
            job=job.id,
            details={"requests": ended, "reason": reason},
        )
    return ended


def _of_provider(pipeline: Pipeline, job: jobs.JobRow, provider_job_id: str) -> JobStatus:
    """What the provider says of a batch that a person names."""
    try:
        return pipeline.provider(job.provider).status(provider_job_id)
    except CallRefused as refusal:
        if not is_gone(refusal):
            raise
        raise LedgerError(
            f"{job.provider} knows no batch of this id (HTTP {refusal.http_status}); nothing was "
            f"changed, and job {job.job_key} is {job.state.value} as before.",
            remedy="Look up the id in the provider's list of batches, in the account whose key is "
            "set here. Where it has none, resolve_submission searches once more, and give_up_batch "
            "ends the job.",
        ) from refusal


def _require_unknown_fate(job: jobs.JobRow, held: bool) -> None:
    given_up = (job.state, job.failure_code, job.job_id) == (JobState.FAILED, GIVEN_UP, None)
    if not held or not (given_up or job.state in OF_UNKNOWN_FATE):
        raise LedgerError(
            f"Job {job.job_key} is {job.state.value}, or another run is at work on it.",
            remedy="Only a job that is held or unresolved, or that was given up, can be given a "
            "batch.",
        )
