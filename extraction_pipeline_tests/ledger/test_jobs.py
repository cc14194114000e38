"""Moves of batch jobs: each is made by one, and who comes second changes nothing."""

import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text

from extraction_pipeline.ledger import jobs
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.ledger.readings import due_readings
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline_tests.ledger.rows import HASH, insert


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    opened = open_engine(database_url)
    yield opened
    opened.dispose()


@pytest.fixture
def version(engine: Engine) -> int:
    with engine.begin() as connection:
        return insert(connection, "extraction_versions")


def made(engine: Engine, version: int, state: str, **values: object) -> jobs.JobRow:
    """A job in a state, as the ledger reads it."""
    known = {"job_id": f"batch-{state}"} if state in HAS_ID else {}
    with engine.begin() as connection:
        row = insert(
            connection,
            "batch_jobs",
            **{
                "version_id": version,
                "job_key": f"key-{state}",
                "state": state,
                "payload_hash": HASH,
                **known,
                **values,
            },
        )
        return jobs.job_by_id(connection, row)


HAS_ID = ("submitted", "ended", "collected", "published")


def at_once(count: int, step) -> list[object]:
    """What `count` threads get from one step that they begin at once; errors as results."""
    start = threading.Barrier(count)
    results: list[object] = []

    def run() -> None:
        start.wait(5)
        try:
            results.append(step())
        except jobs.StateMoved as error:
            results.append(type(error))

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    return results


def test_of_movers_at_once_one_moves(engine: Engine, version: int) -> None:
    job = made(engine, version, "prepared")

    def move() -> None:
        with engine.begin() as connection:
            jobs.move(connection, job, JobState.SUBMITTING, values={"submit_attempt": 1})

    results = at_once(5, move)
    assert (results.count(None), results.count(jobs.StateMoved)) == (1, 4)


def test_a_move_of_an_earlier_attempt_is_refused(engine: Engine, version: int) -> None:
    """The answer to the first create arrives when the second is under way."""
    job = made(engine, version, "submitting")
    with engine.begin() as connection:
        connection.execute(text("UPDATE extraction.batch_jobs SET submit_attempt = 2"))
    with pytest.raises(jobs.StateMoved), engine.begin() as connection:
        jobs.move(connection, job, JobState.SUBMITTED, values={"job_id": "late"})
    with engine.connect() as connection:
        assert jobs.job_by_id(connection, job.id).job_id is None


def test_of_ticks_at_once_one_asks_for_the_run(engine: Engine, version: int) -> None:
    """Field reports 60, 61."""
    job = made(engine, version, "ended")

    def claim() -> bool:
        with engine.begin() as connection:
            return jobs.claim_run(connection, job)

    assert sorted(at_once(5, claim), key=str) == [False, False, False, False, True]


def test_a_run_is_asked_for_where_there_is_something_to_do(engine: Engine, version: int) -> None:
    for state in JobState:
        made(engine, version, state.value, submission_recorded_at="now")
    with engine.connect() as connection:
        wanted = {job.state for job in jobs.jobs_to_run(connection, 100)}
    assert wanted == {
        JobState.PREPARING,
        JobState.PREPARED,
        JobState.SUBMITTING,
        JobState.UNRESOLVED,
        JobState.ENDED,
        JobState.COLLECTED,
        JobState.PUBLISHED,  # its records are not written
    }
    with engine.begin() as connection:
        connection.execute(
            text(
                "UPDATE extraction.batch_jobs SET due_at = now() + interval '1 hour',"
                " results_recorded_at = now()"
            )
        )
        assert {job.state for job in jobs.jobs_to_run(connection, 100)} == {
            JobState.ENDED,
            JobState.COLLECTED,
        }


def test_jobs_that_must_wait_for_their_next_run_keep_no_other_back(
    engine: Engine, version: int
) -> None:
    """Field report 55: many bad jobs first in the queue, and one provider with many."""
    for number in range(6):
        name = f"bad-{number}"
        made(engine, version, "ended", job_key=name, job_id=name, run_attempt=9)
    for number in range(3):
        name = f"many-{number}"
        made(engine, version, "ended", job_key=name, job_id=name)
    made(engine, version, "ended", job_key="other", job_id="other", provider="openai")
    with engine.begin() as connection:
        connection.execute(
            text(
                "UPDATE extraction.batch_jobs SET run_requested_at = now() - interval '10 minutes'"
                " WHERE run_attempt = 9"
            )
        )
        found = jobs.jobs_to_run(connection, 3, again=(7.5, 900.0))
        assert {job.job_key for job in found} == {"many-0", "other", "many-1"}
        connection.execute(
            text("UPDATE extraction.batch_jobs SET run_requested_at = now() - interval '901 s'")
        )
        assert len(jobs.jobs_to_run(connection, 20, again=(7.5, 900.0))) == 10
        connection.execute(
            text(
                "UPDATE extraction.batch_jobs SET run_attempt = 2,"
                " run_requested_at = now() - interval '29 s'"
            )
        )
        assert jobs.jobs_to_run(connection, 20, again=(7.5, 900.0)) == []


def test_jobs_are_read_the_longest_due_first(engine: Engine, version: int) -> None:
    for minutes in (1, 3, 2, -5):
        made(
            engine,
            version,
            "submitted",
            job_key=str(minutes),
            job_id=str(minutes),
        )
        with engine.begin() as connection:
            connection.execute(
                text(
                    "UPDATE extraction.batch_jobs SET due_at = now() - :minutes * interval '1 min'"
                    " WHERE job_key = :key"
                ),
                {"minutes": minutes, "key": str(minutes)},
            )
    with engine.connect() as connection:
        due = due_readings(connection, [], per_provider=2)
    assert [(one.job.job_key, one.open_jobs) for one in due] == [("3", 4), ("2", 4)]
