"""Every commit of a job's life is lost once: the session ends as it commits, or the commit is made
and its answer lost.

Whatever the provider did by then is found or replayed, and is not bought a second time.
"""

from collections.abc import Iterator

import pytest

from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline_tests.batch_server.process import ServerProcess
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.commit_cutter import CommitCutter, commit_cutter
from extraction_pipeline_tests.faults.proxy import Proxy
from extraction_pipeline_tests.lifecycle.driving import Driven
from extraction_pipeline_tests.lifecycle.whole_lives import whole_lives

TABLES = (
    "documents",
    "document_sources",
    "extraction_versions",
    "batch_jobs",
    "batch_items",
    "result_files",
    "raw_responses",
    "request_costs",
    "extractions",
    "audit_events",
)
FEWEST = 12
"""Transactions of a job's life at the least: fewer would mean that nothing was lost at all."""


class Losses:
    """Ends the session of the transaction with a number, from now on, when it commits."""

    def __init__(self, driven: Driven) -> None:
        self._driven = driven
        self._number = 0

    def lose(self, number: int) -> None:
        self._number = number
        self._driven.execute(
            "DELETE FROM extraction.to_lose;"
            "INSERT INTO extraction.to_lose VALUES (:number);"
            "ALTER SEQUENCE extraction.commits RESTART",
            number=number,
        )

    def has_lost(self) -> bool:
        (counted,) = self._driven.rows("SELECT last_value FROM extraction.commits")
        return int(counted[0]) >= self._number


@pytest.fixture
def losses(driven: Driven) -> Iterator[Losses]:
    driven.execute(
        "CREATE SEQUENCE extraction.commits; CREATE TABLE extraction.to_lose (number bigint);"
        "CREATE FUNCTION extraction.stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF current_setting('extraction.counted', true) IS DISTINCT FROM 'yes' THEN"
        "  PERFORM set_config('extraction.counted', 'yes', true);"
        "  IF nextval('extraction.commits') = (SELECT number FROM extraction.to_lose) THEN"
        "   PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1);"
        " END IF; END IF; RETURN NULL; END $$"
    )
    for table in TABLES:
        driven.execute(
            f"CREATE CONSTRAINT TRIGGER stop AFTER INSERT OR UPDATE ON extraction.{table}"
            " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION extraction.stop()"
        )
    yield Losses(driven)
    driven.execute(
        "DROP FUNCTION extraction.stop() CASCADE; DROP TABLE extraction.to_lose;"
        "DROP SEQUENCE extraction.commits"
    )


def test_whichever_commit_is_lost_nothing_is_bought_twice(
    driven: Driven, workplace: Workplace, proxy: Proxy, losses: Losses
) -> None:
    """Promise 4: a failure of the database is mended by replay, never by inference."""
    assert whole_lives(driven, workplace, proxy, losses.lose, losses.has_lost) > FEWEST


@pytest.fixture
def cutter(database_url: str, workplace: Workplace) -> Iterator[CommitCutter]:
    """A proxy between the pipeline, which is opened after this, and its database."""
    with commit_cutter(database_url) as running:
        workplace.environment.setenv("EXTRACTION_DATABASE_URL", running.url)
        yield running


def test_whichever_commit_is_made_and_not_answered_nothing_is_bought_twice(
    cutter: CommitCutter,
    connected: Pipeline,
    workplace: Workplace,
    proxy: Proxy,
    shared_server: ServerProcess,
) -> None:
    """Who commits is told of a failure, and must not do again what was done."""
    driven = Driven(connected, shared_server)

    def has_cut() -> bool:
        return cutter.has_cut

    assert whole_lives(driven, workplace, proxy, cutter.cut, has_cut) > FEWEST
