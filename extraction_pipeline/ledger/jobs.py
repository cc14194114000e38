"""Batch jobs: reading them, and moving them from state to state.

Every move is one conditional statement whose row count is checked: who comes second gets
`StateMoved` and changes nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, Row, text

from extraction_pipeline.errors import LedgerError
from extraction_pipeline.ledger.in_hand import IN_HAND
from extraction_pipeline.ledger.pauses import NOT_PAUSED
from extraction_pipeline.ledger.states import JobState, Trouble


class StateMoved(LedgerError):
    """Another process moved this job first; its move stands."""


@dataclass(frozen=True)
class JobRow:
    """One batch job as the ledger holds it."""

    id: int
    job_key: str
    version_id: int
    collection: str
    version_name: str
    schema_version: str
    provider: str
    base_url: str
    account: str | None
    state: JobState
    request_count: int
    payload_hash: str | None
    payload_bytes: int | None
    input_id: str | None
    job_id: str | None
    provider_state: str | None
    phase: str | None
    submit_attempt: int
    submit_http_status: int | None
    submit_request_id: str | None
    estimated_amount: Decimal | None
    estimated_currency: str | None
    failure_kind: str | None
    failure_code: str | None
    poll_count: int
    trouble_count: int
    troubles: dict[str, int]
    run_attempt: int
    run_requested_at: datetime | None
    created_at: datetime
    submit_started_at: datetime | None
    submitted_at: datetime | None
    submission_recorded_at: datetime | None
    due_at: datetime
    ended_at: datetime | None
    collected_at: datetime | None
    published_at: datetime | None
    results_recorded_at: datetime | None

    def times(self, trouble: Trouble) -> int:
        """How often this trouble was counted since the job was last well."""
        return self.troubles.get(trouble.value, 0)


COLUMNS = """
    j.id, j.job_key, j.version_id, v.collection, v.name AS version_name, v.schema_version,
    j.provider, j.base_url, j.account, j.state, j.request_count, j.payload_hash, j.payload_bytes,
    j.input_id, j.job_id, j.provider_state, j.phase, j.submit_attempt, j.submit_http_status,
    j.submit_request_id, j.estimated_amount, j.estimated_currency, j.failure_kind, j.failure_code,
    j.poll_count, j.trouble_count, j.troubles, j.run_attempt, j.run_requested_at, j.created_at,
    j.submit_started_at, j.submitted_at, j.submission_recorded_at, j.due_at, j.ended_at,
    j.collected_at, j.published_at, j.results_recorded_at
"""
FROM = """
    FROM extraction.batch_jobs j JOIN extraction.extraction_versions v ON v.id = j.version_id
