"""Polling: one reading of a job, and when the next one is due. Waiting belongs to the job."""

import logging
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.errors import (
    ConfigurationError,
    DatabaseUnavailable,
    ExtractionPipelineError,
)
from extraction_pipeline.ledger import jobs, readings
from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.states import AuditEvent, JobState, Trouble
from extraction_pipeline.lifecycle import late_results
from extraction_pipeline.lifecycle.calls_made import with_calls
from extraction_pipeline.lifecycle.holding import count_gone
from extraction_pipeline.lifecycle.pacing import next_poll
from extraction_pipeline.lifecycle.pausing import accounts, asks_to_wait, heeding
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.turns import Turns
from extraction_pipeline.providers.base import FailureKind
from extraction_pipeline.providers.call_log import calls_kept
from extraction_pipeline.providers.errors import ProviderError
from extraction_pipeline.providers.http_failures import safe_code

log = logging.getLogger(__name__)

ODD_ANSWERS = (
    ExtractionPipelineError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What an adapter or the ledger may raise at an answer of a form that nobody has seen."""

_turns = Turns()

LARGEST_COUNT = 2**31 - 1
"""Of requests in a job, for the ledger's column; what is more was never counted by anybody."""


@dataclass(frozen=True)
class Reading:
    """What one poll found: whether the job ended, or one line on why it could not be read.

    `needs_person` says that reading it again helps only after somebody has acted, `paused` that the
    provider asked for no further call of this account for now."""

    job_key: str
    ended: bool
    cause: str | None = None
    needs_person: bool = False
    paused: bool = False


@calls_kept()
def poll(pipeline: Pipeline, job: jobs.JobRow, actor: str, *, open_jobs: int = 1) -> Reading:
    """Read a submitted job once, or one that was given up.

    A failed call moves nothing: the job is read again later, and held for a person if the provider
    does not know it for long. `open_jobs` of its account are waited for, which bounds how often
    each is read.
    """
    settings = pipeline.settings
    if job.state is not JobState.SUBMITTED:
        came = late_results.look(pipeline, job, actor)
        return Reading(job.job_key, came is True, paused=came is None)
    try:
        with heeding(pipeline, job.provider):
            status = pipeline.provider(job.provider).status(job.job_id or "")
    except ProviderError as error:
        if error.gone:
            cause, needs_person = count_gone(pipeline, job, error, actor)
            return Reading(job.job_key, False, cause, needs_person)
        _read_later(pipeline, job, error.retry_after, open_jobs=open_jobs)
        return _unread(
            job,
            str(error),
            needs_person=error.kind is FailureKind.ACCOUNT,
            paused=asks_to_wait(error),
        )
    except ConfigurationError as error:
        # This process lacks what one job's provider needs, a key for example. The other jobs must
        # not wait for that.
        _read_later(pipeline, job)
        return _unread(job, str(error), needs_person=True)
    crash_point(CrashPoint.READING_MADE)
    code = safe_code(status.error_code)
    with pipeline.engine.begin() as connection:
        readings.note_reading(
            connection,
            job,
            provider_state=safe_code(status.provider_state),
            total=_bounded(status.counts.total),
            completed=_bounded(status.counts.completed),
            failed=_bounded(status.counts.failed),
        )
        if not status.phase.is_end:
            wait = next_poll(
                job.poll_count,
                0,
                first=settings.poll_seconds,
                longest=settings.poll_max_seconds,
                open_jobs=open_jobs,
            )
            readings.postpone(connection, job, wait)
            return Reading(job.job_key, False)
        try:
            jobs.move(
                connection,
                job,
                JobState.ENDED,
                values={
                    "phase": status.phase.value,
                    "failure_code": code,
                    **jobs.WELL,
                },
                stamp="ended_at",
            )
        except jobs.StateMoved:
            return Reading(job.job_key, True)  # another tick read the same end
        note(
            connection,
            AuditEvent.JOB_ENDED,
            actor,
            job=job.id,
            details=with_calls({"phase": status.phase.value, "code": code}),
        )
    crash_point(CrashPoint.END_WRITTEN)
    return Reading(job.job_key, True)


def poll_due(
    pipeline: Pipeline,
    actor: str,
    limit: int,
    *,
    seconds: float,
    versions: Sequence[int] | None = None,
) -> list[Reading]:
    """Read the jobs that are due: at most `limit` of each provider, and none begun after `seconds`;
    `versions` narrows them to jobs of these.

    Providers share the time: the next call goes to the one that has used the least of it, so that
    one that answers slowly leaves the others theirs. Who was slow before waits until the quick ones
    are done, who asks to wait is asked no more, and who leaves another tick waiting is not asked.
    Whatever one job's reading runs into, the others are read. Raises `DatabaseUnavailable`.
    """
    until = time.monotonic() + seconds
    with pipeline.engine.connect() as connection:
        due = readings.due_readings(
            connection, accounts(pipeline), per_provider=limit, versions=versions
        )
    waiting: dict[str, deque[readings.DueReading]] = {}
    for one in due:
        waiting.setdefault(one.job.provider, deque()).append(one)
    failing = {provider: some[0].failing for provider, some in waiting.items()}
    order = _turns.order(failing, share=seconds / max(len(failing), 1))
    used = {one: (slow, 0.0) for one, slow in order.items()}
    found: list[Reading] = []
    while used and (began := time.monotonic()) < until:
        provider = min(used, key=used.__getitem__)
        with _turns.reading(provider):
            reading = _read(pipeline, waiting[provider].popleft(), actor)
        found.append(reading)
        slow, before = used[provider]
        used[provider] = (slow, before + time.monotonic() - began)
        if reading.paused or not waiting[provider]:
            del used[provider]
    return found


def _read(pipeline: Pipeline, due: readings.DueReading, actor: str) -> Reading:
    job = due.job
    try:
        return poll(pipeline, job, actor, open_jobs=due.open_jobs)
    except DatabaseUnavailable:
        raise
    except ODD_ANSWERS as error:
        # An answer that nobody has thought of. Its words could be a document's: only the kind of
        # the error is told.
        log.error("job %s: reading it ended in %s", job.job_key, type(error).__name__)
        _read_later(pipeline, job)
        return _unread(job, f"what {job.provider} says of it is unusable: {type(error).__name__}.")


def _read_later(
    pipeline: Pipeline, job: jobs.JobRow, retry_after: float | None = None, *, open_jobs: int = 1
) -> None:
    wait = next_poll(
        job.poll_count,
        job.trouble_count,
        first=pipeline.settings.poll_seconds,
        longest=pipeline.settings.poll_max_seconds,
        retry_after=retry_after,
        open_jobs=open_jobs,
    )
    with pipeline.engine.begin() as connection:
        readings.postpone(connection, job, wait, Trouble.UNREACHABLE)


def _unread(
    job: jobs.JobRow, why: str, *, needs_person: bool = False, paused: bool = False
) -> Reading:
    return Reading(
        job.job_key, False, f"Job {job.job_key} could not be polled: {why}", needs_person, paused
    )


def _bounded(count: int | None) -> int | None:
    return count if count is not None and 0 <= count <= LARGEST_COUNT else None
