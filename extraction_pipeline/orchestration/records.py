"""What each materialization says: typed metadata from the ledger's rows. Pure, and no contents."""

from collections.abc import Iterable, Iterator
from decimal import Decimal

from extraction_pipeline.dagster_storage.plain_record import Plain, PlainRecord, RecordKind
from extraction_pipeline.ledger.answers import RecordRow
from extraction_pipeline.ledger.documents import RecordableDocument
from extraction_pipeline.ledger.jobs import JobRow
from extraction_pipeline.ledger.states import DocumentState, ItemState
from extraction_pipeline.orchestration.partitions import (
    documents_asset,
    extraction_key,
    extractions_asset,
    responses_asset,
    submissions_asset,
)
from extraction_pipeline.prices.price_list import exact

Metadata = dict[str, Plain]

ENDED_WITHOUT_RECORD = frozenset({ItemState.FAILED, ItemState.RELEASED, ItemState.SUPERSEDED})


def document_records(
    collection: str, documents: Iterable[RecordableDocument], *, show_paths: bool
) -> Iterator[PlainRecord]:
    """A materialization for every readable document, and an observation with the reason for every
    unreadable one: it was seen, and did not pass."""
    for document in sorted(documents, key=lambda one: one.state is DocumentState.UNREADABLE):
        metadata: Metadata = _known(
            {
                "collection": collection,
                "state": document.state.value,
                "reason": document.unreadable_reason,
                "kind": document.kind,
                "encoding": document.encoding,
                "pages": document.pages,
                "pages_without_text": document.pages_without_text,
                "bytes": document.byte_size,
                "characters": document.text_characters,
                "content_hash": document.content_hash,
                "text_hash": document.text_hash,
                "sources": document.source_count,
                "path": document.example_path if show_paths else None,
                "first_seen": document.first_seen_at,
            }
        )
        key = documents_asset(collection)
        kind = (
            RecordKind.MATERIALIZATION
            if document.state is DocumentState.READABLE
            else RecordKind.OBSERVATION
        )
        yield PlainRecord(kind, key, document.document_hash, metadata)


def submission_records(job: JobRow, rows: Iterable[RecordRow]) -> Iterator[PlainRecord]:
    """One materialization for every document whose last request this is and the provider has."""
    for row in rows:
        if not row.last_sent:
            continue
        yield PlainRecord(
            RecordKind.MATERIALIZATION,
            asset_key=submissions_asset(job.collection),
            partition=extraction_key(row.document_hash, job.version_name),
            metadata=_known(
                {
                    **_job_metadata(job),
                    "http_status": job.submit_http_status,
                    "request_id": job.submit_request_id,
                    "attempt": row.attempt,
                    "custom_id": row.custom_id,
                    "document_key": row.document_key,
                    "text_hash": row.text_hash,
                    "payload_hash": job.payload_hash,
                    "requests_in_job": job.request_count,
                    "job_costs_at_most": _money(job.estimated_amount, job.estimated_currency),
                    "submitted": job.submitted_at,
                }
            ),
        )


def response_records(job: JobRow, rows: Iterable[RecordRow]) -> Iterator[PlainRecord]:
    """One materialization for every document whose raw response is stored and counts."""
    for row in rows:
        if row.answer_stands:
            yield PlainRecord(
                RecordKind.MATERIALIZATION,
                asset_key=responses_asset(job.collection),
                partition=extraction_key(row.document_hash, job.version_name),
                metadata=_known(
                    {
                        **_job_metadata(job),
                        "outcome": row.outcome,
                        "http_status": row.http_status,
                        "request_id": row.request_id,
                        "model": row.model,
                        "attempt": row.attempt,
                        "raw_hash": row.raw_hash,
                        "schema_version": job.schema_version,
                        "input_tokens": row.input_tokens,
                        "output_tokens": row.output_tokens,
                        "cost": _money(row.cost, row.currency),
                        "received": row.received_at,
                    }
                ),
            )


def extraction_records(job: JobRow, rows: Iterable[RecordRow]) -> Iterator[PlainRecord]:
    """One materialization for every published extraction."""
    for row in rows:
        if row.extraction_hash is not None:
            yield PlainRecord(
                RecordKind.MATERIALIZATION,
                asset_key=extractions_asset(job.collection),
                partition=extraction_key(row.document_hash, job.version_name),
                metadata=_known(
                    {
                        **_job_metadata(job),
                        "http_status": row.http_status,
                        "request_id": row.request_id,
                        "model": row.model,
                        "attempt": row.attempt,
                        "raw_hash": row.raw_hash,
                        "extraction_hash": row.extraction_hash,
                        "text_hash": row.text_hash,
                        "schema_version": row.extraction_schema,
                        "input_tokens": row.input_tokens,
                        "output_tokens": row.output_tokens,
                        "evidence_found": row.evidence_found,
                        "evidence_total": row.evidence_total,
                        "published": row.published_at,
                    }
                ),
            )


def end_records(job: JobRow, rows: Iterable[RecordRow]) -> Iterator[PlainRecord]:
    """An observation for every request that has ended without becoming the record: its kind and
    reason. It asserts nothing, and is seen under the partition's events."""
    for row in rows:
        if row.state in ENDED_WITHOUT_RECORD:
            yield PlainRecord(
                RecordKind.OBSERVATION,
                asset_key=extractions_asset(job.collection),
                partition=extraction_key(row.document_hash, job.version_name),
                description=f"Attempt {row.attempt} {row.state}: "
                f"{row.failure_reason or 'another answer is the record'}.",
                metadata=_known(
                    {
                        **_job_metadata(job),
                        "attempt": row.attempt,
                        "state": row.state,
                        "kind": row.failure_kind,
                        "reason": row.failure_reason,
                        "outcome": row.outcome,
                        "http_status": row.http_status,
                        "request_id": row.request_id,
                        "raw_hash": row.raw_hash,
                        "cost": _money(row.cost, row.currency),
                    }
                ),
            )


def _job_metadata(job: JobRow) -> dict[str, Plain | None]:
    return {
        "collection": job.collection,
        "extraction_version": job.version_name,
        "provider": job.provider,
        "job_key": job.job_key,
        "job_id": job.job_id,
    }


def _known(metadata: dict[str, Plain | None]) -> Metadata:
    return {name: value for name, value in metadata.items() if value is not None}


def _money(amount: Decimal | None, currency: str | None) -> str | None:
    """As text: a float would not be the amount."""
    return None if amount is None else f"{exact(amount)} {currency}"
