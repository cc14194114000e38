"""Deliveries of webhooks: each is kept once, and does no more than make its job due.

What a delivery says is never taken for true. It brings forward a question that the next poll puts
to the provider itself.
"""

from collections import Counter
from dataclasses import dataclass

from sqlalchemy import Connection, text

from extraction_pipeline.ledger.readings import LATE
from extraction_pipeline.ledger.states import DeliveryOutcome

KEPT = "interval '30 days'"
"""Longer than any sender tries again: the longest known tries for three days."""
UNKNOWN_KEPT = "interval '7 days'"
"""How long a delivery waits for its job to become ours."""
AT_ONCE = 1000

_MAY_BE_DUE = f"(j.state = 'submitted' OR {LATE}) IS TRUE"
"""When a delivery may bring the reading of job `j` forward: also where it was given up. Whether the
account may be called at all is another question, which is asked before every call."""


@dataclass(frozen=True)
class Delivery:
    """What is kept of one delivery. `settled_as` is given where there is no job to look for;
    `by_content` where its sender gave it no id, so that the next announcement may have the same."""

    provider: str
    delivery_id: str
    event: str | None
    job_id: str | None
    settled_as: DeliveryOutcome | None = None
    by_content: bool = False

    def __post_init__(self) -> None:
        """It has a job's id, or says why not."""
        assert (self.job_id is None) == (self.settled_as is not None)


@dataclass(frozen=True)
class Kept:
    """What came of a delivery, and whether it was the first one of its id."""

    outcome: DeliveryOutcome
    first: bool


def keep(connection: Connection, delivery: Delivery) -> Kept:
    """Keep a delivery and make its job due now, both or neither, in one statement.

    One that is there already is counted and does nothing, but that one without an id of its
    sender's makes a job due that was read since: the first may have come too early. The interval of
    the job begins anew: where the provider does not show yet what it announced, the next question
    must not be far off.
    """
    row = connection.execute(
        text(f"""
            WITH job AS (
                SELECT j.id, {_MAY_BE_DUE} AS waits FROM extraction.batch_jobs j
                WHERE j.provider = :provider AND j.job_id = :job_id
            ), kept AS (
                INSERT INTO extraction.webhook_deliveries AS d
                    (provider, delivery_id, event, job_id, batch_job_id, outcome, processed_at)
                SELECT :provider, :delivery_id, :event, :job_id, job.id,
                       CAST(coalesce(:settled_as,
                                     CASE WHEN job.id IS NULL THEN 'unknown_job'
                                          WHEN job.waits THEN 'made_due'
                                          ELSE 'settled' END) AS extraction.delivery_outcome),
                       CASE WHEN :settled_as IS NOT NULL OR job.id IS NOT NULL THEN now() END
                FROM (SELECT) one LEFT JOIN job ON true
                ON CONFLICT (provider, delivery_id) DO UPDATE
                    SET times_received = least(d.times_received, {2**31 - 2}) + 1
                RETURNING d.outcome, d.batch_job_id, d.times_received = 1 AS first
            ), due AS (
                UPDATE extraction.batch_jobs j SET due_at = now(), poll_count = 0
                FROM kept WHERE j.id = kept.batch_job_id AND {_MAY_BE_DUE}
                  AND (kept.first OR (:by_content AND j.due_at > now()))
            )
            SELECT outcome, first FROM kept
        """),
        {
            "provider": delivery.provider,
            "delivery_id": delivery.delivery_id,
            "event": delivery.event,
            "job_id": delivery.job_id,
            "settled_as": delivery.settled_as.value if delivery.settled_as else None,
            "by_content": delivery.by_content,
        },
    ).one()
    return Kept(DeliveryOutcome(row.outcome), row.first)


def meet(connection: Connection) -> int:
    """Give deliveries that came before their job's id was written to their jobs, and make those
    due; returns how many deliveries it were."""
    return connection.execute(
        text(f"""
            WITH met AS (
                SELECT d.id, j.id AS job, {_MAY_BE_DUE} AS waits
                FROM extraction.webhook_deliveries d
                JOIN extraction.batch_jobs j ON j.provider = d.provider AND j.job_id = d.job_id
                WHERE d.processed_at IS NULL
                ORDER BY d.id LIMIT {AT_ONCE} FOR UPDATE OF d SKIP LOCKED
            ), due AS (
                UPDATE extraction.batch_jobs j SET due_at = now(), poll_count = 0
                WHERE j.id IN (SELECT job FROM met) AND {_MAY_BE_DUE}
            )
            UPDATE extraction.webhook_deliveries d
            SET batch_job_id = met.job, processed_at = now(),
                outcome = CAST(CASE WHEN met.waits THEN 'made_due' ELSE 'settled' END
                               AS extraction.delivery_outcome)
            FROM met WHERE d.id = met.id
        """)
    ).rowcount


def forget_old(connection: Connection) -> int:
    """Delete what no sender repeats any more, and deliveries of jobs that never became ours: some
    at a time, the oldest first; returns how many."""
    return connection.execute(
        text(f"""
            DELETE FROM extraction.webhook_deliveries WHERE id IN (
                SELECT id FROM extraction.webhook_deliveries
                WHERE received_at < now() - {UNKNOWN_KEPT}
                  AND (processed_at IS NULL OR received_at < now() - {KEPT})
                ORDER BY received_at LIMIT {AT_ONCE} FOR UPDATE SKIP LOCKED)
        """)
    ).rowcount


def counts(connection: Connection) -> Counter[DeliveryOutcome]:
    """How many deliveries there are by outcome."""
    rows = connection.execute(
        text("SELECT outcome, count(*) AS n FROM extraction.webhook_deliveries GROUP BY outcome")
    )
    return Counter({DeliveryOutcome(row.outcome): row.n for row in rows})
