"""Jobs that need a person's eye are named with the reason, and no other job is."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import Engine, text

from extraction_pipeline.ledger import jobs, pauses, readings
from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.ledger.states import AuditEvent, StuckReason, Trouble
from extraction_pipeline.ledger.stuck import stuck_jobs
from extraction_pipeline.reports.advice import advise_stuck
from extraction_pipeline_tests.ledger.rows import HASH, insert

DAY = timedelta(hours=26)


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    opened = open_engine(database_url)
    yield opened
    opened.dispose()


@pytest.fixture
def version(engine: Engine) -> int:
    with engine.begin() as connection:
        return insert(connection, "extraction_versions")


UNSENT = ("preparing", "prepared", "submitting")


def reasons(engine: Engine, state: str, change: str = "state = state") -> list[str]:
    """Why a new job in this state, with this change, needs a person's eye."""
    with engine.begin() as connection:
        version = connection.execute(text("SELECT id FROM extraction.extraction_versions"))
        job = insert(
            connection,
            "batch_jobs",
            version_id=version.scalar_one(),
            state=state,
            payload_hash=HASH,
            job_id=None if state in UNSENT else "batch-1",
        )
        connection.execute(text(f"UPDATE extraction.batch_jobs SET {change}"))
        found = stuck_jobs(
            connection, "notes", budget=DAY, retention_days={"local": 28}, accounts=["ours"]
        )
        assert stuck_jobs(connection, "others", budget=DAY, retention_days={}) == []
        connection.execute(text("DELETE FROM extraction.batch_jobs WHERE id = :id"), {"id": job})
    return [reason.value for one in found for reason in one.reasons]


CASES: list[tuple[str, str, list[str]]] = [
    ("submitted", "state = state", []),
    ("published", "created_at = now() - interval '90 days'", []),
    ("failed", "trouble_count = 99", []),
    ("held", "state = state", ["held"]),
    ("held", "failure_code = 'job_id_of_another'", ["job_id_of_another"]),
    ("unresolved", "state = state", ["unresolved"]),
    ("submitted", "created_at = now() - interval '27 hours'", ["over_waiting_budget"]),
    ("prepared", "created_at = now() - interval '27 hours'", ["over_waiting_budget"]),
    ("submitted", "moved_at = now() - interval '12 hours'", []),
    ("submitted", "moved_at = now() - interval '14 hours'", ["not_moving"]),
    ("ended", "moved_at = now() - interval '14 hours'", []),
    ("ended", "trouble_count = 10", ["calls_fail"]),
    ("submitted", "failing_since = now() - interval '2 hours'", ["calls_fail"]),
    ("submitted", "due_at = now() - interval '2 hours'", ["not_looked_at"]),
    ("submitted", "submitted_at = now() - interval '20 days'", []),
    ("submitted", "submitted_at = now() - interval '22 days'", ["results_expire"]),
    ("held", "submitted_at = now() - interval '22 days'", ["results_expire", "held"]),
    ("collected", "submitted_at = now() - interval '22 days'", []),
]


def test_a_job_that_needs_a_person_is_named_with_why(engine: Engine, version: int) -> None:
    """Field reports 12, 51: pending for more than a day, and nobody told."""
    for state, change, why in CASES:
        assert reasons(engine, state, change) == why, (state, change)


def test_a_job_that_exists_twice_is_named_whatever_became_of_it(
    engine: Engine, version: int
) -> None:
    def found(state: str, *events: tuple[str, str]) -> list[tuple[list[str], tuple[str, ...]]]:
        with engine.begin() as connection:
            job = insert(
                connection,
                "batch_jobs",
                version_id=version,
                state=state,
                payload_hash=HASH,
                job_id="batch-1",
                created_at="2026-01-01T00:00:00Z",
            )
            for event, batch in events:
                note(connection, AuditEvent(event), "a", job=job, details={"job_id": batch})
            stuck = stuck_jobs(connection, "notes", budget=DAY, retention_days={"local": 28})
            connection.execute(text("DELETE FROM extraction.audit_events"))
            connection.execute(text("DELETE FROM extraction.batch_jobs"))
        return [([reason.value for reason in one.reasons], one.second_batches) for one in stuck]

    twice = ("duplicate_job", "batch-2")
    settled = ("duplicate_settled", "batch-2")
    for state in ("published", "failed"):
        assert found(state, twice, twice) == [(["exists_twice"], ("batch-2",))]
    assert found("held", twice) == [(["exists_twice", "held", "over_waiting_budget"], ("batch-2",))]
    assert found("published", twice, settled) == []
    assert found("published", ("duplicate_job", "batch-1")) == [], "it is its own by now"
    third = ("duplicate_job", "batch-3")
    assert found("published", twice, third, settled) == [(["exists_twice"], ("batch-3",))]


def test_an_account_that_is_told_to_wait_for_long_is_a_reason(engine: Engine, version: int) -> None:
    with engine.begin() as connection:
        pauses.pause(connection, "ours", "local", "u", 429, asked=500, first=1, longest=900)
    assert reasons(engine, "submitted") == []
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE extraction.account_pauses SET since = now() - interval '2 hours'")
        )
        assert [(one.provider, one.lasting) for one in pauses.pauses(connection)] == [
            ("local", True)
        ]
    assert reasons(engine, "submitted") == ["account_paused"]
    with engine.begin() as connection:
        connection.execute(text("UPDATE extraction.account_pauses SET account = 'another'"))
    assert reasons(engine, "submitted") == []


def test_troubles_are_counted_by_kind_and_a_good_reading_ends_all(
    engine: Engine, version: int
) -> None:
    with engine.begin() as connection:
        row = insert(connection, "batch_jobs", version_id=version)
        job = jobs.job_by_id(connection, row)
        counted = [
            readings.postpone(connection, job, 1, trouble)
            for trouble in (
                Trouble.NOT_FOUND,
                Trouble.NOT_FOUND,
                Trouble.UNREACHABLE,  # says nothing of the job, so `not found` begins again
                Trouble.NOT_FOUND,
                Trouble.CUT_LINE,
                Trouble.CUT_LINE,
                Trouble.UNREACHABLE,
            )
        ]
        assert counted == [1, 2, 1, 1, 1, 2, 2]
        job = jobs.job_by_id(connection, row)
        assert (job.trouble_count, job.times(Trouble.CUT_LINE)) == (7, 2)
        assert job.times(Trouble.NOT_FOUND) == 0
        assert readings.postpone(connection, job, 1) == 0
        job = jobs.job_by_id(connection, row)
        assert (job.trouble_count, job.troubles) == (0, {})


def test_since_when_a_provider_says_the_same_is_kept(engine: Engine, version: int) -> None:
    def said(completed: int | None) -> object:
        with engine.begin() as connection:
            job = jobs.job_by_id(connection, row)
            readings.note_reading(
                connection, job, provider_state="s", total=None, completed=completed, failed=0
            )
            return connection.execute(text("SELECT moved_at FROM extraction.batch_jobs")).scalar()

    with engine.begin() as connection:
        row = insert(connection, "batch_jobs", version_id=version)
    first = said(None)
    assert said(None) == first
    moved = said(1)
    assert moved != first
    assert said(1) == moved


def test_every_reason_has_its_advice() -> None:
    assert all(advise_stuck(reason) for reason in StuckReason)
