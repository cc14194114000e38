"""Sending one job: commit the intent, call the provider once, write what it said.

    preparing ─▶ prepared ─▶ submitting ─▶ submitted
                     ▲            ├──▶ rejected
                     └────────────┴──▶ unresolved (see `resolution`)

A process may die between any two steps. What it leaves says how far it came: in `preparing` and
`prepared` no create call was made, so the job is simply carried on; in `submitting` one may have
been made, so the provider is searched first.
"""

import logging
from functools import partial
from http import HTTPStatus
from pathlib import Path

from sqlalchemy import Connection

from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.ledger import items, jobs, readings
from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.database import QUEUE_LOCK, JobLock, lock_until_commit
from extraction_pipeline.ledger.states import AuditEvent, JobState, Trouble
from extraction_pipeline.ledger.versions import version_by_id
from extraction_pipeline.lifecycle.adoption import (
    IdOfAnother,
    adopt,
    find,
    mark_submitted,
)
from extraction_pipeline.lifecycle.calls_made import with_calls
from extraction_pipeline.lifecycle.last_look import NotBegun, not_begun, require_still_ours
from extraction_pipeline.lifecycle.overtaken import answered_for_another, overtaken
from extraction_pipeline.lifecycle.pacing import SUBMIT_RETRY_SECONDS
from extraction_pipeline.lifecycle.pausing import heeding, paused
from extraction_pipeline.lifecycle.payload import build_payload, copy_payload
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.queueing import TOO_LARGE, queue_full
from extraction_pipeline.lifecycle.scratch import scratch_file
from extraction_pipeline.lifecycle.sent import Sent
from extraction_pipeline.providers.base import (
    BatchProvider,
    FailureKind,
    ProviderFiles,
    SearchVerdict,
    Submission,
)
from extraction_pipeline.providers.errors import (
    CallFailed,
    CallRefused,
    OutcomeUnknown,
    ProviderError,
)

log = logging.getLogger(__name__)

TOO_LARGE_STATUS = HTTPStatus.REQUEST_ENTITY_TOO_LARGE

SPEAKS_OF_THE_PAYLOAD = frozenset({400, 413, 422})
"""Only under these, and in the provider's own form of an error, is a refusal the documents' end. A
404, or a page of HTML, speaks of the way there: documents must not fail for a slip in the settings
or a gateway's bad hour."""


def send(
    pipeline: Pipeline, job: jobs.JobRow, lock: JobLock, actor: str, *, searched: bool = False
) -> Sent:
    """Build, upload and submit a job whose `lock` the caller holds.

    A job that a create call was made for is looked for before another is made, unless it was
    `searched` for just now: a refusal may be that of a call's own double, where something on the
    way had sent it twice.
    """
    if job.state is JobState.PREPARING:
        job = build_payload(pipeline, job)
        crash_point(CrashPoint.PAYLOAD_WRITTEN)
    if job.state is not JobState.PREPARED:
        return Sent(job.state)
    with pipeline.engine.connect() as connection:
        why = paused(connection, pipeline, job.provider)
    if why is not None:
        return Sent(JobState.PREPARED, f"Job {job.job_key} is not sent yet: {why}.", paused=True)
    if job.submit_attempt > 0 and not searched:
        known = _searched(pipeline, job, actor)
        if known is not None:
            return known
    provider = pipeline.provider(job.provider)
    with pipeline.engine.begin() as connection:
        if (full := queue_full(connection, provider, job)) is not None:
            return _wait_for_room(connection, job, full)
    files = provider.files
    brought = job.input_id is None
    with scratch_file(pipeline.settings) as payload:
        if brought:
            copy_payload(pipeline, job, payload)
        if files is not None and brought:
            try:
                with heeding(pipeline, job.provider):
                    job = _upload(pipeline, files, job, payload)
                crash_point(CrashPoint.UPLOAD_WRITTEN)
            except (CallFailed, CallRefused) as error:
                return _not_sent(pipeline, job, error, actor, judged=True)
        with pipeline.engine.begin() as connection:
            lock_until_commit(connection, QUEUE_LOCK, provider.base_url)
            if (full := queue_full(connection, provider, job)) is not None:
                return _wait_for_room(connection, job, full)
            jobs.move(
                connection,
                job,
                JobState.SUBMITTING,
                values={
                    "submit_attempt": job.submit_attempt + 1,
                    "base_url": provider.base_url,
                    "account": provider.account,
                },
                stamp="submit_started_at",
            )
            job = jobs.job_by_id(connection, job.id)
            model = version_by_id(connection, job.version_id).model
        submission = Submission(
            job.job_key,
            model,
            input_id=job.input_id,
            payload=payload if files is None else None,
            last_look=partial(require_still_ours, pipeline, job, lock),
        )
        crash_point(CrashPoint.CREATE_DUE)
        return _create(pipeline, provider, job, submission, actor, judged=brought)


