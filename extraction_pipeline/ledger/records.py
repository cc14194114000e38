"""What Dagster's records are written from, and what the checks name."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text


def jobs_of_extractions(
    connection: Connection, collection: str, version: str, hashes: Sequence[str]
) -> dict[int, list[str]]:
    """Jobs that these documents' published answers came from, with the documents.

    That need not be the last job about a document: a replay may publish an earlier answer.
    """
    rows = connection.execute(
        text("""
            SELECT i.batch_job_id, d.document_hash
            FROM extraction.extractions e
            JOIN extraction.documents d ON d.id = e.document_id
            JOIN extraction.extraction_versions v ON v.id = e.version_id
            JOIN extraction.raw_responses r ON r.id = e.raw_response_id
            JOIN extraction.batch_items i ON i.id = r.item_id
            WHERE d.collection = :collection AND v.name = :version
              AND d.document_hash = ANY(:hashes)
            ORDER BY i.batch_job_id, d.id
        """),
        {"collection": collection, "version": version, "hashes": list(hashes)},
    )
    found: dict[int, list[str]] = {}
    for job, document_hash in rows:
        found.setdefault(job, []).append(document_hash)
    return found


@dataclass(frozen=True)
class UnreadableDocuments:
    """Documents of a collection that could not be read, counted by reason; of the first of them
    the hash, the reason and the kind of file."""

    by_reason: dict[str, int]
    first: list[tuple[str, str, str | None]]


def unreadable_documents(
    connection: Connection, collection: str, limit: int
) -> UnreadableDocuments:
    """Current documents that could not be read to text, and why."""
    current = """
        FROM extraction.documents d
        WHERE d.collection = :collection AND d.state = 'unreadable' AND EXISTS (
            SELECT FROM extraction.document_sources s
            WHERE s.document_id = d.id AND s.vanished_at IS NULL)
    """
    asked = {"collection": collection, "limit": limit}
    counted = connection.execute(
        text(f"SELECT d.unreadable_reason, count(*) {current} GROUP BY 1 ORDER BY 2 DESC, 1"),
        asked,
    )
    first = connection.execute(
        text(f"""
            SELECT d.document_hash, d.unreadable_reason, d.kind {current} ORDER BY d.id LIMIT :limit
        """),
        asked,
    )
    return UnreadableDocuments(
        by_reason={row[0]: row[1] for row in counted},
        first=[(one, reason, kind) for one, reason, kind in first],
    )
