"""Collecting: the results of an ended job are fetched once, stored, and landed row by row.

Result files go whole into the content store before a line of them is read. A row is joined to its
document by custom id or document hash, among the job's own members alone and never by position.
Members without a row get an end by how the job ended: expired and missing ones a new attempt,
cancelled ones are given back.
"""

import hashlib
import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC
from pathlib import Path
from typing import BinaryIO, NoReturn

from sqlalchemy import Connection

from extraction_pipeline.ledger import answers, items, jobs
from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.database import job_lock
from extraction_pipeline.ledger.states import AuditEvent, JobState
from extraction_pipeline.ledger.versions import version_by_id
from extraction_pipeline.lifecycle.holding import count_gone, is_gone
from extraction_pipeline.lifecycle.naming import custom_id_prefix, is_custom_id
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.scratch import scratch_file
from extraction_pipeline.prices.price_list import Price
from extraction_pipeline.providers.base import (
    AnswerOutcome,
    BatchProvider,
    FailureKind,
    JobPhase,
    JobStatus,
    RequestCounts,
    ResultReference,
    UndecodableResult,
)
from extraction_pipeline.providers.errors import CallFailed, ProviderError
from extraction_pipeline.providers.http_failures import safe_token

log = logging.getLogger(__name__)

EMPTY_END_PATIENCE = 5
"""Readings of an ended job without result files before its rows count as missing."""


LAST_LINE_PATIENCE = 3
"""Fetches of a file whose last line is cut before it counts as a line that cannot be read."""

FOREIGN_PATIENCE = 10
"""Fetches of results that hold nothing of the job's own before its documents are given up."""

RESULTS_LOST = "results_lost"
"""Reason of documents whose answers were made and paid for, and could not be got."""

UNASKED = frozenset(
    {
        AnswerOutcome.ERRORED,
        AnswerOutcome.REJECTED,
        AnswerOutcome.ACCOUNT,
        AnswerOutcome.EXPIRED,
        AnswerOutcome.CANCELLED,
    }
)
"""How requests end for which no model was asked, so that they cost nothing where no usage says
otherwise."""
MOST_TOKENS = 2**31 - 1
"""Of one request; a provider that says more says nothing. Their sums fit the ledger's columns."""


@dataclass
class Landing:
    """What a job's results brought. `missing` members had no row of their own, `foreign` rows no
    member, `repeated` rows came second, and `undecodable` lines are of no form."""

    landed: int = 0
    missing: int = 0
    foreign: int = 0
    repeated: int = 0
    undecodable: int = 0


@dataclass(frozen=True)
class _Line:
    offset: int
    data: bytes


@dataclass(frozen=True)
class _Answer:
    """One decoded line: what it calls its request, and its row."""

    custom_id: str | None
    document_hash: str | None
    row: answers.RawRow


def collect(pipeline: Pipeline, job_id: int, actor: str) -> tuple[jobs.JobRow, Landing]:
    """Fetch and land the results of an ended job. A job in any other state stays as it is.

    Raises `ProviderError` (the job stays ended and is tried again) and `StateMoved`.
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
        if job.state is not JobState.ENDED:
            return job, landing
        try:
            status = _land_results(pipeline, job, landing)
        except ProviderError as error:
            if not is_gone(error):
                raise
            cause, _ = count_gone(pipeline, job, error, actor)
            raise CallFailed(
                cause, kind=FailureKind.TRANSPORT, http_status=error.http_status
            ) from None
        return _close(pipeline, job, status, landing, actor), landing


def _land_results(pipeline: Pipeline, job: jobs.JobRow, landing: Landing) -> JobStatus:
    provider = pipeline.provider(job.provider)
    status = provider.status(job.job_id or "")
    if not status.phase.is_end:
        # A lagging replica. Taken for the end it would end every member, all paid for.
        _try_later(pipeline, job, "had ended, and is read as not ended now")
    if not status.results and _results_may_come(job, status):
        _try_later(pipeline, job, "ended and its result files are not there yet")
    price = _price(pipeline, job)
    for result in status.results:
        file_id, content_hash = _fetch(pipeline, provider, job, result, status.counts)
        with pipeline.store.open(content_hash) as stored:
            _land_file(pipeline, provider, job, file_id, stored, price, landing)
    return status


def _price(pipeline: Pipeline, job: jobs.JobRow) -> Price | None:
    """The price of a job's answers: that of the day, in UTC, on which it was submitted."""
    with pipeline.engine.connect() as connection:
        model = version_by_id(connection, job.version_id).model
    day = (job.submitted_at or job.created_at).astimezone(UTC).date()
    return pipeline.prices.price(job.provider, model, day)