def _searched(pipeline: Pipeline, job: jobs.JobRow, actor: str) -> Sent | None:
    """What became of an earlier create call that was refused; `None` if it made no job."""
    try:
        with heeding(pipeline, job.provider):
            search = find(pipeline, job)
    except ProviderError as error:
        with pipeline.engine.begin() as connection:
            wait = max(SUBMIT_RETRY_SECONDS, error.retry_after or 0.0)
            readings.postpone(connection, job, wait, Trouble.UNREACHABLE)
        stop = error.kind is FailureKind.ACCOUNT
        return Sent(job.state, f"Job {job.job_key} could not be searched for: {error}", stop=stop)
    match search.verdict:
        case SearchVerdict.FOUND:
            return adopt(pipeline, job, search.found, actor)
        case SearchVerdict.UNCERTAIN:
            with pipeline.engine.begin() as connection:
                jobs.move(connection, job, JobState.UNRESOLVED)
                jobs.due_now(connection, job.id)
                note(connection, AuditEvent.JOB_UNRESOLVED, actor, job=job.id, details=with_calls())
            return Sent(
                JobState.UNRESOLVED,
                f"Job {job.job_key}: its create call was refused, and whether it was taken all the "
                "same cannot be told yet. It is searched for again.",
            )
    return None


def _wait_for_room(connection: Connection, job: jobs.JobRow, full: str) -> Sent:
    readings.postpone(connection, job, SUBMIT_RETRY_SECONDS)
    return Sent(JobState.PREPARED, f"Job {job.job_key} waits: {full}.", no_room=True)


def _create(
    pipeline: Pipeline,
    provider: BatchProvider,
    job: jobs.JobRow,
    submission: Submission,
    actor: str,
    *,
    judged: bool,
) -> Sent:
    try:
        with heeding(pipeline, job.provider):
            receipt = provider.submit(submission)
    except NotBegun as stopped:
        return not_begun(pipeline, job, stopped)
    except OutcomeUnknown as error:
        return _not_known(pipeline, job, error, actor)
    except CallRefused as error:
        if judged and _is_final(job, error, carries_payload=submission.payload is not None):
            # The last look before documents fail or are asked about in other jobs.
            with pipeline.engine.begin() as connection:
                jobs.move(connection, job, JobState.PREPARED)
                job = jobs.job_by_id(connection, job.id)
            known = _searched(pipeline, job, actor)
            if known is not None:
                return known
        carried = submission.payload is not None
        return _not_sent(pipeline, job, error, actor, judged=judged, carried=carried)
    except CallFailed as error:
        return _not_sent(pipeline, job, error, actor, judged=False)
    crash_point(CrashPoint.CREATE_ACCEPTED)
    try:
        with pipeline.engine.begin() as connection:
            mark_submitted(
                connection,
                job,
                receipt.job_id,
                receipt.provider_state,
                receipt.call.http_status,
                receipt.call.request_id,
            )
            note(connection, AuditEvent.JOB_SUBMITTED, actor, job=job.id, details=with_calls())
    except jobs.StateMoved:
        return overtaken(pipeline, job, receipt, actor)
    except IdOfAnother as taken:
        return answered_for_another(pipeline, job, receipt, taken, actor)
    crash_point(CrashPoint.JOB_ID_WRITTEN)
    log.info("submitted job %s as %s", job.job_key, receipt.job_id)
    return Sent(JobState.SUBMITTED)


def _not_known(pipeline: Pipeline, job: jobs.JobRow, error: OutcomeUnknown, actor: str) -> Sent:
    """The provider may have taken the job: from here on it is searched for."""
    crash_point(CrashPoint.CREATE_UNKNOWN)
    try:
        with pipeline.engine.begin() as connection:
            jobs.move(
                connection,
                job,
                JobState.UNRESOLVED,
                values={
                    "submit_http_status": error.http_status,
                    "submit_request_id": error.request_id,
                },
            )
            jobs.due_now(connection, job.id)
            note(connection, AuditEvent.JOB_UNRESOLVED, actor, job=job.id, details=with_calls())
    except jobs.StateMoved:
        # Our lock was lost with its session, and somebody else has resolved the job.
        with pipeline.engine.connect() as connection:
            return Sent(jobs.job_by_id(connection, job.id).state)
    return Sent(
        JobState.UNRESOLVED,
        f"Job {job.job_key}: it is not known whether the provider took it ({error.message}) "
        "It will be searched for.",
    )


