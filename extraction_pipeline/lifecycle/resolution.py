"""Resolving: a create call of unknown outcome is looked for at the provider, never guessed.

A job whose id is known is asked for by that alone (see `asking_again`). Any other is searched for.
Found under its job key, the job is adopted. Not found when no call can be under way any more, and
after a grace period (lists may lag), it is proven absent (see `absence`) and sent again under the
same key. As long as neither is proven, it waits, and in the end it is held for a person.
"""

from dataclasses import replace
from urllib.parse import urlsplit

from sqlalchemy import Connection

from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.ledger import jobs, readings
from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.database import JobLock, job_lock
from extraction_pipeline.ledger.states import AuditEvent, JobState, Trouble
from extraction_pipeline.lifecycle.absence import (
    ASKED_AGAIN,
    SENDER_LOST,
    Absence,
    require_no_late_job,
    require_same_account,
    seconds_of_doubt,
)
from extraction_pipeline.lifecycle.adoption import adopt, find
from extraction_pipeline.lifecycle.asking_again import ask_again
from extraction_pipeline.lifecycle.calls_made import with_calls
from extraction_pipeline.lifecycle.pacing import next_poll
from extraction_pipeline.lifecycle.pausing import heeding, paused
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.sending import send
from extraction_pipeline.lifecycle.sent import Sent
from extraction_pipeline.providers.base import SearchVerdict
from extraction_pipeline.providers.call_log import calls_kept
from extraction_pipeline.providers.errors import ProviderError
from extraction_pipeline.providers.names import ProviderName

HOLD_AFTER_SECONDS = 48 * 3600.0
"""By then every batch that could be this job has ended, and what can be proven is proven."""
FAILED_SEARCHES = 6
"""Searches that failed before a job of that age is held: one of them may be an outage."""

NOTHING_OF_OURS = " With the present key nothing of ours is seen there: is it the same account?"

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@calls_kept()
def resolve(pipeline: Pipeline, job_id: int, actor: str, *, patience: float = 0.0) -> Sent:
    """Carry a job on that is not with the provider for certain, whatever state it was left in.

    `patience` is how many seconds to wait for another run that is at work on it.
    """
    with job_lock(pipeline.engine, job_id, patience=patience) as held:
        with pipeline.engine.connect() as connection:
            job = jobs.job_by_id(connection, job_id)
        if not held:
            return Sent(job.state, f"Job {job.job_key}: another run is at work on it.")
        if job.job_id is not None and job.state in (JobState.HELD, JobState.UNRESOLVED):
            return ask_again(pipeline, job, job.job_id, actor)
        if job.state in (JobState.SUBMITTING, JobState.HELD):
            # Its lock is free: the process that made the call is gone. A held job comes here only
            # when a person asks.
            details = SENDER_LOST if job.state is JobState.SUBMITTING else ASKED_AGAIN
            with pipeline.engine.begin() as connection:
                jobs.move(connection, job, JobState.UNRESOLVED, values={"failure_code": None})
                note(connection, AuditEvent.JOB_UNRESOLVED, actor, job=job.id, details=details)
                job = jobs.job_by_id(connection, job.id)
        if job.state is JobState.UNRESOLVED:
            crash_point(CrashPoint.SEARCH_DUE)
            return _search(pipeline, job, held, actor)
        return send(pipeline, job, held, actor)


