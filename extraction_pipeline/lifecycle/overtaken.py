"""A create call was answered, and its job is not as its sender left it: somebody else has taken it
over, or another job has the id that came."""

from extraction_pipeline.ledger import jobs
from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.states import AuditEvent, JobState
from extraction_pipeline.lifecycle.adoption import IdOfAnother, hold_for_id, mark_submitted
from extraction_pipeline.lifecycle.calls_made import with_calls
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.sent import Sent
from extraction_pipeline.providers.base import SubmissionReceipt

WITHOUT_A_CALL = (JobState.PREPARED, JobState.UNRESOLVED, JobState.HELD)
"""States of a job without an id in which no create call of it is under way."""


def overtaken(pipeline: Pipeline, job: jobs.JobRow, receipt: SubmissionReceipt, actor: str) -> Sent:
    """Settle an answer that came after somebody else had taken the job over. Where that has found
    nothing yet, ours is what it looks for; where it has a batch, or may be making one, it stands.
    """
    try:
        if _is_what_is_looked_for(pipeline, job, receipt, actor):
            return Sent(JobState.SUBMITTED)
    except jobs.StateMoved:
        pass  # who took it over went on meanwhile: it is seen below how far
    except IdOfAnother as taken:
        return answered_for_another(pipeline, job, receipt, taken, actor)
    with pipeline.engine.begin() as connection:
        now = jobs.job_by_id(connection, job.id)
        if now.job_id == receipt.job_id:
            return Sent(now.state)
        note(
            connection,
            AuditEvent.DUPLICATE_JOB,
            actor,
            job=job.id,
            details=with_calls({"job_id": receipt.job_id}),
        )
    return Sent(
        now.state,
        f"Job {job.job_key} exists twice at {job.provider}: {receipt.job_id} is not ours to "
        "collect. The job settle_second_batch cancels it there.",
    )


def _is_what_is_looked_for(
    pipeline: Pipeline, job: jobs.JobRow, receipt: SubmissionReceipt, actor: str
) -> bool:
    with pipeline.engine.begin() as connection:
        now = jobs.job_by_id(connection, job.id)
        if now.job_id is not None or now.state not in WITHOUT_A_CALL:
            return False
        call = receipt.call
        mark_submitted(
            connection,
            now,
            receipt.job_id,
            receipt.provider_state,
            call.http_status,
            call.request_id,
        )
        note(connection, AuditEvent.JOB_SUBMITTED, actor, job=job.id, details=with_calls())
    return True


def answered_for_another(
    pipeline: Pipeline,
    job: jobs.JobRow,
    receipt: SubmissionReceipt,
    taken: IdOfAnother,
    actor: str,
) -> Sent:
    """Hold a job whose create call was answered with the id of another one."""
    call = receipt.call
    try:
        return hold_for_id(
            pipeline, job, taken, actor, http_status=call.http_status, request_id=call.request_id
        )
    except jobs.StateMoved:
        with pipeline.engine.connect() as connection:
            return Sent(jobs.job_by_id(connection, job.id).state)
