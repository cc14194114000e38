"""Readings of jobs: which are due, what the last one said, and when the next one is.

A reading that went wrong is counted by its kind, so that what spends one patience leaves the others
as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, text

from extraction_pipeline.ledger import jobs
from extraction_pipeline.ledger.pauses import NOT_PAUSED
from extraction_pipeline.ledger.states import Trouble

LATE = """(j.state IN ('failed', 'published') AND j.failure_code = 'given_up'
           AND j.job_id IS NOT NULL AND j.collected_at > now() - interval '45 days')"""
"""Condition on a job `j` that was given up and is still looked at, now and then."""


@dataclass(frozen=True)
class DueReading:
    """A job to be read, how many jobs of its provider are being waited for, and whether the last
    reading of one of these has failed."""

    job: jobs.JobRow
    open_jobs: int
    failing: bool


def due_readings(
    connection: Connection,
    accounts: Sequence[str],
    *,
    per_provider: int,
    versions: Sequence[int] | None = None,
) -> list[DueReading]:
    """Jobs to be read now, at most `per_provider` of each: of its collections in turn, and of each
    the longest waiting first. Those of paused `accounts` wait; `versions` narrows them to jobs of
    these."""
    rows = connection.execute(
        text(f"""
            WITH due AS (
                SELECT j.id, j.provider, j.due_at,
                       row_number() OVER (PARTITION BY j.provider, v.collection
                                          ORDER BY j.due_at, j.id) AS turn
                FROM extraction.batch_jobs j
                JOIN extraction.extraction_versions v ON v.id = j.version_id
                WHERE (j.state = 'submitted' OR {LATE})
                  AND j.due_at <= now() AND {NOT_PAUSED} {jobs.OF_VERSIONS}
            ), placed AS (
                SELECT id, row_number() OVER (PARTITION BY provider
                                              ORDER BY turn, due_at, id) AS place
                FROM due
            ), waited_for AS (
                SELECT provider, count(*) AS open, bool_or(trouble_count > 0) AS failing
                FROM extraction.batch_jobs WHERE state = 'submitted' GROUP BY provider
            )
            SELECT {jobs.COLUMNS}, coalesce(w.open, 1) AS open_jobs,
                   coalesce(w.failing, false) AS failing {jobs.FROM}
            JOIN placed p ON p.id = j.id
            LEFT JOIN waited_for w ON w.provider = j.provider
            WHERE p.place <= :most
            ORDER BY p.place, j.due_at, j.id
        """),
        {
            "accounts": list(accounts),
            "most": per_provider,
            "versions": None if versions is None else list(versions),
        },
    )
    return [DueReading(jobs.job_of_row(row), row.open_jobs, row.failing) for row in rows]


def postpone(
    connection: Connection, job: jobs.JobRow, seconds: float, trouble: Trouble | None = None
) -> int:
    """Look at this job again after `seconds`; how often this `trouble` was counted by now. Where an
    announcement, or a person, made it due since `job` was read, it stays so: what is known now may
    be older than that.

    Without one the job is well, and all counts end. `NOT_FOUND` counts in a row: any other answer,
    or none, ends it.
    """
    return int(
        connection.execute(
            text("""
                UPDATE extraction.batch_jobs
                SET due_at = CASE WHEN due_at = :read_as THEN now() + :wait
                                  ELSE least(due_at, now() + :wait) END,
                    poll_count = poll_count + 1,
                    trouble_count = CASE WHEN :kind = '' THEN 0 ELSE trouble_count + 1 END,
                    failing_since = CASE WHEN :kind <> '' THEN coalesce(failing_since, now()) END,
                    not_found_since = CASE WHEN :kind = 'not_found'
                                           THEN coalesce(not_found_since, now())
                                           WHEN :kind <> '' THEN not_found_since END,
                    troubles = CASE WHEN :kind = '' THEN '{}' ELSE
                        CASE WHEN :kind = 'not_found' THEN troubles ELSE troubles - 'not_found' END
                        || jsonb_build_object(
                            CAST(:kind AS text), coalesce((troubles ->> :kind)::int, 0) + 1) END
                WHERE id = :job RETURNING coalesce((troubles ->> :kind)::int, 0)
            """),
            {
                "job": job.id,
                "read_as": job.due_at,
                "wait": timedelta(seconds=seconds),
                "kind": "" if trouble is None else trouble.value,
            },
        ).scalar_one()
    )


def note_reading(
    connection: Connection,
    job: jobs.JobRow,
    *,
    provider_state: str | None,
    total: int | None,
    completed: int | None,
    failed: int | None,
) -> None:
    """Keep what the provider last said of the job, and since when it says so."""
    connection.execute(
        text("""
            UPDATE extraction.batch_jobs
            SET moved_at = CASE
                    WHEN moved_at IS NOT NULL
                         AND (provider_state, provider_total, provider_completed, provider_failed)
                             IS NOT DISTINCT FROM
                             (CAST(:state AS text), CAST(:total AS int), CAST(:completed AS int),
                              CAST(:failed AS int))
                    THEN moved_at ELSE now() END,
                provider_state = :state, provider_total = :total,
                provider_completed = :completed, provider_failed = :failed, updated_at = now()
            WHERE id = :job
        """),
        {
            "job": job.id,
            "state": provider_state,
            "total": total,
            "completed": completed,
            "failed": failed,
        },
    )
