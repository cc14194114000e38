"""Publishing: stored answers become validated extractions, or failures with a kind.

Everything here reads the raw responses that are stored; nothing calls a provider. So a failure of
the database is mended by running it again, and so is a change of the normalization.
"""

import hashlib
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import orjson

from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.errors import LedgerError, StoreError, StoreUnavailable
from extraction_pipeline.ledger import answers, items, jobs
from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.counted import count_anew
from extraction_pipeline.ledger.database import job_lock
from extraction_pipeline.ledger.late import still_wanted, superseded
from extraction_pipeline.ledger.scans import read_again
from extraction_pipeline.ledger.states import AuditEvent, JobState
from extraction_pipeline.ledger.versions import VersionRow, find_version, version_by_id
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.recipes import recipe_from_document, type_of_recipe
from extraction_pipeline.providers.base import AnswerOutcome, BatchProvider, FailureKind
from extraction_pipeline.providers.http_failures import safe_code
from extraction_pipeline.schemas.document_type import DocumentType
from extraction_pipeline.schemas.evidence import check_evidence
from extraction_pipeline.schemas.validation import InvalidAnswer, validate_answer

OUTCOME_KINDS: dict[AnswerOutcome, FailureKind | None] = {
    AnswerOutcome.REFUSED: FailureKind.MODEL,
    AnswerOutcome.TRUNCATED: FailureKind.REJECTED,  # the same limit cuts the same answer again
    AnswerOutcome.BLOCKED: FailureKind.MODEL,
    AnswerOutcome.EMPTY: FailureKind.MODEL,
    AnswerOutcome.ERRORED: FailureKind.MODEL,
    AnswerOutcome.REJECTED: FailureKind.REJECTED,
    AnswerOutcome.ACCOUNT: FailureKind.ACCOUNT,
    AnswerOutcome.EXPIRED: FailureKind.TRANSPORT,
    AnswerOutcome.CANCELLED: None,  # a person stopped it: no attempt is counted
}


LOST_PATIENCE = 20
"""Answers in a row that the store cannot give before it counts as away as a whole."""

log = logging.getLogger(__name__)


@dataclass
class Publication:
    """What one pass published. `failed` counts answers that did not become an extraction,
    `superseded` valid ones of documents that have a record by another answer, `missing`
    names documents without a stored answer, and `lost` those of which the store does not hold what
    it should."""

    published: list[str] = field(default_factory=list)
    changed: int = 0
    failed: int = 0
    superseded: int = 0
    missing: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def publish_job(pipeline: Pipeline, job_id: int, run_id: str | None) -> Publication:
    """Validate and publish every stored answer of a collected job, and close it.

    Raises `StoreError` if the store lacks something; all else is published then, and the job stays
    collected until the store has it again.
    """
    result = Publication()
    with job_lock(pipeline.engine, job_id) as held:
        with pipeline.engine.connect() as connection:
            job = jobs.job_by_id(connection, job_id)
            version = version_by_id(connection, job.version_id)
        if not held:
            raise jobs.StateMoved(
                f"Job {job.job_key} is being published by another run.",
                remedy="Nothing is lost; this run has nothing to do.",
            )
        if job.state is not JobState.COLLECTED:
            return result
        kind = _type_of(pipeline, version)
        provider = pipeline.provider(job.provider)
        with pipeline.engine.connect() as reading:
            for chunk in answers.answers_of_job(reading, job.id):
                _publish_chunk(
                    pipeline, provider, kind, job.version_id, chunk, run_id, result, job.collection
                )
        if result.lost:
            raise StoreError(
                f"Job {job.job_key}: {len(result.lost)} answers wait, because the store does not "
                f"hold their bytes or their documents' texts; {len(result.published)} were "
                "published.",
                remedy="Restore the store from a backup; the log names the documents.",
            )
        crash_point(CrashPoint.PUBLISHED_NOT_MARKED)
        with pipeline.engine.begin() as connection:
            jobs.move(connection, job, JobState.PUBLISHED, stamp="published_at")
            note(
                connection,
                AuditEvent.JOB_PUBLISHED,
                run_id or "command line",
                job=job.id,
                details={
                    "published": len(result.published),
                    "failed": result.failed,
                    "superseded": superseded(connection, job.id),
                },
            )
        crash_point(CrashPoint.PUBLISHED)
    count_anew(pipeline.engine)
    return result


def replay(
    pipeline: Pipeline,
    collection: Collection,
    version_name: str,
    hashes: Sequence[str],
    run_id: str | None,
) -> Publication:
    """Publish again from stored raw responses, without inference.

    `missing` names the documents that have no stored answer at this version.
    """
    result = Publication()
    with pipeline.engine.connect() as connection:
        version = find_version(connection, collection.name, version_name)
        found = answers.latest_answers(connection, version.id, hashes) if version else []
    if version is not None:
        kind = _type_of(pipeline, version)
        provider = pipeline.provider(version.provider)
        for start in range(0, len(found), answers.CHUNK):
            chunk = found[start : start + answers.CHUNK]
            _publish_chunk(pipeline, provider, kind, version.id, chunk, run_id, result)
    answered = {answer.document_hash for answer in found}
    result.missing = [one for one in hashes if one not in answered]
    return result


