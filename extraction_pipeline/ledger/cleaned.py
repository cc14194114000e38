"""Jobs of which a provider still holds payload or results, though both are stored here."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from extraction_pipeline.ledger.pauses import NOT_PAUSED
from extraction_pipeline.ledger.readings import LATE


@dataclass(frozen=True)
class HeldJob:
    """One such job: the provider's ids of the job, its payload and its result files."""

    id: int
    job_key: str
    provider: str
    job_id: str | None
    file_ids: tuple[str, ...]


def jobs_to_clean(
    connection: Connection, limit: int, accounts: Sequence[str] = ()
) -> list[HeldJob]:
    """Jobs at their end that nobody has cleaned up, the oldest first; not those that were given up
    and may still bring what was paid for, nor those of paused `accounts`."""
    rows = connection.execute(
        text(f"""
            SELECT j.id, j.job_key, j.provider, j.job_id, j.input_id,
                   array(SELECT f.reference FROM extraction.result_files f
                         WHERE f.batch_job_id = j.id ORDER BY f.id) AS results
            FROM extraction.batch_jobs j
            WHERE j.state IN ('collected', 'published', 'failed', 'rejected')
              AND (j.job_id IS NOT NULL OR j.input_id IS NOT NULL)
              AND {LATE} IS NOT TRUE AND {NOT_PAUSED}
              AND NOT EXISTS (SELECT FROM extraction.audit_events a
                              WHERE a.batch_job_id = j.id AND a.event = 'provider_cleaned')
            ORDER BY j.id LIMIT :limit
        """),
        {"limit": limit, "accounts": list(accounts)},
    )
    return [
        HeldJob(
            row.id,
            row.job_key,
            row.provider,
            row.job_id,
            tuple(one for one in (row.input_id, *row.results) if one is not None),
        )
        for row in rows
    ]
