"""The audit trail: what was decided, by whom, about which job or document. Rows only ever come."""

from typing import Any

import orjson
from sqlalchemy import Connection, text

from extraction_pipeline.ledger.states import AuditEvent


def note(
    connection: Connection,
    event: AuditEvent,
    actor: str,
    *,
    collection: str | None = None,
    job: int | None = None,
    document: int | None = None,
    details: dict[str, Any] | None = None,
) -> None:
    """Append one row. `details` holds codes, counts and ids; never text of a document."""
    connection.execute(
        text("""
            INSERT INTO extraction.audit_events
                (event, actor, collection, batch_job_id, document_id, details)
            VALUES (:event, :actor, :collection, :job, :document, CAST(:details AS jsonb))
        """),
        {
            "event": event.value,
            "actor": actor,
            "collection": collection,
            "job": job,
            "document": document,
            "details": orjson.dumps(details or {}).decode(),
        },
    )


def ceiling_was_reached(connection: Connection, collection: str, version: str) -> bool:
    """Whether a ceiling kept jobs of a version from being made, the last time that any were to
    be."""
    return bool(
        connection.execute(
            text("""
                SELECT EXISTS (
                    SELECT FROM extraction.audit_events a
                    WHERE a.event = :event AND a.collection = :collection
                      AND a.details->>'version' = :version
                      AND NOT EXISTS (
                          SELECT FROM extraction.batch_jobs j
                          JOIN extraction.extraction_versions v ON v.id = j.version_id
                          WHERE v.collection = :collection AND v.name = :version
                            AND j.created_at > a.at))
            """),
            {
                "event": AuditEvent.CEILING_REACHED.value,
                "collection": collection,
                "version": version,
            },
        ).scalar_one()
    )


def happened(connection: Connection, event: AuditEvent, job: int, attempt: int) -> bool:
    """Whether `event` was noted of a job at this attempt to submit it."""
    return bool(
        connection.execute(
            text("""
                SELECT EXISTS (SELECT FROM extraction.audit_events
                               WHERE batch_job_id = :job AND event = :event
                                 AND details->>'attempt' = CAST(:attempt AS text))
            """),
            {"job": job, "event": event.value, "attempt": str(attempt)},
        ).scalar_one()
    )


def withdrawn_inputs(connection: Connection, job: int) -> list[str]:
    """Ids of the uploads of a job that were deleted, so that no late create call can use them."""
    return list(
        connection.execute(
            text("""
                SELECT details->>'input_id' FROM extraction.audit_events
                WHERE batch_job_id = :job AND event = :event AND details->>'input_id' IS NOT NULL
            """),
            {"job": job, "event": AuditEvent.INPUT_WITHDRAWN.value},
        ).scalars()
    )
