"""The last look before a create call: whether the job is still this process's own to send.

A process may be stopped for any time between the mark in the ledger and the call. Its session with
the database may end meanwhile, and the lock with it; then another finds no job at the provider, and
sends it again. So the session that holds the lock is asked when the connection to the provider is
open and the payload is about to go out. From there on the clock alone bounds the call: a payload is
not sent on after `send_timeout`. What stays open is a stop between the reading of its last piece
and the system's call that sends it, a few microseconds later.
"""

from functools import partial

from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.errors import DatabaseUnavailable
from extraction_pipeline.ledger import jobs, readings
from extraction_pipeline.ledger.database import JobLock
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.absence import latest_begin_seconds
from extraction_pipeline.lifecycle.pacing import SUBMIT_RETRY_SECONDS
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.sent import Sent


class NotBegun(Exception):
    """A create call was not made. `ours` says that the job is still this process's to send."""

    def __init__(self, why: str, *, ours: bool) -> None:
        super().__init__(why)
        self.why = why
        self.ours = ours


def require_still_ours(pipeline: Pipeline, job: jobs.JobRow, lock: JobLock) -> None:
    """Raise `NotBegun` where the lock is lost, another moved the job, or it is too late: who takes
    the job over counts on a call that began in time."""
    try:
        seconds = lock.ask(partial(jobs.seconds_in_submitting, job=job))
    except DatabaseUnavailable:
        raise NotBegun("the session that held its lock is gone", ours=False) from None
    if seconds is None:
        raise NotBegun("another run has taken it over", ours=False)
    if seconds > latest_begin_seconds(pipeline):
        raise NotBegun(f"{seconds:.0f} s had passed since it was to begin", ours=True)
    crash_point(CrashPoint.LOOKED_LAST)


def not_begun(pipeline: Pipeline, job: jobs.JobRow, stopped: NotBegun) -> Sent:
    """Leave a job whose create call was not made: to the next try, or, where it is not ours any
    more, to whoever resolves it."""
    with pipeline.engine.begin() as connection:
        if stopped.ours:
            jobs.move(connection, job, JobState.PREPARED)
            readings.postpone(connection, job, SUBMIT_RETRY_SECONDS)
        state = jobs.job_by_id(connection, job.id).state
    return Sent(
        state, f"Job {job.job_key}: its create call was not made: {stopped.why}. It is carried on."
    )