def _results_may_come(job: jobs.JobRow, status: JobStatus) -> bool:
    counts = status.counts
    return bool(counts.completed or counts.failed) and job.trouble_count < EMPTY_END_PATIENCE


def _try_later(pipeline: Pipeline, job: jobs.JobRow, why: str) -> NoReturn:
    with pipeline.engine.begin() as connection:
        jobs.postpone(connection, job, pipeline.settings.poll_seconds, trouble=True)
    raise CallFailed(f"Job {job.job_key} {why}.", kind=FailureKind.TRANSPORT)


def _fetch(
    pipeline: Pipeline,
    provider: BatchProvider,
    job: jobs.JobRow,
    result: ResultReference,
    counts: RequestCounts,
) -> tuple[int, str]:
    """(id, content hash) of a stored result stream; fetched only if it was not before."""
    with pipeline.engine.connect() as connection:
        known = answers.result_file(connection, job.id, result.kind.value)
    if known is not None:
        return known
    with scratch_file(pipeline.settings) as path:
        with provider.download(result) as chunks, path.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
        _require_whole(path, pipeline, provider, job)
        _require_ours(path, pipeline, provider, job, counts)
        size = path.stat().st_size
        content_hash = pipeline.store.put_file(path)
    with pipeline.engine.begin() as connection:
        file_id = answers.add_result_file(
            connection, job.id, result.kind.value, result.reference, content_hash, size
        )
    return file_id, content_hash


def _require_whole(
    path: Path, pipeline: Pipeline, provider: BatchProvider, job: jobs.JobRow
) -> None:
    """Refuse a body that was cut in mid-line under a good status, as often as is sensible."""
    last = b""
    with path.open("rb") as file:
        for line in file:
            last = line
    if not last or last.endswith(b"\n") or job.trouble_count >= LAST_LINE_PATIENCE:
        return
    try:
        provider.decode_result(last)
    except UndecodableResult:
        _try_later(pipeline, job, "has results that were cut short; they are fetched again")


def _require_ours(
    path: Path,
    pipeline: Pipeline,
    provider: BatchProvider,
    job: jobs.JobRow,
    counts: RequestCounts,
) -> None:
    """Refuse a body without one row of this job, such as a gateway's page under a good status.

    Taken for the results it would end every member as missing, and all would be bought again.
    """
    empty = path.stat().st_size == 0 and not counts.completed
    if job.trouble_count >= FOREIGN_PATIENCE or empty:
        return
    prefix = custom_id_prefix(job.job_key).encode()
    with path.open("rb") as file:
        ours = any(prefix in line for line in file)
    if not ours and not _names_documents_of(path, pipeline, provider, job):
        _try_later(pipeline, job, "got results of another job, or none; they are fetched again")


def _names_documents_of(
    path: Path, pipeline: Pipeline, provider: BatchProvider, job: jobs.JobRow
) -> bool:
    """Whether a row names a document of this job by its hash."""
    with path.open("rb") as file, pipeline.engine.connect() as connection:
        for lines in _line_chunks(file):
            hashes = [one.document_hash for one in _decoded(provider, lines) if one.document_hash]
            if items.items_by_document_hash(connection, job.id, hashes):
                return True
    return False


def _land_file(
    pipeline: Pipeline,
    provider: BatchProvider,
    job: jobs.JobRow,
    file_id: int,
    stored: BinaryIO,
    price: Price | None,
    landing: Landing,
) -> None:
    for lines in _line_chunks(stored):
        rows: dict[int, answers.RawRow] = {}
        decoded = _decoded(provider, lines)
        landing.undecodable += len(lines) - len(decoded)
        with pipeline.engine.begin() as connection:
            for answer, member in _with_members(connection, job, decoded):
                if member is None:
                    landing.foreign += 1
                elif member.landed_at == (file_id, answer.row.byte_offset):
                    landing.landed += 1  # by a run that did not come to the end of the job
                elif member.item_id in rows or not member.waits:
                    landing.repeated += 1
                else:
                    rows[member.item_id] = replace(answer.row, item_id=member.item_id)
            landing.landed += answers.land(
                connection,
                file_id,
                job.schema_version,
                list(rows.values()),
                price=price,
                unasked=UNASKED,
            )


