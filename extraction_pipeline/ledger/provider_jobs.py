"""What the ledger knows of a provider's jobs as a whole: how much is under way there, and how large
a job may be."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, text


def under_way(connection: Connection, provider: str, base_url: str) -> tuple[int, int]:
    """(jobs, payload bytes) that a provider has, or may have, and is not done with.

    Those that are held for a person do not count, for they may be held for ever: a limit that is
    passed by them is told by the provider, and waited for.
    """
    row = connection.execute(
        text("""
            SELECT count(*) AS jobs, coalesce(sum(payload_bytes), 0) AS bytes
            FROM extraction.batch_jobs
            WHERE provider = :provider AND base_url = :base_url
              AND state IN ('submitting', 'unresolved', 'submitted')
        """),
        {"provider": provider, "base_url": base_url},
    ).one()
    return int(row.jobs), int(row.bytes)


def smallest_refused(
    connection: Connection, provider: str, base_url: str, codes: Sequence[str]
) -> int | None:
    """Payload bytes of the smallest job of several requests that was refused for its size in the
    last month: under status 413, or at its validation with one of these codes."""
    smallest: int | None = connection.execute(
        text("""
            SELECT min(payload_bytes) FROM extraction.batch_jobs
            WHERE provider = :provider AND base_url = :base_url AND request_count > 1
              AND created_at > now() - interval '30 days'
              AND ((state = 'rejected' AND submit_http_status = 413)
                   OR (state = 'failed' AND failure_code = ANY(:codes)))
        """),
        {"provider": provider, "base_url": base_url, "codes": list(codes)},
    ).scalar_one()
    return smallest


def newest_at(connection: Connection, provider: str, base_url: str) -> str | None:
    """The provider's id of the job that it took last, if that was in the last three weeks: by then
    no provider has forgotten it."""
    newest: str | None = connection.execute(
        text("""
            SELECT job_id FROM extraction.batch_jobs
            WHERE provider = :provider AND base_url = :base_url AND job_id IS NOT NULL
              AND submitted_at > now() - interval '21 days'
            ORDER BY submitted_at DESC LIMIT 1
        """),
        {"provider": provider, "base_url": base_url},
    ).scalar_one_or_none()
    return newest


def key_of(connection: Connection, provider: str, job_id: str) -> str | None:
    """Our key of the job that has this id at a provider, or `None`."""
    key: str | None = connection.execute(
        text("""
            SELECT job_key FROM extraction.batch_jobs
            WHERE provider = :provider AND job_id = :job_id
        """),
        {"provider": provider, "job_id": job_id},
    ).scalar_one_or_none()
    return key


def ids_since(connection: Connection, provider: str, since: datetime) -> list[str]:
    """The provider's ids of jobs of ours that it took after `since`, and of the hours before."""
    return list(
        connection.execute(
            text("""
                SELECT job_id FROM extraction.batch_jobs
                WHERE provider = :provider AND job_id IS NOT NULL
                  AND submitted_at > :since - interval '6 hours'
            """),
            {"provider": provider, "since": since},
        ).scalars()
    )