def _not_sent(
    pipeline: Pipeline,
    job: jobs.JobRow,
    error: CallFailed | CallRefused,
    actor: str,
    *,
    judged: bool,
    carried: bool = True,
) -> Sent:
    """The provider did not take the job: wait, or give it up if it never will.

    `judged` says that the provider had this payload before it for certain: one that was uploaded
    earlier may be gone, and the refusal mean no more than that. `carried` says that the refused
    call held the payload itself.
    """
    crash_point(CrashPoint.CREATE_REFUSED)
    kind = error.kind
    if judged and _is_final(job, error, carries_payload=carried):
        split = _is_too_large(job, error, carries_payload=carried)
        ended = _give_up(pipeline, job, error, actor, split=split)
        return Sent(
            JobState.REJECTED, f"Job {job.job_key}: {error}", given_back=ended if split else 0
        )
    with pipeline.engine.begin() as connection:
        # After such a refusal the upload may be gone, so it is brought again.
        gone = kind is FailureKind.REJECTED or error.http_status == HTTPStatus.NOT_FOUND
        again: dict[str, object] = {"input_id": None} if gone else {}
        jobs.move(connection, job, JobState.PREPARED, values=again)
        wait = max(SUBMIT_RETRY_SECONDS, error.retry_after or 0.0)
        readings.postpone(connection, job, wait, Trouble.UNREACHABLE)
    # With a refusal that is not about the payload, the next job would fare no better.
    elsewhere = kind is FailureKind.REJECTED and not _speaks_of_the_payload(error)
    stop = kind is FailureKind.ACCOUNT or elsewhere
    return Sent(JobState.PREPARED, f"Job {job.job_key}: {error}", stop=stop)


def _is_final(job: jobs.JobRow, error: CallFailed | CallRefused, *, carries_payload: bool) -> bool:
    """Whether this job will never be taken as it is."""
    refused = error.kind is FailureKind.REJECTED and _speaks_of_the_payload(error)
    return refused or _is_too_large(job, error, carries_payload=carries_payload)


def _is_too_large(
    job: jobs.JobRow, error: CallFailed | CallRefused, *, carries_payload: bool
) -> bool:
    """Whether smaller jobs would be taken. Of a call of a few bytes, 413 says nothing."""
    too_large = error.http_status == TOO_LARGE_STATUS
    return too_large and carries_payload and job.request_count > 1


def _speaks_of_the_payload(error: CallFailed | CallRefused) -> bool:
    return error.http_status in SPEAKS_OF_THE_PAYLOAD and error.code is not None


def _give_up(
    pipeline: Pipeline,
    job: jobs.JobRow,
    error: CallFailed | CallRefused,
    actor: str,
    *,
    split: bool,
) -> int:
    """End a refused job. Its requests fail with it, or are given back for smaller jobs; returns how
    many they are."""
    reason = TOO_LARGE if error.http_status == TOO_LARGE_STATUS else error.code or "call_refused"
    with pipeline.engine.begin() as connection:
        jobs.move(
            connection,
            job,
            JobState.REJECTED,
            values={
                "failure_kind": error.kind.value,
                "failure_code": error.code,
                "submit_http_status": error.http_status,
                "submit_request_id": error.request_id,
            },
        )
        ended = (
            items.release_job_items(connection, job.id, reason)
            if split
            else items.fail_job_items(connection, job.id, error.kind.value, reason)
        )
        note(
            connection,
            AuditEvent.JOB_REJECTED,
            actor,
            job=job.id,
            details=with_calls({"http_status": error.http_status, "code": error.code}),
        )
    return ended


def _upload(
    pipeline: Pipeline, files: ProviderFiles, job: jobs.JobRow, payload: Path
) -> jobs.JobRow:
    receipt = files.upload(payload, job.job_key)
    crash_point(CrashPoint.UPLOADED)
    with pipeline.engine.begin() as connection:
        jobs.move(connection, job, JobState.PREPARED, values={"input_id": receipt.input_id})
        return jobs.job_by_id(connection, job.id)
