"""Jobs in the hand of the run that made them, which sends and records them one after another.

A run holds a lock for as long as it lives. One that lives, but has not brought any of its jobs on
for a while, may hang: its jobs are carried on by others.
"""

from extraction_pipeline.ledger.database import RUN_LOCK
from extraction_pipeline.ledger.states import AuditEvent

STEPS = (
    AuditEvent.JOB_CREATED,
    AuditEvent.JOB_SUBMITTED,
    AuditEvent.JOB_ADOPTED,
    AuditEvent.JOB_UNRESOLVED,
    AuditEvent.JOB_REJECTED,
)
"""What a run notes in the audit trail when it brings a job on."""

IN_HAND = f"""EXISTS (
    SELECT FROM extraction.audit_events made
    WHERE made.batch_job_id = j.id AND made.event = '{AuditEvent.JOB_CREATED}'
      AND CAST(hashtext(made.actor) AS oid) IN (
          SELECT l.objid FROM pg_locks l
          JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
          WHERE l.locktype = 'advisory' AND l.classid = {RUN_LOCK} AND l.objsubid = 2 AND l.granted)
      AND EXISTS (
          SELECT FROM extraction.audit_events step
          WHERE step.event IN ({", ".join(f"'{step}'" for step in STEPS)})
            AND step.at > now() - CAST(:patience AS interval) AND step.actor = made.actor))"""
"""Condition on a job `j`; `patience` is how long its run may take for one of its jobs."""
