"""Second batches: a job of ours that exists more than once at its provider, until a person has
settled each batch that is not the one that we collect.

The audit trail holds them. A batch that this job, or another, has for its own by now is no second
one.
"""

from typing import Any

from sqlalchemy import Connection, text

from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.database import JOB_ID_LOCK, lock_until_commit
from extraction_pipeline.ledger.states import AuditEvent

UNSETTLED = """
    SELECT d.batch_job_id, d.details->>'job_id' AS batch, max(d.at) AS found_at
    FROM extraction.audit_events d JOIN extraction.batch_jobs j ON j.id = d.batch_job_id
    WHERE d.event = 'duplicate_job'
      AND NOT EXISTS (
          SELECT FROM extraction.batch_jobs o
          WHERE o.provider = j.provider AND o.job_id = d.details->>'job_id')
      AND NOT EXISTS (
          SELECT FROM extraction.audit_events s
          WHERE s.batch_job_id = d.batch_job_id AND s.event = 'duplicate_settled'
            AND s.details->>'job_id' = d.details->>'job_id')
    GROUP BY d.batch_job_id, d.details->>'job_id'
"""
"""Query of all second batches that nobody has settled: our job, and the provider's id."""


def unsettled(connection: Connection, job: int) -> list[str]:
    """The provider's ids of a job's second batches that nobody has settled."""
    return list(
        connection.execute(
            text(f"SELECT batch FROM ({UNSETTLED}) u WHERE batch_job_id = :job ORDER BY batch"),
            {"job": job},
        ).scalars()
    )


def settle(
    connection: Connection, job: int, batch: str, actor: str, details: dict[str, Any]
) -> bool:
    """Keep that a second batch is settled; `False` where it is none, or another was faster."""
    lock_until_commit(connection, JOB_ID_LOCK, f"settle {job} {batch}")
    if batch not in unsettled(connection, job):
        return False
    note(
        connection,
        AuditEvent.DUPLICATE_SETTLED,
        actor,
        job=job,
        details={**details, "job_id": batch},
    )
    return True
