"""Sending one job: commit the intent, call the provider once, write what it said.

    preparing ─▶ prepared ─▶ submitting ─▶ submitted
                     ▲            ├──▶ rejected
                     └────────────┴──▶ unresolved (see `resolution`)

A process may die between any two steps. What it leaves says how far it came: in `preparing` and
`prepared` no create call was made, so the job is simply carried on; in `submitting` one may have
been made, so the provider is searched first.
"""

import logging
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from shutil import copyfileobj

from sqlalchemy import Connection

from extraction_pipeline.documents.identity import content_hash_of_stream
from extraction_pipeline.errors import StoreError
from extraction_pipeline.ledger import items, jobs
from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.database import QUEUE_LOCK, lock_until_commit
from extraction_pipeline.ledger.states import AuditEvent, ItemState, JobState
from extraction_pipeline.ledger.versions import version_by_id
from extraction_pipeline.lifecycle.pacing import SUBMIT_RETRY_SECONDS
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.queueing import TOO_LARGE, queue_full
from extraction_pipeline.lifecycle.recipes import build_request, recipe_from_document
from extraction_pipeline.lifecycle.scratch import scratch_file
from extraction_pipeline.providers.base import BatchProvider, FailureKind, ProviderFiles, Submission
from extraction_pipeline.providers.errors import CallFailed, CallRefused, OutcomeUnknown
from extraction_pipeline.providers.http_failures import safe_token

log = logging.getLogger(__name__)

TOO_LARGE_STATUS = HTTPStatus.REQUEST_ENTITY_TOO_LARGE

SPEAKS_OF_THE_PAYLOAD = frozenset({400, 413, 422})
"""Only under these, and in the provider's own form of an error, is a refusal the documents' end. A
404, or a page of HTML, speaks of the way there: documents must not fail for a slip in the settings
or a gateway's bad hour."""


@dataclass(frozen=True)
class Sent:
    """How far a job came. `stop` says that the account, not the job, is at fault, `no_room` that as
    much is under way as may be, and `given_back` how many requests need smaller jobs, because this
    one was refused for its size."""

    state: JobState
    cause: str | None = None
    stop: bool = False
    no_room: bool = False
    given_back: int = 0

    @property
    def submitted(self) -> bool:
        """Whether the provider has the job and its id is written."""
        return self.state is JobState.SUBMITTED


def send(pipeline: Pipeline, job: jobs.JobRow, actor: str) -> Sent:
    """Build, upload and submit a job whose lock the caller holds."""
    if job.state is JobState.PREPARING:
        job = _build_payload(pipeline, job)
    if job.state is not JobState.PREPARED:
        return Sent(job.state)
    provider = pipeline.provider(job.provider)
    with pipeline.engine.begin() as connection:
        if (full := queue_full(connection, provider, job)) is not None:
            return _wait_for_room(connection, job, full)
    files = provider.files
    brought = job.input_id is None
    with scratch_file(pipeline.settings) as payload:
        if brought:
            _copy_payload(pipeline, job, payload)
        if files is not None and brought:
            try:
                job = _upload(pipeline, files, job, payload)
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
                values={"submit_attempt": job.submit_attempt + 1, "base_url": provider.base_url},
                stamp="submit_started_at",
            )
            job = jobs.job_by_id(connection, job.id)
            model = version_by_id(connection, job.version_id).model
        submission = Submission(
            job.job_key,
            model,
            input_id=job.input_id,
            payload=payload if files is None else None,
        )
        return _create(pipeline, provider, job, submission, actor, judged=brought)


def _wait_for_room(connection: Connection, job: jobs.JobRow, full: str) -> Sent:
    jobs.postpone(connection, job, SUBMIT_RETRY_SECONDS, trouble=False)
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
        receipt = provider.submit(submission)
    except OutcomeUnknown as error:
        return _not_known(pipeline, job, error, actor)
    except (CallFailed, CallRefused) as error:
        return _not_sent(pipeline, job, error, actor, judged=judged)
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
            note(connection, AuditEvent.JOB_SUBMITTED, actor, job=job.id)
    except jobs.StateMoved:
        return _overtaken(pipeline, job, receipt.job_id, actor)
    log.info("submitted job %s as %s", job.job_key, receipt.job_id)
    return Sent(JobState.SUBMITTED)


def _not_known(pipeline: Pipeline, job: jobs.JobRow, error: OutcomeUnknown, actor: str) -> Sent:
    """The provider may have taken the job: from here on it is searched for."""
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
            note(connection, AuditEvent.JOB_UNRESOLVED, actor, job=job.id)
    except jobs.StateMoved:
        # Our lock was lost with its session, and somebody else has resolved the job.
        with pipeline.engine.connect() as connection:
            return Sent(jobs.job_by_id(connection, job.id).state)
    return Sent(
        JobState.UNRESOLVED,
        f"Job {job.job_key}: it is not known whether the provider took it ({error.message}) "
        "It will be searched for.",
    )


def mark_submitted(
    connection: Connection,
    job: jobs.JobRow,
    provider_job_id: str,
    provider_state: str,
    http_status: int | None,
    request_id: str | None,
) -> None:
    """Write the provider's id of a job: from here on it is only ever polled."""
    jobs.move(
        connection,
        job,
        JobState.SUBMITTED,
        values={
            "job_id": provider_job_id,
            "provider_state": safe_token(provider_state),
            "submit_http_status": http_status,
            "submit_request_id": request_id,
            "trouble_count": 0,
        },
        stamp="submitted_at",
    )
    jobs.due_now(connection, job.id)