def _type_of(pipeline: Pipeline, version: VersionRow) -> DocumentType:
    """The type that was asked for: a collection may be renamed, or of another type by now."""
    return type_of_recipe(recipe_from_document(version.recipe), pipeline.collections.values())


def _publish_chunk(
    pipeline: Pipeline,
    provider: BatchProvider,
    kind: DocumentType,
    version_id: int,
    chunk: Sequence[answers.StoredAnswer],
    run_id: str | None,
    result: Publication,
    arrived_in: str | None = None,
) -> None:
    """Publish answers that `arrived_in` a collection for the first time, or again without it."""
    rows: list[answers.ExtractionRow] = []
    failures: list[items.Failure] = []
    hashes: dict[int, str] = {}
    lost: list[str] = []
    ordered = sorted(chunk, key=lambda answer: (answer.content_hash, answer.byte_offset))
    texts = pipeline.store.get_many(answer.text_hash for answer in ordered)
    for (answer, line), text_of in zip(_with_lines(pipeline, ordered), texts, strict=True):
        try:
            judged = _judge(provider, kind, answer, line, text_of)
        except StoreUnavailable:
            raise  # of all, and tried again as a whole
        except StoreError as error:
            lost.append(answer.text_hash)
            if len(lost) >= LOST_PATIENCE and not rows and not failures:
                raise
            log.error("document %s cannot be published: %s", answer.document_hash, error.message)
            result.lost.append(answer.document_hash)
            continue
        if isinstance(judged, items.Failure):
            failures.append(judged)
        else:
            rows.append(judged)
            hashes[judged.item_id] = answer.document_hash
    crash_point(CrashPoint.ANSWERS_JUDGED)
    with pipeline.engine.begin() as connection:
        wanted = rows
        if arrived_in is not None:
            wanted = still_wanted(connection, arrived_in, version_id, rows)
        crash_point(CrashPoint.CHOSEN_NOT_COMMITTED)
        result.changed += answers.publish(connection, version_id, wanted, run_id)
        items.fail_items(connection, failures)
        read_again(connection, lost)
    crash_point(CrashPoint.PARTLY_PUBLISHED)
    result.published.extend(hashes[row.item_id] for row in wanted)
    result.superseded += len(rows) - len(wanted)
    result.failed += len(failures)


def _with_lines(
    pipeline: Pipeline, ordered: Sequence[answers.StoredAnswer]
) -> Iterable[tuple[answers.StoredAnswer, bytes]]:
    """Answers, in the order of files and places in them, with their bytes: each result file is
    read once and forwards."""
    for content_hash in dict.fromkeys(answer.content_hash for answer in ordered):
        with pipeline.store.open(content_hash) as stored:
            for answer in ordered:
                if answer.content_hash == content_hash:
                    stored.seek(answer.byte_offset)
                    yield answer, stored.read(answer.byte_length)


def _judge(
    provider: BatchProvider,
    kind: DocumentType,
    answer: answers.StoredAnswer,
    line: bytes,
    text_of: Callable[[], bytes],
) -> answers.ExtractionRow | items.Failure:
    if hashlib.sha256(line).hexdigest() != answer.body_hash:
        raise StoreError(
            f"The answer in content {answer.content_hash} at {answer.byte_offset} is damaged."
        )
    decoded = provider.decode_result(line)
    if decoded.outcome is not AnswerOutcome.COMPLETED or decoded.text is None:
        outcome = decoded.outcome
        if outcome is AnswerOutcome.COMPLETED:
            outcome = AnswerOutcome.EMPTY
        failure = OUTCOME_KINDS[outcome]
        return items.Failure(
            answer.item_id, failure and failure.value, _reason(outcome, decoded.error_code)
        )
    if answer.schema_version != kind.schema_version:
        raise LedgerError(
            f"A stored answer was asked for with schema {answer.schema_version}, this code has "
            f"{kind.schema_version}.",
            remedy="Use a new extraction version for the new schema.",
        )
    validated = validate_answer(kind, decoded.text)
    if isinstance(validated, InvalidAnswer):
        return items.Failure(
            answer.item_id, FailureKind.MODEL.value, f"invalid_{validated.reason.value}"
        )
    try:
        body = orjson.dumps(validated.record, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        # An integer over 64 bits: valid JSON, and more than any reader of the record can hold.
        return items.Failure(answer.item_id, FailureKind.MODEL.value, "invalid_number")
    text = text_of().decode()
    evidence = check_evidence(validated.record, text)
    return answers.ExtractionRow(
        raw_id=answer.raw_id,
        item_id=answer.item_id,
        document_id=answer.document_id,
        text_hash=answer.text_hash,
        schema_version=kind.schema_version,
        body=body.decode(),
        body_hash=hashlib.sha256(body).hexdigest(),
        evidence_found=evidence.found,
        evidence_total=evidence.total,
        late=answer.late,
    )


def _reason(outcome: AnswerOutcome, code: str | None) -> str:
    """Why there is no answer: with the provider's code where the outcome alone says too little."""
    known = safe_code(code) if outcome in (AnswerOutcome.ERRORED, AnswerOutcome.REJECTED) else None
    return f"{outcome.value}:{known}" if known and known != outcome.value else outcome.value
