"""Batch jobs that need a person's eye, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, text

from extraction_pipeline.ledger.pauses import LASTING_SECONDS
from extraction_pipeline.ledger.second_batches import UNSETTLED
from extraction_pipeline.ledger.states import JobState, StuckReason

FAILURES_IN_A_ROW = 10


@dataclass(frozen=True)
class StuckJob:
    """A job, the reasons for looking at it, the gravest first, and since when it is open.

    `results_until` is when its provider deletes the answers, and `job_id` the provider's id of it,
    where that is known. `not_found_since` is when the provider began to say that it knows no such
    job, and `second_batches` are the provider's ids of what else exists there under its key.
    """

    job_key: str
    collection: str
    version: str
    provider: str
    state: JobState
    reasons: tuple[StuckReason, ...]
    created_at: datetime
    results_until: datetime | None
    job_id: str | None
    not_found_since: datetime | None
    second_batches: tuple[str, ...]

    @property
    def why(self) -> str:
        """The reasons in one line. What a person must look for is named as it is there."""
        said = [", ".join(self.reasons)]
        if self.state is JobState.HELD and self.job_id:
            said.append(f"batch {self.job_id}")
        if self.state is JobState.HELD and self.not_found_since:
            said.append(f"not found there since {self.not_found_since:%Y-%m-%d %H:%M %Z}")
        if self.second_batches:
            said.append(f"second batch {', '.join(self.second_batches)}")
        return "; ".join(said)


def stuck_jobs(
    connection: Connection,
    collection: str,
    *,
    budget: timedelta,
    retention_days: Mapping[str, int],
    accounts: Sequence[str] = (),
) -> list[StuckJob]:
    """Jobs of a collection that need a person's eye, in order of creation.

    `budget` is how long one may be open, `retention_days` how long a provider keeps answers,
    counted from submission, which is the earliest that any counts from.
    """
    rows = connection.execute(
        text(f"""
            WITH kept AS (
                SELECT * FROM unnest(CAST(:providers AS text[]), CAST(:days AS int[]))
                              AS k(provider, days)
            ), twice AS (
                SELECT batch_job_id, array_agg(batch ORDER BY batch) AS second_batches
                FROM ({UNSETTLED}) u GROUP BY batch_job_id
            ), seen AS (
                SELECT j.*, v.collection, v.name AS version, t.second_batches,
                       j.state NOT IN ('published', 'rejected', 'failed') AS open,
                       j.submitted_at + make_interval(days => k.days) AS results_until,
                       make_interval(days => k.days) AS kept_for
                FROM extraction.batch_jobs j
                JOIN extraction.extraction_versions v ON v.id = j.version_id
                LEFT JOIN kept k ON k.provider = j.provider AND j.job_id IS NOT NULL
                     AND j.state IN ('submitted', 'ended', 'held', 'unresolved')
                LEFT JOIN twice t ON t.batch_job_id = j.id
                WHERE v.collection = :collection
                  AND (j.state NOT IN ('published', 'rejected', 'failed')
                       OR t.batch_job_id IS NOT NULL)
            ), judged AS (
                SELECT *, array_remove(ARRAY[
                    CASE WHEN results_until - least(kept_for / 4, interval '7 days') < now()
                         THEN 'results_expire' END,
                    CASE WHEN second_batches IS NOT NULL THEN 'exists_twice' END,
                    CASE WHEN state = 'held' AND failure_code = 'job_id_of_another'
                              THEN failure_code
                         WHEN state IN ('held', 'unresolved') THEN state::text END,
                    CASE WHEN open AND created_at < now() - :budget THEN 'over_waiting_budget' END,
                    CASE WHEN state = 'submitted' AND moved_at < now() - :budget / 2
                         THEN 'not_moving' END,
                    CASE WHEN open AND (trouble_count >= :failures
                              OR failing_since < now() - interval '1 hour')
                         THEN 'calls_fail' END,
                    CASE WHEN state = 'submitted' AND due_at < now() - interval '1 hour'
                         THEN 'not_looked_at' END,
                    CASE WHEN open AND state <> 'collected' AND EXISTS (
                             SELECT FROM extraction.account_pauses p
                             WHERE p.provider = seen.provider AND p.account = ANY(:accounts)
                               AND p.until > now() AND p.since < now() - :lasting)
                         THEN 'account_paused' END
                ], NULL) AS reasons
                FROM seen
            )
            SELECT job_key, collection, version, provider, state::text, reasons, created_at,
                   results_until, job_id, not_found_since, second_batches
            FROM judged WHERE cardinality(reasons) > 0 ORDER BY id
        """),
        {
            "collection": collection,
            "budget": budget,
            "providers": list(retention_days),
            "days": list(retention_days.values()),
            "accounts": list(accounts),
            "failures": FAILURES_IN_A_ROW,
            "lasting": timedelta(seconds=LASTING_SECONDS),
        },
    )
    return [
        StuckJob(
            job_key=row.job_key,
            collection=row.collection,
            version=row.version,
            provider=row.provider,
            state=JobState(row.state),
            reasons=tuple(map(StuckReason, row.reasons)),
            created_at=row.created_at,
            results_until=row.results_until,
            job_id=row.job_id,
            not_found_since=row.not_found_since,
            second_batches=tuple(row.second_batches or ()),
        )
        for row in rows
    ]


def held_jobs(connection: Connection, collection: str, version: str) -> list[str]:
    """Keys of the jobs of a version that wait for a person."""
    return list(
        connection.execute(
            text("""
                SELECT j.job_key FROM extraction.batch_jobs j
                JOIN extraction.extraction_versions v ON v.id = j.version_id
                WHERE v.collection = :collection AND v.name = :version AND j.state = 'held'
                ORDER BY j.id
            """),
            {"collection": collection, "version": version},
        ).scalars()
    )
