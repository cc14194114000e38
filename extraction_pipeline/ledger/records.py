"""What Dagster's records are written from, and what the checks compare them with."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from sqlalchemy import Connection, text


def published_keys(connection: Connection, collection: str) -> Iterator[tuple[str, str, bool]]:
    """(document hash, version name, whether its record is due) of every extraction.

    A job that was published a moment ago writes its records just now, so a record is due once the
    job's mark `results_recorded_at` is set, or ten minutes after.
    """
    for row in connection.execute(
        text("""
            SELECT d.document_hash, v.name,
                   j.results_recorded_at IS NOT NULL
                   OR j.published_at < now() - interval '10 minutes' AS due
            FROM extraction.extractions e
            JOIN extraction.documents d ON d.id = e.document_id
            JOIN extraction.extraction_versions v ON v.id = e.version_id
            JOIN extraction.raw_responses r ON r.id = e.raw_response_id
            JOIN extraction.batch_items i ON i.id = r.item_id
            JOIN extraction.batch_jobs j ON j.id = i.batch_job_id
            WHERE d.collection = :collection
        """),
        {"collection": collection},
    ):
        yield row.document_hash, row.name, row.due


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


def troubled_jobs(connection: Connection, collection: str, *, hours: float) -> list[str]:
    """Keys of jobs that are held or unresolved, or open for longer than `hours`."""
    return list(
        connection.execute(
            text("""
                SELECT j.job_key FROM extraction.batch_jobs j
                JOIN extraction.extraction_versions v ON v.id = j.version_id
                WHERE v.collection = :collection
                  AND (j.state IN ('held', 'unresolved')
                       OR (j.state NOT IN ('published', 'rejected', 'failed')
                           AND j.created_at < now() - :age))
                ORDER BY j.id
            """),
            {"collection": collection, "age": timedelta(hours=hours)},
        ).scalars()
    )