def _search(pipeline: Pipeline, job: jobs.JobRow, lock: JobLock, actor: str) -> Sent:
    settings = pipeline.settings
    with pipeline.engine.connect() as connection:
        why = paused(connection, pipeline, job.provider)
    if why is not None:
        return Sent(job.state, f"Job {job.job_key} is not searched for yet: {why}.", paused=True)
    try:
        with heeding(pipeline, job.provider):
            search = find(pipeline, job)
    except ProviderError as error:
        return _search_failed(pipeline, job, error, actor)
    if search.verdict is SearchVerdict.FOUND:
        crash_point(CrashPoint.FOUND)
        return adopt(pipeline, job, search.found, actor)
    here = pipeline.provider(job.provider).base_url
    if not is_same_place(job, here):
        with pipeline.engine.begin() as connection:
            return _out_of_reach(
                connection,
                job,
                settings.poll_max_seconds,
                f"Job {job.job_key} may have been taken at {job.base_url}, and the setting names "
                f"{here} now: not finding it there proves nothing. Set the base URL back.",
                actor,
            )
    if search.verdict is SearchVerdict.UNCERTAIN:
        may_be = f" It may be {', '.join(search.possible)} there." if search.possible else ""
        return _wait_or_hold(pipeline, job, may_be, actor)
    with pipeline.engine.begin() as connection:
        left = seconds_of_doubt(pipeline, connection, job)
        if left > 0:
            readings.postpone(connection, job, left)
            what = (
                "is not listed by {}; it counts as absent"
                if search.verdict is SearchVerdict.ABSENT
                else "is asked for again at {} under the same key"
            )
            return Sent(
                job.state, f"Job {job.job_key} {what.format(job.provider)} in {left:.0f} s."
            )
    try:
        with heeding(pipeline, job.provider):
            proof = (
                require_no_late_job(pipeline, job, actor)
                if search.verdict is SearchVerdict.ABSENT
                else require_same_account(pipeline, job)
            )
    except ProviderError as error:
        return _search_failed(pipeline, job, error, actor)
    match proof:
        case Absence.OTHER_ACCOUNT:
            return _wait_or_hold(pipeline, job, NOTHING_OF_OURS, actor)
        case Absence.SEARCH_AGAIN:
            return _search(pipeline, replace(job, input_id=None), lock, actor)
    with pipeline.engine.begin() as connection:
        # The upload may be gone as well; bringing it again costs nothing.
        jobs.move(connection, job, JobState.PREPARED, values={"input_id": None})
        if search.verdict is SearchVerdict.ABSENT:
            note(
                connection,
                AuditEvent.JOB_PROVEN_ABSENT,
                actor,
                job=job.id,
                details=with_calls(),
            )
        job = jobs.job_by_id(connection, job.id)
    crash_point(CrashPoint.ABSENCE_WRITTEN)
    return send(pipeline, job, lock, actor, searched=True)


def _search_failed(pipeline: Pipeline, job: jobs.JobRow, error: ProviderError, actor: str) -> Sent:
    wait = next_poll(
        0,
        job.trouble_count,
        first=pipeline.settings.poll_seconds,
        longest=pipeline.settings.poll_max_seconds,
        retry_after=error.retry_after,
    )
    why = f"Job {job.job_key} could not be searched for: {error}"
    with pipeline.engine.begin() as connection:
        return _out_of_reach(connection, job, wait, why, actor)


def _out_of_reach(
    connection: Connection, job: jobs.JobRow, wait: float, why: str, actor: str
) -> Sent:
    """Search again later; where that has gone on for so long that it may never succeed, hold the
    job, so that a person can end it."""
    failed = readings.postpone(connection, job, wait, Trouble.UNREACHABLE)
    if (
        failed < FAILED_SEARCHES
        or jobs.seconds_since_submit(connection, job.id) < HOLD_AFTER_SECONDS
    ):
        return Sent(job.state, why)
    jobs.move(connection, job, JobState.HELD)
    note(connection, AuditEvent.JOB_HELD, actor, job=job.id, details=with_calls())
    return Sent(
        JobState.HELD,
        f"{why} It is held after {failed} searches that failed: look whether {job.provider} has "
        "it, and run adopt_batch, or give_up_batch to have its documents asked about again.",
    )


def _wait_or_hold(pipeline: Pipeline, job: jobs.JobRow, why: str, actor: str) -> Sent:
    """Neither found nor proven absent: search again later, until no more can come of it."""
    settings = pipeline.settings
    with pipeline.engine.begin() as connection:
        if jobs.seconds_since_submit(connection, job.id) < HOLD_AFTER_SECONDS:
            wait = next_poll(
                job.poll_count, 0, first=settings.poll_seconds, longest=settings.poll_max_seconds
            )
            readings.postpone(connection, job, wait)
            return Sent(
                job.state,
                f"Job {job.job_key}: whether {job.provider} took it cannot be told yet.{why} "
                "It is searched for again.",
            )
        jobs.move(connection, job, JobState.HELD)
        note(connection, AuditEvent.JOB_HELD, actor, job=job.id, details=with_calls())
    return Sent(
        JobState.HELD,
        f"Job {job.job_key} is held: whether {job.provider} took it cannot be told.{why} "
        "Look there, and run resolve_submission to have it searched for again.",
    )


def is_same_place(job: jobs.JobRow, now: str) -> bool:
    """Whether the base URL `now` leads to where the job was sent.

    On this machine the port does not count for the local batch server: it gets another with each
    start and keeps its jobs. Gateways to different providers differ in it alone.
    """
    sent_to, here = urlsplit(job.base_url), urlsplit(now)
    if job.provider == ProviderName.LOCAL and {sent_to.hostname, here.hostname} <= LOOPBACK:
        return sent_to.path == here.path
    return job.base_url == now
