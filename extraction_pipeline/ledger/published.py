"""Published extractions with where they come from, for exports and for showing one."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, text


@dataclass(frozen=True)
class PublishedRow:
    """One extraction, its provenance, and what its answer cost. `path` is one current source of
    the document."""

    collection: str
    document_hash: str
    version: str
    schema_version: str
    provider: str
    model: str | None
    job_key: str
    job_id: str
    request_id: str | None
    raw_hash: str
    extraction_hash: str
    text_hash: str
    published_at: datetime
    evidence_found: int
    evidence_total: int
    cost: Decimal | None
    currency: str | None
    body: dict[str, Any]
    path: str | None


_QUERY = """
    SELECT d.collection, d.document_hash, v.name AS version, e.schema_version, j.provider,
           coalesce(r.model, v.model) AS model, j.job_key, j.job_id, r.request_id,
           r.body_hash AS raw_hash, e.body_hash AS extraction_hash, e.text_hash, e.published_at,
           e.evidence_found, e.evidence_total, c.amount AS cost, c.currency, e.body,
           (SELECT min(s.path) FROM extraction.document_sources s
            WHERE s.document_id = d.id AND s.vanished_at IS NULL) AS path
    FROM extraction.extractions e
    JOIN extraction.documents d ON d.id = e.document_id
    JOIN extraction.extraction_versions v ON v.id = e.version_id
    JOIN extraction.raw_responses r ON r.id = e.raw_response_id
    JOIN extraction.batch_items i ON i.id = r.item_id
    LEFT JOIN extraction.request_costs c ON c.item_id = i.id
    JOIN extraction.batch_jobs j ON j.id = i.batch_job_id
    WHERE d.collection = :collection AND v.name = :version
"""


def published_rows(connection: Connection, collection: str, version: str) -> Iterator[PublishedRow]:
    """All published extractions of a collection at a version, in order of registration."""
    result = connection.execution_options(stream_results=True).execute(
        text(f"{_QUERY} ORDER BY d.id"), {"collection": collection, "version": version}
    )
    for row in result:
        yield PublishedRow(**row._mapping)


def richest_record(connection: Connection, collection: str, version: str) -> PublishedRow | None:
    """The record with the most supported statements, to show what a record looks like."""
    row = connection.execute(
        text(f"{_QUERY} ORDER BY e.evidence_found DESC, d.id LIMIT 1"),
        {"collection": collection, "version": version},
    ).one_or_none()
    return PublishedRow(**row._mapping) if row else None
