"""What the requests of a version have cost, and what those that are under way may still cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, text

from extraction_pipeline.ledger.database import PRICE_LOCK, lock_until_commit
from extraction_pipeline.ledger.states import NoAnswer
from extraction_pipeline.prices.price_list import Price


@dataclass(frozen=True)
class VersionCosts:
    """Money in one currency. `spent` is what answered requests cost, `under_way` what the jobs that
    wait for answers may cost at most beyond that, and `unanswered` what those may have cost at most
    that a provider had and that ended without an answer.

    An answer of which the provider does not say what it used is in `spent` with its share of its
    job's estimate, and so is what is `unanswered`. `unpriced` counts what is in none of them:
    answers, ended requests without one, and open jobs, all without a price.
    """

    spent: Decimal
    under_way: Decimal
    unpriced: int
    unanswered: Decimal = Decimal(0)

    @property
    def at_most(self) -> Decimal:
        """All of it: what a ceiling is held against."""
        return self.spent + self.unanswered + self.under_way


def version_costs(
    connection: Connection,
    collection: str,
    version: str,
    currency: str | None,
    *,
    since: datetime | None = None,
) -> VersionCosts:
    """The costs of all jobs of a version, or of those that were made at `since` or later."""
    row = connection.execute(
        text("""
            WITH requests AS (
                SELECT j.id AS job, c.id AS cost,
                       c.input_tokens IS NULL OR c.output_tokens IS NULL AS unsaid,
                       CASE WHEN c.currency = :currency THEN c.amount
                            WHEN c.input_tokens + c.output_tokens = 0 THEN 0 END AS amount,
                       c.id IS NULL AND j.job_id IS NOT NULL
                           AND i.failure_reason = ANY(:no_answer) AS unanswered
                FROM extraction.batch_jobs j
                JOIN extraction.extraction_versions v ON v.id = j.version_id
                LEFT JOIN extraction.batch_items i ON i.batch_job_id = j.id
                LEFT JOIN extraction.request_costs c ON c.item_id = i.id
                WHERE v.collection = :collection AND v.name = :version
                  AND (CAST(:since AS timestamptz) IS NULL OR j.created_at >= :since)
            ), jobs AS (
                SELECT j.id, j.request_count,
                       j.state NOT IN ('collected', 'published', 'rejected', 'failed') AS open,
                       CASE WHEN j.estimated_currency = :currency
                            THEN j.estimated_amount END AS estimate,
                       coalesce(sum(r.amount), 0) AS priced,
                       count(r.cost) FILTER (WHERE r.unsaid) AS unsaid,
                       count(r.cost) FILTER (WHERE NOT r.unsaid AND r.amount IS NULL) AS unpriced,
                       count(*) FILTER (WHERE r.unanswered) AS unanswered
                FROM extraction.batch_jobs j JOIN requests r ON r.job = j.id
                GROUP BY j.id
            ), costs AS (
                SELECT open, estimate,
                       priced + coalesce(unsaid * estimate / greatest(request_count, 1), 0)
                           AS spent,
                       coalesce(unanswered * estimate / greatest(request_count, 1), 0)
                           AS unanswered,
                       unpriced + CASE WHEN estimate IS NULL THEN unsaid + unanswered ELSE 0 END
                           + CASE WHEN estimate IS NULL AND open THEN 1 ELSE 0 END AS unpriced
                FROM jobs
            )
            SELECT coalesce(sum(spent), 0) AS spent,
                   coalesce(sum(greatest(estimate - spent - unanswered, 0)) FILTER (WHERE open), 0)
                       AS under_way,
                   coalesce(sum(unpriced), 0)::bigint AS unpriced,
                   coalesce(sum(unanswered), 0) AS unanswered
            FROM costs
        """),
        {
            "collection": collection,
            "version": version,
            "currency": currency,
            "since": since,
            "no_answer": [reason.value for reason in NoAnswer],
        },
    ).one()
    return VersionCosts(**row._mapping)


def price_earlier(connection: Connection, version: int, prices: Sequence[Price]) -> None:
    """Give answers and jobs of a version that have no price yet that of their day.

    `prices` are those of its model in order of their days. What has a price keeps it. Rows are
    locked to the end of the transaction, which should hold nothing else.
    """
    if not prices:
        return
    lock_until_commit(connection, PRICE_LOCK, str(version))
    given: dict[str, Any] = {
        "version": version,
        "currency": prices[0].currency,
        "days": [price.valid_from for price in prices],
        "ends": [*(price.valid_from for price in prices[1:]), None],
        "inputs": [price.input for price in prices],
        "outputs": [price.output for price in prices],
    }
    priced_days = """
        unnest(CAST(:days AS date[]), CAST(:ends AS date[]), CAST(:inputs AS numeric[]),
               CAST(:outputs AS numeric[])) AS p(begins, ends, input, output)
    """
    on_its_day = """
        (coalesce(j.submitted_at, j.created_at) AT TIME ZONE 'UTC')::date >= p.begins
        AND (p.ends IS NULL
             OR (coalesce(j.submitted_at, j.created_at) AT TIME ZONE 'UTC')::date < p.ends)
    """
    connection.execute(
        text(f"""
            UPDATE extraction.request_costs c
            SET input_price = p.input, output_price = p.output, currency = :currency,
                amount = (c.input_tokens * p.input + c.output_tokens * p.output) * 0.000001
            FROM extraction.batch_items i, extraction.batch_jobs j, {priced_days}
            WHERE c.item_id = i.id AND i.batch_job_id = j.id AND i.version_id = :version
              AND c.amount IS NULL AND c.input_tokens IS NOT NULL AND c.output_tokens IS NOT NULL
              AND {on_its_day}
        """),
        given,
    )
    connection.execute(
        text(f"""
            UPDATE extraction.batch_jobs j
            SET estimated_currency = :currency,
                estimated_amount = (j.estimated_input_tokens * p.input
                                    + j.estimated_output_tokens * p.output) * 0.000001
            FROM {priced_days}
            WHERE j.version_id = :version AND j.estimated_amount IS NULL
              AND j.estimated_input_tokens IS NOT NULL AND {on_its_day}
        """),
        given,
    )