def _overtaken(pipeline: Pipeline, job: jobs.JobRow, provider_job_id: str, actor: str) -> Sent:
    """Our answer came after somebody else had resolved the job: theirs stands."""
    with pipeline.engine.begin() as connection:
        now = jobs.job_by_id(connection, job.id)
        if now.job_id != provider_job_id:
            note(
                connection,
                AuditEvent.DUPLICATE_JOB,
                actor,
                job=job.id,
                details={"job_id": provider_job_id},
            )
    if now.job_id == provider_job_id:
        return Sent(now.state)
    return Sent(
        now.state,
        f"Job {job.job_key} exists twice at {job.provider}: {provider_job_id} is not ours to "
        "collect. Cancel it there.",
    )


def _not_sent(
    pipeline: Pipeline,
    job: jobs.JobRow,
    error: CallFailed | CallRefused,
    actor: str,
    *,
    judged: bool,
) -> Sent:
    """The provider provably did not take the job: wait, or give it up if it never will.

    `judged` says that the provider had this payload before it for certain: one that was uploaded
    earlier may be gone, and the refusal mean no more than that.
    """
    kind = error.kind
    if judged and error.http_status == TOO_LARGE_STATUS and job.request_count > 1:
        given_back = _give_up(pipeline, job, error, actor, split=True)
        return Sent(JobState.REJECTED, f"Job {job.job_key}: {error}", given_back=given_back)
    if judged and kind is FailureKind.REJECTED and _speaks_of_the_payload(error):
        _give_up(pipeline, job, error, actor, split=False)
        return Sent(JobState.REJECTED, f"Job {job.job_key}: {error}")
    with pipeline.engine.begin() as connection:
        # After such a refusal the upload may be gone, so it is brought again.
        again: dict[str, object] = {"input_id": None} if kind is FailureKind.REJECTED else {}
        jobs.move(connection, job, JobState.PREPARED, values=again)
        wait = max(SUBMIT_RETRY_SECONDS, error.retry_after or 0.0)
        jobs.postpone(connection, job, wait, trouble=True)
    # With a refusal that is not about the payload, the next job would fare no better.
    elsewhere = kind is FailureKind.REJECTED and not _speaks_of_the_payload(error)
    stop = kind is FailureKind.ACCOUNT or elsewhere or error.http_status == HTTPStatus.NOT_FOUND
    return Sent(JobState.PREPARED, f"Job {job.job_key}: {error}", stop=stop)


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
            details={"http_status": error.http_status, "code": error.code},
        )
    return ended


def _build_payload(pipeline: Pipeline, job: jobs.JobRow) -> jobs.JobRow:
    """Write the payload to the store, and its checksum and its members' ids to the ledger."""
    provider = pipeline.provider(job.provider)
    with pipeline.engine.connect() as connection:
        version = version_by_id(connection, job.version_id)
    recipe = recipe_from_document(version.recipe)
    keys: list[items.ItemKeys] = []
    lost: list[items.Failure] = []
    with scratch_file(pipeline.settings) as path:
        with path.open("wb") as payload, pipeline.engine.connect() as connection:
            for chunk in items.members(connection, job.id, state=ItemState.CLAIMED):
                for item in chunk:
                    try:
                        text = pipeline.store.get(item.text_hash).decode()
                    except StoreError:
                        log.error("text %s of a document is not in the store", item.text_hash)
                        lost.append(
                            items.Failure(item.id, FailureKind.DATABASE.value, "text_not_stored")
                        )
                        continue
                    built = build_request(
                        recipe, version.name, job.job_key, item.document_hash, text
                    )
                    payload.write(provider.encode_request(built.request) + b"\n")
                    keys.append(
                        items.ItemKeys(item.id, built.document_key, built.request.custom_id)
                    )
        size = path.stat().st_size
        stored = pipeline.store.put_file(path) if keys else None
    with pipeline.engine.begin() as connection:
        items.fail_items(connection, lost)
        if stored is None:
            jobs.move(
                connection,
                job,
                JobState.REJECTED,
                values={
                    "failure_kind": FailureKind.DATABASE.value,
                    "failure_code": "text_not_stored",
                },
            )
        else:
            for start in range(0, len(keys), items.CHUNK):
                items.set_keys(connection, keys[start : start + items.CHUNK])
            jobs.move(
                connection,
                job,
                JobState.PREPARED,
                values={
                    "payload_hash": stored,
                    "payload_bytes": size,
                    "request_count": len(keys),
                },
            )
        return jobs.job_by_id(connection, job.id)


def _upload(
    pipeline: Pipeline, files: ProviderFiles, job: jobs.JobRow, payload: Path
) -> jobs.JobRow:
    receipt = files.upload(payload, job.job_key)
    with pipeline.engine.begin() as connection:
        jobs.move(connection, job, JobState.PREPARED, values={"input_id": receipt.input_id})
        return jobs.job_by_id(connection, job.id)


def _copy_payload(pipeline: Pipeline, job: jobs.JobRow, path: Path) -> None:
    """Get the payload from the store; its checksum proves that it is what was built."""
    payload_hash = job.payload_hash
    assert payload_hash is not None
    with pipeline.store.open(payload_hash) as stored, path.open("wb") as payload:
        copyfileobj(stored, payload, 1 << 20)
    with path.open("rb") as payload:
        found, _ = content_hash_of_stream(payload)
    if found != payload_hash:
        raise StoreError(
            f"The payload stored as {payload_hash} is damaged: its bytes have another hash.",
            remedy="Restore it from a backup. Nothing was sent.",
        )
