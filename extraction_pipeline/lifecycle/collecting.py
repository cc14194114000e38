"""Collecting: the results of an ended job are fetched once, stored, and landed row by row.

Result files go whole into the content store before a line of them is read (`fetching`, `landing`).
Members without a row get an end by how the job ended: expired and missing ones a new attempt,
cancelled ones are given back. Where the provider completed more than came, nobody knows which of
them it was, and asking again would buy again: they end for a person to decide.
"""

from collections.abc import Mapping
from dataclasses import asdict

from sqlalchemy import Connection

from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.ledger import items, jobs, readings
from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.counted import count_anew
from extraction_pipeline.ledger.database import job_lock
from extraction_pipeline.ledger.states import AuditEvent, JobState, NoAnswer, Trouble
from extraction_pipeline.lifecycle.calls_made import with_calls
from extraction_pipeline.lifecycle.fetching import NotYet, fetch, try_later
from extraction_pipeline.lifecycle.holding import count_gone
from extraction_pipeline.lifecycle.landing import Landing, Rows, land_file, price_of_answers
from extraction_pipeline.lifecycle.late_results import GIVEN_UP, close_again
from extraction_pipeline.lifecycle.pausing import heeding, require_no_pause
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.restoring import restore_results
from extraction_pipeline.providers.base import (
    FailureKind,
    JobPhase,
    JobStatus,
)
from extraction_pipeline.providers.call_log import calls_kept
from extraction_pipeline.providers.errors import CallFailed, ProviderError
from extraction_pipeline.providers.http_failures import safe_code

NOT_GIVEN_UP: Mapping[str, object] = {"failure_kind": None, "failure_code": None}
"""Of a job that was given up, and whose results came after all."""

EMPTY_END_PATIENCE = 5
"""Readings of an ended job without result files before its rows count as missing."""


@calls_kept()
def collect(pipeline: Pipeline, job_id: int, actor: str) -> tuple[jobs.JobRow, Landing]:
    """Fetch and land the results of an ended job. A job in any other state stays as it is. What
    was fetched before, and the store has lost since, is put back.

    Raises `ProviderError` (the job stays ended and is tried again), `StoreError` and `StateMoved`.
    """
    landing = Landing()
    with job_lock(pipeline.engine, job_id) as held:
        with pipeline.engine.connect() as connection:
            job = jobs.job_by_id(connection, job_id)
        if not held:
            raise jobs.StateMoved(
                f"Job {job.job_key} is being collected by another run.",
                remedy="Nothing is lost; this run has nothing to do.",
            )
        if job.state in (JobState.ENDED, JobState.COLLECTED):
            restore_results(pipeline, job)
        if job.state is not JobState.ENDED:
            return job, landing
        require_no_pause(pipeline, job.provider)
        try:
            with heeding(pipeline, job.provider):
                status = _land_results(pipeline, job, landing)
        except ProviderError as error:
            if job.failure_code == GIVEN_UP and not isinstance(error, NotYet):
                close_again(pipeline, job)
                raise
            if not error.gone:
                _count_unreachable(pipeline, job, error)
                raise
            cause, _ = count_gone(pipeline, job, error, actor)
            raise CallFailed(
                cause, kind=FailureKind.TRANSPORT, http_status=error.http_status
            ) from None
        crash_point(CrashPoint.LANDED_NOT_MARKED)
        job = _close(pipeline, job, status, landing, actor)
        crash_point(CrashPoint.COLLECTED)
    count_anew(pipeline.engine)
    return job, landing


def _count_unreachable(pipeline: Pipeline, job: jobs.JobRow, error: ProviderError) -> None:
    """Count a call without a usable answer; what `try_later` raises was counted there."""
    if isinstance(error, NotYet):
        return
    with pipeline.engine.begin() as connection:
        readings.postpone(connection, job, pipeline.settings.poll_seconds, Trouble.UNREACHABLE)


