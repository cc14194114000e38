"""Answers that come after a person had given their job up, when others may have been asked for.

Whichever answer of a document is published first is its record. All others are kept as raw
responses, with their cost, and are never published.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, text

from extraction_pipeline.ledger.answers import ExtractionRow
from extraction_pipeline.ledger.database import CLAIM_LOCK, lock_until_commit


def still_wanted(
    connection: Connection, collection: str, version: int, rows: Sequence[ExtractionRow]
) -> list[ExtractionRow]:
    """Those of a job's valid answers that may be published, which they are until the transaction
    ends; for the others there is a record.

    A late answer supersedes requests for the same document that are still open.
    """
    if any(row.late for row in rows):
        # No new request for these documents is made meanwhile.
        lock_until_commit(connection, CLAIM_LOCK, f"{collection}/{version}")
    states = {
        found.id: found.state
        for found in connection.execute(
            text("""
                SELECT id, state::text AS state FROM extraction.batch_items
                WHERE id = ANY(:items) ORDER BY id FOR UPDATE
            """),
            {"items": [row.item_id for row in rows]},
        )
    }
    wanted = [row for row in rows if not row.late and states[row.item_id] == "answered"]
    late = [row for row in rows if row.late and states[row.item_id] in ("failed", "released")]
    if not late:
        return wanted
    beaten = set(
        connection.execute(
            text("""
                UPDATE extraction.batch_items i
                SET state = 'superseded', failure_kind = NULL, updated_at = now()
                WHERE i.id = ANY(:items) AND EXISTS (
                    SELECT FROM extraction.extractions e
                    WHERE e.document_id = i.document_id AND e.version_id = i.version_id)
                RETURNING i.id
            """),
            {"items": [row.item_id for row in late]},
        ).scalars()
    )
    winners = [row for row in late if row.item_id not in beaten]
    connection.execute(
        text("""
            UPDATE extraction.batch_items i SET state = 'superseded', updated_at = now()
            WHERE i.document_id = ANY(:documents) AND i.version_id = :version
              AND i.state IN ('claimed', 'answered')
        """),
        {"documents": [row.document_id for row in winners], "version": version},
    )
    return wanted + winners


def superseded(connection: Connection, job: int) -> int:
    """How many requests of a job lost to another answer, before or after their own came."""
    return int(
        connection.execute(
            text("""
                SELECT count(*) FROM extraction.batch_items
                WHERE batch_job_id = :job AND state = 'superseded'
            """),
            {"job": job},
        ).scalar_one()
    )
