"""The whole history of one document: sources, requests, answers, records, and who decided what.

Hashes, codes and times only: no text of a document, an answer or a record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, text


@dataclass(frozen=True)
class DocumentFound:
    """A document of a collection, as it was last read."""

    id: int
    collection: str
    document_hash: str
    state: str
    unreadable_reason: str | None
    kind: str | None
    content_hash: str
    text_hash: str | None
    byte_size: int
    pages: int | None
    first_seen_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class SourceSeen:
    """Where it was found, and from when to when. `path` and `record_id` only where the collection
    shows them."""

    path: str | None
    record_id: str | None
    byte_size: int | None
    first_seen_at: datetime
    last_seen_at: datetime
    vanished_at: datetime | None


@dataclass(frozen=True)
class Revision:
    """An earlier content under the same identity."""

    content_hash: str
    text_hash: str | None
    seen_at: datetime


@dataclass(frozen=True)
class Attempt:
    """One request about it, with its answer and what that cost, as far as there is one."""

    version: str
    attempt: int
    state: str
    kind: str | None
    reason: str | None
    provider: str | None
    job_key: str | None
    job_id: str | None
    job_state: str | None
    submitted_at: datetime | None
    submit_request_id: str | None
    custom_id: str | None
    document_key: str | None
    text_hash: str
    payload_hash: str | None
    received_at: datetime | None
    raw_hash: str | None
    outcome: str | None
    http_status: int | None
    request_id: str | None
    model: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost: Decimal | None
    currency: str | None


@dataclass(frozen=True)
class RecordFound:
    """The record at one version, and the answer that it was made from."""

    version: str
    extraction_hash: str
    schema_version: str
    attempt: int
    job_key: str
    raw_hash: str
    text_hash: str
    evidence_found: int
    evidence_total: int
    published_at: datetime
    published_by: str | None


@dataclass(frozen=True)
class Event:
    """What was decided about it or about a job that asked for it, when and by whom. `actor` is a
    run's id, or a sensor."""

    at: datetime
    event: str
    actor: str
    job_key: str | None
    details: Mapping[str, Any]


@dataclass(frozen=True)
class History:
    """All of it, each list in order of time."""

    document: DocumentFound
    sources: Sequence[SourceSeen]
    revisions: Sequence[Revision]
    attempts: Sequence[Attempt]
    records: Sequence[RecordFound]
    events: Sequence[Event]


def documents_like(
    connection: Connection, beginning: str, collections: Sequence[str]
) -> list[DocumentFound]:
    """Documents of these collections whose hash begins so, at most ten of them."""
    rows = connection.execute(
        text("""
            SELECT id, collection, document_hash, state::text, unreadable_reason, kind,
                   content_hash, text_hash, byte_size, pages, first_seen_at, updated_at
            FROM extraction.documents
            WHERE starts_with(document_hash, :beginning) AND collection = ANY(:collections)
            ORDER BY collection, document_hash LIMIT 10
        """),
        {"beginning": beginning, "collections": list(collections)},
    )
    return [DocumentFound(*row) for row in rows]


def history_of(connection: Connection, document: DocumentFound, *, with_paths: bool) -> History:
    """Everything that the ledger knows of a document."""
    asked = {"document": document.id, "with_paths": with_paths}

    def rows(query: str, **more: object) -> Sequence[Any]:
        return connection.execute(text(query), {**asked, **more}).all()

    return History(
        document=document,
        sources=[
            SourceSeen(*row)
            for row in rows("""
                SELECT CASE WHEN :with_paths THEN path END,
                       CASE WHEN :with_paths THEN nullif(record_id, '') END,
                       byte_size, first_seen_at,
                       CASE WHEN vanished_at IS NULL THEN greatest(last_seen_at, n.at)
                            ELSE last_seen_at END,
                       vanished_at
                FROM extraction.document_sources s
                LEFT JOIN extraction.source_scans n ON n.collection = s.collection
                WHERE document_id = :document ORDER BY id
            """)
        ],
        revisions=[
            Revision(*row)
            for row in rows("""
                SELECT content_hash, text_hash, seen_at FROM extraction.document_revisions
                WHERE document_id = :document ORDER BY id
            """)
        ],
        attempts=[
            Attempt(*row)
            for row in rows("""
                SELECT v.name, i.attempt, i.state::text, i.failure_kind, i.failure_reason,
                       j.provider, j.job_key, j.job_id, j.state::text, j.submitted_at,
                       j.submit_request_id, i.custom_id, i.document_key, i.text_hash,
                       j.payload_hash, r.received_at, r.body_hash, r.outcome, r.http_status,
                       r.request_id, r.model, r.input_tokens, r.output_tokens, c.amount, c.currency
                FROM extraction.batch_items i
                JOIN extraction.extraction_versions v ON v.id = i.version_id
                LEFT JOIN extraction.batch_jobs j ON j.id = i.batch_job_id
                LEFT JOIN extraction.raw_responses r ON r.item_id = i.id
                LEFT JOIN extraction.request_costs c ON c.item_id = i.id
                WHERE i.document_id = :document ORDER BY i.id
            """)
        ],
        records=[
            RecordFound(*row)
            for row in rows("""
                SELECT v.name, e.body_hash, e.schema_version, i.attempt, j.job_key, r.body_hash,
                       e.text_hash, e.evidence_found, e.evidence_total, e.published_at,
                       e.published_by
                FROM extraction.extractions e
                JOIN extraction.extraction_versions v ON v.id = e.version_id
                JOIN extraction.raw_responses r ON r.id = e.raw_response_id
                JOIN extraction.batch_items i ON i.id = r.item_id
                JOIN extraction.batch_jobs j ON j.id = i.batch_job_id
                WHERE e.document_id = :document ORDER BY e.id
            """)
        ],
        events=[
            Event(*row)
            for row in rows(
                """
                SELECT a.at, a.event, a.actor, j.job_key, a.details - 'documents' - 'job_key'
                FROM extraction.audit_events a
                LEFT JOIN extraction.batch_jobs j ON j.id = a.batch_job_id
                WHERE a.document_id = :document
                   OR a.batch_job_id IN (SELECT batch_job_id FROM extraction.batch_items
                                         WHERE document_id = :document)
                   OR (a.event = 'documents_released' AND a.collection = :collection
                       AND jsonb_exists(a.details -> 'documents', :hash))
                ORDER BY a.at, a.id
                """,
                collection=document.collection,
                hash=document.document_hash,
            )
        ],
    )