def _land_results(pipeline: Pipeline, job: jobs.JobRow, landing: Landing) -> JobStatus:
    provider = pipeline.provider(job.provider)
    status = provider.status(job.job_id or "")
    if not status.phase.is_end:
        # A lagging replica. Taken for the end it would end every member, all paid for.
        try_later(pipeline, job, Trouble.NOT_ENDED, "had ended, and is read as not ended now")
    if not status.results and _results_may_come(job, status):
        why = "ended and its result files are not there yet"
        try_later(pipeline, job, Trouble.NO_RESULT_FILES, why)
    price = price_of_answers(pipeline, job)

    def land(file: tuple[int, str], which: Rows) -> int:
        file_id, content_hash = file
        with pipeline.store.open(content_hash) as stored:
            return land_file(pipeline, provider, job, file_id, stored, price, landing, which)

    with_more: list[tuple[int, str]] = []
    for result in status.results:
        file = fetch(pipeline, provider, job, result, status)
        if land(file, Rows.ANSWERED):
            with_more.append(file)
    for file in with_more:
        land(file, Rows.UNASKED)
    return status


def _results_may_come(job: jobs.JobRow, status: JobStatus) -> bool:
    counted = bool(status.counts.completed or status.counts.failed)
    return counted and job.times(Trouble.NO_RESULT_FILES) < EMPTY_END_PATIENCE


def _close(
    pipeline: Pipeline, job: jobs.JobRow, status: JobStatus, landing: Landing, actor: str
) -> jobs.JobRow:
    """Give the members without a row their end, and the job its next state."""
    code = safe_code(status.error_code)
    nothing_came = status.phase is JobPhase.FAILED and not status.results
    with pipeline.engine.begin() as connection:
        landing.missing = _end_the_rest(connection, job, status, code, lost=_lost(landing, status))
        jobs.move(
            connection,
            job,
            JobState.FAILED if nothing_came else JobState.COLLECTED,
            values={
                **({"failure_kind": _job_kind(status).value} if nothing_came else {}),
                **(NOT_GIVEN_UP if job.failure_code == GIVEN_UP else {}),
            },
            stamp="collected_at",
        )
        for event, rows in (
            (AuditEvent.FOREIGN_RESULT, landing.foreign),
            (AuditEvent.REPEATED_RESULT, landing.repeated),
        ):
            if rows:
                note(connection, event, actor, job=job.id, details={"rows": rows})
        note(
            connection,
            AuditEvent.JOB_COLLECTED,
            actor,
            job=job.id,
            details=with_calls({"phase": status.phase.value, "code": code, **asdict(landing)}),
        )
        return jobs.job_by_id(connection, job.id)


def _job_kind(status: JobStatus) -> FailureKind:
    return status.failure_kind or FailureKind.MODEL


def _lost(landing: Landing, status: JobStatus) -> bool:
    """Whether answers were made that did not come: more were completed than landed, or none
    landed of a file that holds something else.

    Of the rows that landed, as many as the provider counts as failed are not among its completed.
    """
    counts = status.counts
    answered = landing.landed - min(landing.unasked, counts.failed or 0)
    something_else = landing.landed == 0 and (landing.foreign or landing.undecodable)
    return (counts.completed or 0) > answered or bool(something_else)


def _end_the_rest(
    connection: Connection, job: jobs.JobRow, status: JobStatus, code: str | None, *, lost: bool
) -> int:
    if lost:
        return items.fail_job_items(
            connection, job.id, FailureKind.REJECTED.value, NoAnswer.RESULTS_LOST.value
        )
    match status.phase:
        case JobPhase.CANCELLED:
            return items.release_job_items(connection, job.id, "cancelled")
        case JobPhase.EXPIRED:
            return items.fail_job_items(
                connection, job.id, FailureKind.TRANSPORT.value, NoAnswer.EXPIRED.value
            )
        case JobPhase.FAILED:
            kind, reason = _job_kind(status), code or "job_failed"
            if kind is FailureKind.TRANSPORT:
                # The provider was full, not the requests at fault: no attempt is used up.
                return items.release_job_items(connection, job.id, reason)
            return items.fail_job_items(connection, job.id, kind.value, reason)
    return items.fail_job_items(connection, job.id, FailureKind.MODEL.value, NoAnswer.MISSING.value)