def _with_members(
    connection: Connection, job: jobs.JobRow, decoded: list[_Answer]
) -> Iterator[tuple[_Answer, items.Member | None]]:
    """Answers with the member of the job that each names. One that gives two names that do not
    mean the same member names none."""
    custom_ids = [one.custom_id for one in decoded if one.custom_id is not None]
    hashes = [one.document_hash for one in decoded if one.document_hash is not None]
    by_id = items.items_by_custom_id(connection, job.id, list(filter(is_custom_id, custom_ids)))
    by_hash = items.items_by_document_hash(connection, job.id, hashes)
    for answer in decoded:
        found = [by_id.get(answer.custom_id)] if answer.custom_id is not None else []
        if answer.document_hash is not None:
            found.append(by_hash.get(answer.document_hash))
        yield answer, found[0] if all(one == found[0] for one in found) else None


def _decoded(provider: BatchProvider, lines: list[_Line]) -> list[_Answer]:
    """The lines that can be read; what an envelope says is kept where it can be stored."""
    decoded: list[_Answer] = []
    for line in lines:
        try:
            result = provider.decode_result(line.data)
        except UndecodableResult:
            continue
        status = result.http_status
        row = answers.RawRow(
            item_id=0,
            byte_offset=line.offset,
            byte_length=len(line.data),
            body_hash=hashlib.sha256(line.data).hexdigest(),
            outcome=result.outcome.value,
            http_status=status if status is not None and 0 <= status < 1000 else None,
            request_id=safe_token(result.request_id),
            model=safe_token(result.model),
            input_tokens=_tokens(result.usage.input_tokens),
            output_tokens=_tokens(result.usage.output_tokens),
        )
        decoded.append(_Answer(result.custom_id, result.document_hash, row))
    return decoded


def _tokens(count: int | None) -> int | None:
    return count if count is not None and 0 <= count <= MOST_TOKENS else None


def _line_chunks(stored: BinaryIO) -> Iterator[list[_Line]]:
    """Lines with their offsets, split on newline bytes only, without the newline."""
    offset = 0
    chunk: list[_Line] = []
    for line in stored:
        data = line.rstrip(b"\r\n")
        if data:
            chunk.append(_Line(offset, data))
        offset += len(line)
        if len(chunk) >= items.CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _close(
    pipeline: Pipeline, job: jobs.JobRow, status: JobStatus, landing: Landing, actor: str
) -> jobs.JobRow:
    """Give the members without a row their end, and the job its next state."""
    code = safe_token(status.error_code)
    nothing_came = status.phase is JobPhase.FAILED and not status.results
    with pipeline.engine.begin() as connection:
        landing.missing = _end_the_rest(connection, job, status, code, lost=_lost(landing, status))
        jobs.move(
            connection,
            job,
            JobState.FAILED if nothing_came else JobState.COLLECTED,
            values={"failure_kind": _job_kind(status).value} if nothing_came else None,
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
            details={"phase": status.phase.value, "code": code, **asdict(landing)},
        )
        return jobs.job_by_id(connection, job.id)


def _job_kind(status: JobStatus) -> FailureKind:
    return status.failure_kind or FailureKind.MODEL


def _lost(landing: Landing, status: JobStatus) -> bool:
    """Whether answers were made and not one of them came."""
    made = status.counts.completed or landing.foreign or landing.undecodable
    return bool(made) and landing.landed == 0


def _end_the_rest(
    connection: Connection, job: jobs.JobRow, status: JobStatus, code: str | None, *, lost: bool
) -> int:
    if lost:
        # Asking again would buy again; a person decides.
        return items.fail_job_items(connection, job.id, FailureKind.REJECTED.value, RESULTS_LOST)
    match status.phase:
        case JobPhase.CANCELLED:
            return items.release_job_items(connection, job.id, "cancelled")
        case JobPhase.EXPIRED:
            return items.fail_job_items(connection, job.id, FailureKind.TRANSPORT.value, "expired")
        case JobPhase.FAILED:
            kind, reason = _job_kind(status), code or "job_failed"
            if kind is FailureKind.TRANSPORT:
                # The provider was full, not the requests at fault: no attempt is used up.
                return items.release_job_items(connection, job.id, reason)
            return items.fail_job_items(connection, job.id, kind.value, reason)
    return items.fail_job_items(connection, job.id, FailureKind.MODEL.value, "missing_from_results")
