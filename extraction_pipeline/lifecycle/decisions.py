"""What a person decides where the pipeline cannot: about a job whose fate is not known (about
documents: `releasing`). Each decision is kept with its reason."""

from collections.abc import Sequence

from sqlalchemy import Connection

from extraction_pipeline.errors import LedgerError
from extraction_pipeline.ledger import (
    items,
    jobs,
    provider_jobs,
    readings,
    result_files,
    second_batches,
)
from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.database import job_lock
from extraction_pipeline.ledger.states import AuditEvent, JobState, NoAnswer, StuckReason
from extraction_pipeline.lifecycle.adoption import mark_submitted
from extraction_pipeline.lifecycle.calls_made import with_calls
from extraction_pipeline.lifecycle.late_results import GIVEN_UP, LOOK_SECONDS, NOTHING_CAME
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.watching import jobs_to_look_at
from extraction_pipeline.providers.base import FailureKind, JobStatus
from extraction_pipeline.providers.call_log import calls_kept
from extraction_pipeline.providers.errors import CallRefused
from extraction_pipeline.providers.http_failures import safe_code

OF_UNKNOWN_FATE = (JobState.HELD, JobState.UNRESOLVED)
ENDED_BY_A_PERSON = (
    *OF_UNKNOWN_FATE,
    JobState.SUBMITTED,
    JobState.ENDED,
    JobState.COLLECTED,
)
WITHOUT_AN_END = frozenset(
    {StuckReason.OVER_BUDGET, StuckReason.NOT_MOVING, StuckReason.CALLS_FAIL}
)
"""Reasons for which a job that is not held may never come to an end by itself."""


@calls_kept()
def adopt(pipeline: Pipeline, job_id: int, provider_job_id: str, actor: str, reason: str) -> None:
    """Take a batch that a person found at the provider for the one of this job.

    From here on it is polled and collected as any other, also where the job was given up before any
    was found. Its results prove whose it is: rows of another job land nowhere. A batch that the job
    had before is a second one from now on, to be settled. Raises `LedgerError`
    for a job that is not held, unresolved or given up, and for a batch of another job or one that
    the provider does not know; `ProviderError` for a call that failed otherwise.
    """
    with job_lock(pipeline.engine, job_id) as held:
        with pipeline.engine.connect() as connection:
            job = jobs.job_by_id(connection, job_id)
            other = provider_jobs.key_of(connection, job.provider, provider_job_id)
            fetched = result_files.fetched_files(connection, job.id)
        _require_unknown_fate(job, held.held)
        if fetched and provider_job_id != job.job_id:
            raise LedgerError(
                f"Results of batch {job.job_id} were fetched for job {job.job_key}; those of "
                "another batch would be mixed with them.",
                remedy="Run give_up_batch: what was fetched is published, and the rest is asked "
                "about again.",
            )
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
            if job.job_id not in (None, status.job_id):
                note(
                    connection,
                    AuditEvent.DUPLICATE_JOB,
                    actor,
                    job=job.id,
                    details={"job_id": job.job_id},
                )


GONE = "gone"
"""What is said of a second batch that the provider does not know any more."""
SETTLED_BY_HAND = "settled_by_hand"
"""What is said of one that a person has settled without us."""


@calls_kept()
def settle(
    pipeline: Pipeline,
    job_id: int,
    batch: str,
    actor: str,
    reason: str,
    *,
    cancel_there: bool = True,
) -> str:
    """Settle a second batch of a job, after asking the provider to stop it if it still works on it;
    returns the state that the provider says. Without `cancel_there` no call is made.

    Its answers are never collected, whatever it has cost. Raises `LedgerError` where the job has no
    such batch, or it is settled already; `ProviderError`, and then it stays to be settled.
    """
    with pipeline.engine.connect() as connection:
        job = jobs.job_by_id(connection, job_id)
        known = second_batches.unsettled(connection, job_id)
    if batch not in known:
        raise _no_second_batch(job, batch, known)
    state = _stopped(pipeline, job, batch) if cancel_there else SETTLED_BY_HAND
    with pipeline.engine.begin() as connection:
        details = with_calls({"state": state, "reason": reason})
        if not second_batches.settle(connection, job_id, batch, actor, details):
            raise _no_second_batch(job, batch, second_batches.unsettled(connection, job_id))
    return state


def _stopped(pipeline: Pipeline, job: jobs.JobRow, batch: str) -> str:
    provider = pipeline.provider(job.provider)
    try:
        status = provider.status(batch)
        if not status.phase.is_end:
            status = provider.cancel(batch)
    except CallRefused as refusal:
        if refusal.gone:
            return GONE
        raise
    return safe_code(status.provider_state) or "unknown"


def _no_second_batch(job: jobs.JobRow, batch: str, known: Sequence[str]) -> LedgerError:
    return LedgerError(
        f"Batch {batch} is no second batch of job {job.job_key}, or it is settled.",
        remedy=f"To be settled of this job: {', '.join(known) or 'none'}.",
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
    """Let the members of a held or stuck job that have no answer end with a counted attempt, so
    that they may be asked about again; returns how many. What has been answered is published, and
    so is what comes after all, where no other answer was published by then.

    Raises `LedgerError` for a job that is on its way.
    """
    with job_lock(pipeline.engine, job_id) as held, pipeline.engine.begin() as connection:
        job = jobs.job_by_id(connection, job_id)
        if not held or not _may_be_given_up(connection, pipeline, job):
            raise LedgerError(
                f"Job {job.job_key} is {job.state.value}, or another run is at work on it.",
                remedy="Only a job can be given up that is held, or that the check nothing_stuck "
                "names because it does not move, is over its waiting budget or cannot be reached.",
            )
        # Answers that were collected and cannot be published are those that the store has lost, and
        # the provider does not have any more: nothing can come of them.
        lost = job.state is JobState.COLLECTED
        ended = items.fail_job_items(
            connection,
            job.id,
            FailureKind.TRANSPORT.value,
            NoAnswer.RESULTS_LOST.value if lost else NoAnswer.GIVEN_UP.value,
            answered=lost,
        )
        jobs.move(
            connection,
            job,
            JobState.COLLECTED if ended < job.request_count and job.job_id else JobState.FAILED,
            values={
                "failure_kind": FailureKind.TRANSPORT.value,
                "failure_code": NOTHING_CAME if lost else GIVEN_UP,
            },
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


def _may_be_given_up(connection: Connection, pipeline: Pipeline, job: jobs.JobRow) -> bool:
    if job.state not in ENDED_BY_A_PERSON:
        return False
    collection = pipeline.collections.get(job.collection)
    if job.state is JobState.HELD or collection is None:  # which has no waiting budget any more
        return True
    stuck = jobs_to_look_at(connection, pipeline, collection)
    return any(
        one.job_key == job.job_key and not WITHOUT_AN_END.isdisjoint(one.reasons) for one in stuck
    )


def _of_provider(pipeline: Pipeline, job: jobs.JobRow, provider_job_id: str) -> JobStatus:
    """What the provider says of a batch that a person names."""
    try:
        return pipeline.provider(job.provider).status(provider_job_id)
    except CallRefused as refusal:
        if not refusal.gone:
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
