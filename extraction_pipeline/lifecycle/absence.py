"""Absence: that a provider's list does not show a job is no proof yet that it will never exist.

Two things stand between: the list may be that of another account, where a key was changed
meanwhile; and the create call may still be under way, held up between here and there.
"""

from enum import StrEnum

from sqlalchemy import Connection

from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.ledger import jobs, provider_jobs
from extraction_pipeline.ledger.audit import happened, note
from extraction_pipeline.ledger.states import AuditEvent, JobState
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.providers.errors import CallRefused

SENDER_LOST = {"sender": "lost"}
"""Details of a job found in mid-call with its lock free: its process is gone, or only its session
with the database, and then the call may go on."""

SHORTEST_BEGIN_SECONDS = 2.0
"""From the mark of a create call to its first byte, on a machine that is busy."""

ASKED_AGAIN = {"sender": "asked_again"}
"""Details of a job that a person has searched for once more: no call of it was made since."""


class Absence(StrEnum):
    """What is proven of a job that a search did not find."""

    PROVEN = "proven"
    SEARCH_AGAIN = "search_again"
    """From now on no call can make it, but one may have since the search."""
    OTHER_ACCOUNT = "other_account"
    """The provider shows nothing of ours: the search was of another account."""


def latest_begin_seconds(pipeline: Pipeline) -> float:
    """Within so many seconds from its mark a create call begins to send its payload, or is not
    made."""
    return max(pipeline.settings.connect_timeout, SHORTEST_BEGIN_SECONDS)


def seconds_of_doubt(pipeline: Pipeline, connection: Connection, job: jobs.JobRow) -> float:
    """Seconds until no call of this job can be on its way any more, and lists must show it.

    They count from when the call was given up, not from when it began: a payload may be sent for
    long. Where its end was not seen, from the longest that it may have lasted.
    """
    settings = pipeline.settings
    grace = settings.read_timeout + settings.resolve_grace_seconds
    doubt = jobs.doubt(connection, job.id)
    left = grace - doubt.since_given_up
    if doubt.sender_lost and pipeline.provider(job.provider).files is None:
        longest = latest_begin_seconds(pipeline) + settings.send_timeout
        left = max(left, longest + grace - doubt.since_submit)
    return left


def require_no_late_job(pipeline: Pipeline, job: jobs.JobRow, actor: str) -> Absence:
    """Make sure that a create call of this job that is still under way makes no job any more.

    Where the call names an upload, the upload is deleted: it was seen before, which proves the
    account. `ProviderError` is passed on.
    """
    files = pipeline.provider(job.provider).files
    if files is None:
        return Absence.PROVEN if _sees_ours(pipeline, job) else Absence.OTHER_ACCOUNT
    if job.input_id is None:
        return Absence.PROVEN
    with pipeline.engine.connect() as connection:
        begun = happened(connection, AuditEvent.INPUT_WITHDRAWN, job.id, job.submit_attempt)
    if not begun:
        if not files.holds(job.input_id):
            return Absence.OTHER_ACCOUNT
        with pipeline.engine.begin() as connection:
            # Committed before the call: a process that dies behind it finds no upload next time.
            note(
                connection,
                AuditEvent.INPUT_WITHDRAWN,
                actor,
                job=job.id,
                details={"input_id": job.input_id, "attempt": job.submit_attempt},
            )
    crash_point(CrashPoint.WITHDRAWAL_WRITTEN)
    files.delete(job.input_id)
    crash_point(CrashPoint.INPUT_DELETED)
    with pipeline.engine.begin() as connection:
        jobs.move(connection, job, JobState.UNRESOLVED, values={"input_id": None})
    crash_point(CrashPoint.INPUT_GONE_WRITTEN)
    return Absence.SEARCH_AGAIN


def require_same_account(pipeline: Pipeline, job: jobs.JobRow) -> Absence:
    """Make sure that a create call which is repeated under its key reaches the account that it was
    first made with: in another one it would make a second job. `ProviderError` is passed on."""
    same = job.account in (None, pipeline.provider(job.provider).account)
    return Absence.PROVEN if same or _sees_ours(pipeline, job) else Absence.OTHER_ACCOUNT


def _sees_ours(pipeline: Pipeline, job: jobs.JobRow) -> bool:
    """Whether the newest job that this provider is known to have is seen with the present key.

    Without any there is nothing to tell accounts apart by, but that the key is the same.
    """
    with pipeline.engine.connect() as connection:
        witness = provider_jobs.newest_at(connection, job.provider, job.base_url)
    if witness is None:
        return job.account in (None, pipeline.provider(job.provider).account)
    try:
        pipeline.provider(job.provider).status(witness)
    except CallRefused as refusal:
        if refusal.http_status == 404:
            return False
        raise
    return True
