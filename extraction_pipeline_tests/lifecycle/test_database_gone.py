"""The database goes away at the worst moment; what the provider did in between is not lost.

Field report 4: the create failed *after* the provider took the job, because the database client was
stale; the job ran and billed with no id.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import create_engine, make_url, text

from extraction_pipeline.errors import DatabaseUnavailable
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import meanwhile
from extraction_pipeline_tests.faults.proxy import CONTENT, CREATE, POLL, UPLOAD, Proxy, Route
from extraction_pipeline_tests.lifecycle.driving import Driven


class Database:
    """The test's own database, which can be closed to everybody and opened again."""

    def __init__(self, server_url: str, database_url: str) -> None:
        self._name = make_url(database_url).database
        self._engine = create_engine(
            make_url(server_url).set(drivername="postgresql+psycopg2"), isolation_level="AUTOCOMMIT"
        )

    def go_away(self) -> None:
        with self._engine.connect() as connection:
            connection.execute(text(f"ALTER DATABASE {self._name} ALLOW_CONNECTIONS false"))
            connection.execute(
                text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :it"),
                {"it": self._name},
            )

    def come_back(self) -> None:
        with self._engine.connect() as connection:
            connection.execute(text(f"ALTER DATABASE {self._name} ALLOW_CONNECTIONS true"))

    def close(self) -> None:
        self.come_back()
        self._engine.dispose()


@pytest.fixture
def database(postgres_url: str, database_url: str) -> Iterator[Database]:
    opened = Database(postgres_url, database_url)
    yield opened
    opened.close()


@contextmanager
def no_database(database: Database) -> Iterator[None]:
    """What fails in here fails with one line that says so; then the database comes back."""
    with pytest.raises(DatabaseUnavailable) as raised:
        yield
    assert raised.value.remedy
    database.come_back()


def test_gone_between_acceptance_and_our_note_of_it(
    driven: Driven, workplace: Workplace, proxy: Proxy, database: Database
) -> None:
    workplace.write(3)
    driven.scan()
    proxy.plan(CREATE, meanwhile(database.go_away))
    with no_database(database):
        driven.submit()
    ((job_id,),) = driven.rows("SELECT id FROM extraction.batch_jobs")
    assert driven.job(job_id).state is JobState.SUBMITTING
    assert driven.submit().jobs == []
    assert driven.resolve(job_id).state is JobState.SUBMITTED
    assert len(driven.finished(job_id).published) == 3
    assert (driven.creates(job_id), proxy.count(CREATE)) == (1, 1)
    assert driven.audited()["job_adopted"] == 1


@pytest.mark.parametrize("route", [UPLOAD, POLL, CONTENT], ids=["upload", "poll", "download"])
def test_gone_in_any_other_call_costs_nothing_but_time(
    driven: Driven, workplace: Workplace, proxy: Proxy, database: Database, route: Route
) -> None:
    workplace.write(2)
    driven.scan()
    proxy.plan(route, meanwhile(database.go_away))
    with no_database(database):
        (job_id,) = driven.submit().submitted
        driven.finished(job_id)
    ((job_id,),) = driven.rows("SELECT id FROM extraction.batch_jobs")
    driven.resolve(job_id)
    assert len(driven.finished(job_id).published) == 2
    assert (driven.creates(job_id), proxy.count(CREATE)) == (1, 1)


def test_gone_in_the_middle_of_publishing_everything_is_published_without_the_provider(
    driven: Driven, workplace: Workplace, proxy: Proxy, database: Database
) -> None:
    """Promise 4: a failure of the database is mended by replay, never by inference."""
    workplace.write(1200)  # three chunks
    (job_id,) = driven.submitted()
    driven.ended(job_id)
    driven.collect(job_id)
    proxy.close()
    driven.execute(
        "CREATE FUNCTION extraction.stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF (SELECT count(*) FROM extraction.extractions) > 600 THEN"
        " PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NULL; END $$"
    )
    driven.execute(
        "CREATE TRIGGER stop AFTER INSERT ON extraction.extractions"
        " FOR EACH STATEMENT EXECUTE FUNCTION extraction.stop()"
    )
    with no_database(database):
        driven.publish(job_id)
    driven.execute("DROP TRIGGER stop ON extraction.extractions")
    assert driven.job(job_id).state is JobState.COLLECTED
    assert driven.summary().published == 500  # whole chunks, no half of one
    assert len(driven.publish(job_id).published) == 700
    assert driven.summary().published == 1200
    assert driven.job(job_id).state is JobState.PUBLISHED