"""

WELL: Mapping[str, object] = {
    "trouble_count": 0,
    "troubles": "{}",
    "failing_since": None,
    "not_found_since": None,
}
"""Values of `move` for a job that answers again: all counts end."""

OF_VERSIONS = "AND (CAST(:versions AS bigint[]) IS NULL OR j.version_id = ANY(:versions))"


def _or_all(versions: Sequence[int] | None) -> list[int] | None:
    return None if versions is None else list(versions)


def job_of_row(row: Row[Any]) -> JobRow:
    """The job of a row that has `COLUMNS`, and perhaps more."""
    known = {field.name: getattr(row, field.name) for field in fields(JobRow)}
    return JobRow(**{**known, "state": JobState(known["state"])})


def job_by_id(connection: Connection, job: int) -> JobRow:
    """The job with this id of ours."""
    return job_of_row(
        connection.execute(text(f"SELECT {COLUMNS} {FROM} WHERE j.id = :job"), {"job": job}).one()
    )


def job_by_key(connection: Connection, job_key: str) -> JobRow | None:
    """The job with this job key, or `None`."""
    row = connection.execute(
        text(f"SELECT {COLUMNS} {FROM} WHERE j.job_key = :key"), {"key": job_key}
    ).one_or_none()
    return job_of_row(row) if row else None


def jobs_to_run(
    connection: Connection,
    limit: int,
    *,
    accounts: Sequence[str] = (),
    again: tuple[float, float] = (0.0, 0.0),
    patience: float = 0.0,
    versions: Sequence[int] | None = None,
) -> list[JobRow]:
    """Jobs that a run must carry on: to send or resolve, to collect, or to write records for. Those
    of each provider come in turn, so that none keeps another's back.

    What needs a call of one of `accounts` waits for as long as that is paused, and what a run was
    asked for waits for `again`: the seconds after the first run, which double with each, and the
    longest. What the run that made it has not come to yet is left to that, while it lives and
    brings a job on within `patience` seconds. `versions` narrows the jobs to those of these."""
    rows = connection.execute(
        text(f"""
            SELECT {COLUMNS} {FROM}
            WHERE (j.state = 'collected'
               OR (j.state = 'ended' AND {NOT_PAUSED})
               OR (j.state IN ('preparing', 'prepared', 'submitting', 'unresolved')
                   AND j.due_at <= now() AND {NOT_PAUSED}
                   AND NOT (j.submit_attempt = 0 AND j.poll_count = 0 AND {IN_HAND}))
               OR (j.state NOT IN ('preparing', 'prepared', 'submitting', 'unresolved', 'held',
                                   'rejected')
                   AND j.submission_recorded_at IS NULL
                   AND j.submitted_at < now() - interval '60 seconds'
                   AND NOT {IN_HAND})
               OR (j.state = 'published' AND j.results_recorded_at IS NULL))
              AND (j.run_requested_at IS NULL
                   OR j.ended_at > j.run_requested_at  -- that run was to submit it
                   OR j.run_requested_at <= now()
                      - least(:first * 2 ^ least(j.run_attempt, 20), CAST(:longest AS interval)))
              {OF_VERSIONS}
            ORDER BY row_number() OVER (PARTITION BY j.provider
                                        ORDER BY j.run_requested_at NULLS FIRST, j.id),
                     j.run_requested_at NULLS FIRST, j.id
            LIMIT :limit
        """),
        {
            "limit": limit,
            "versions": _or_all(versions),
            "accounts": list(accounts),
            "patience": timedelta(seconds=patience),
            "first": timedelta(seconds=again[0]),
            "longest": timedelta(seconds=again[1]),
        },
    )
    return [job_of_row(row) for row in rows]


def unfinished(
    connection: Connection, versions: Sequence[int] | None = None
) -> dict[str, JobState]:
    """Keys of jobs for which something is still to be done without a person, with their states;
    `versions` narrows them to jobs of these."""
    return {
        row.job_key: JobState(row.state)
        for row in connection.execute(
            text(f"""
                SELECT j.job_key, j.state::text AS state FROM extraction.batch_jobs j
                WHERE (j.state NOT IN ('published', 'rejected', 'failed', 'held')
                       OR (j.state = 'published' AND j.results_recorded_at IS NULL))
                  {OF_VERSIONS}
                ORDER BY j.state, j.id
            """),
            {"versions": _or_all(versions)},
        )
    }


def left_behind(
    connection: Connection,
    collection: str,
    version_name: str,
    hashes: Sequence[str] | None,
    *,
    before_due: bool = False,
) -> list[int]:
    """Ids of jobs of a version that are not with the provider for certain and may be carried on
    now; `hashes` narrows them to jobs that ask about one of these documents. `before_due` has
    those as well that could not be sent and whose next try is not due."""
    narrowed = """
        AND EXISTS (SELECT FROM extraction.batch_items i
                    JOIN extraction.documents d ON d.id = i.document_id
                    WHERE i.batch_job_id = j.id AND d.document_hash = ANY(:hashes))
    """
    return list(
        connection.execute(
            text(f"""
                SELECT j.id {FROM}
                WHERE v.collection = :collection AND v.name = :version
                  AND (j.state IN ('preparing', 'submitting', 'unresolved')
                       OR (j.state = 'prepared'
                           AND (:before_due OR j.due_at <= now() OR j.trouble_count = 0)))
                  {narrowed if hashes is not None else ""}
                ORDER BY j.id
            """),
            {
                "collection": collection,
                "version": version_name,
                "before_due": before_due,
                **({"hashes": list(hashes)} if hashes is not None else {}),
            },
        ).scalars()
    )


def claim_run(connection: Connection, job: JobRow) -> bool:
    """Count one more run for this job; `False` if another tick did it first."""
    return (
        connection.execute(
            text("""
                UPDATE extraction.batch_jobs
                SET run_attempt = run_attempt + 1, run_requested_at = now()
                WHERE id = :job AND run_attempt = :attempt
            """),
            {"job": job.id, "attempt": job.run_attempt},
        ).rowcount
        == 1
    )


def move(
    connection: Connection,
    job: JobRow,
    to: JobState,
    *,
    values: dict[str, object] | None = None,
    stamp: str | None = None,
) -> None:
    """Move a job from the state and attempt that `job` was read in to `to`, with column values.

    `stamp` names a time column that is set to now. Raises `StateMoved`.
    """
    columns = values or {}
    sets = "".join(f", {name} = :v_{name}" for name in columns)
    if stamp:
        sets += f", {stamp} = now()"
    moved = connection.execute(
        text(f"""
            UPDATE extraction.batch_jobs
            SET state = CAST(:to AS extraction.job_state), updated_at = now() {sets}
            WHERE id = :job AND state = CAST(:from AS extraction.job_state)
              AND submit_attempt = :attempt
        """),
        {
            "job": job.id,
            "to": to.value,
            "from": job.state.value,
            "attempt": job.submit_attempt,
            **{f"v_{name}": value for name, value in columns.items()},
        },
    ).rowcount
    if moved != 1:
        raise StateMoved(
            f"Job {job.job_key} is no longer {job.state.value}: another run was faster.",
            remedy="Nothing is lost; its state is shown by: extraction-pipeline status",
        )


def due_now(connection: Connection, job: int) -> None:
    """Let the next tick read this job."""
    connection.execute(
        text("UPDATE extraction.batch_jobs SET due_at = now(), poll_count = 0 WHERE id = :job"),
        {"job": job},
    )


def seconds_since_submit(connection: Connection, job: int) -> float:
    """Seconds since the last create call began, by the clock of the database."""
    return float(
        connection.execute(
            text("""
                SELECT extract(epoch FROM clock_timestamp() - submit_started_at)
                FROM extraction.batch_jobs WHERE id = :job
            """),
            {"job": job},
        ).scalar_one()
    )


def seconds_in_submitting(connection: Connection, job: JobRow) -> float | None:
    """Seconds since the create call of this attempt was to begin, by the clock of the database;
    `None` where the job was moved on since."""
    seconds = connection.execute(
        text("""
            SELECT extract(epoch FROM clock_timestamp() - submit_started_at)
            FROM extraction.batch_jobs
            WHERE id = :job AND state = 'submitting' AND submit_attempt = :attempt
        """),
        {"job": job.id, "attempt": job.submit_attempt},
    ).scalar_one_or_none()
    return None if seconds is None else float(seconds)


@dataclass(frozen=True)
class Doubt:
    """Since when, in seconds by the clock of the database, it is not known what became of the last
    create call: since it began, and since it was given up. `sender_lost` says that its end was not
    seen."""

    since_submit: float
    since_given_up: float
    sender_lost: bool


def doubt(connection: Connection, job: int) -> Doubt:
    """What is known of a call whose outcome is not."""
    row = connection.execute(
        text("""
            SELECT extract(epoch FROM clock_timestamp() - j.submit_started_at) AS submit,
                   extract(epoch FROM clock_timestamp()
                           - greatest(j.submit_started_at, a.at)) AS given_up,
                   coalesce(a.details->>'sender' = 'lost', false) AS lost
            FROM extraction.batch_jobs j
            LEFT JOIN LATERAL (
                SELECT at, details FROM extraction.audit_events
                WHERE batch_job_id = j.id AND event = 'job_unresolved'
                  AND details->>'sender' IS DISTINCT FROM 'asked_again'
                ORDER BY at DESC, id DESC LIMIT 1) a ON true
            WHERE j.id = :job
        """),
        {"job": job},
    ).one()
    return Doubt(float(row.submit), float(row.given_up), row.lost)


def mark_recorded(connection: Connection, job: int, stage: str) -> None:
    """Say that the materializations of `stage` (`submission` or `results`) are written."""
    column = {"submission": "submission_recorded_at", "results": "results_recorded_at"}[stage]
    connection.execute(
        text(f"UPDATE extraction.batch_jobs SET {column} = now() WHERE id = :job"), {"job": job}
    )
