"""Every commit of a job's life is lost once: the session ends as it commits.

Whatever the provider did by then is found or replayed, and is not bought a second time.
"""

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from extraction_pipeline.errors import DatabaseUnavailable
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.polling import poll
from extraction_pipeline_tests.batch_server.process import wait_until
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.proxy import CONTENT, CREATE, Proxy
from extraction_pipeline_tests.lifecycle.driving import ACTOR, Driven

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
DOCUMENTS = 2
FEWEST = 12
"""Transactions of a job's life at the least: fewer would mean that nothing was lost at all."""


@pytest.fixture
def losses(driven: Driven) -> Iterator[Callable[[int], None]]:
    """Let the transaction with this number, from now on, be lost when it is committed."""
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

    def lose(number: int) -> None:
        driven.execute(
            "DELETE FROM extraction.to_lose;"
            "INSERT INTO extraction.to_lose VALUES (:number);"
            "ALTER SEQUENCE extraction.commits RESTART",
            number=number,
        )

    yield lose
    driven.execute(
        "DROP FUNCTION extraction.stop() CASCADE; DROP TABLE extraction.to_lose;"
        "DROP SEQUENCE extraction.commits"
    )


def lived(driven: Driven) -> int:
    """Take all documents to their records, beginning again wherever the database was lost; how
    often it was."""
    lost = 0

    def step(work: Callable[[], object]) -> None:
        nonlocal lost
        try:
            work()
        except DatabaseUnavailable as error:
            assert error.remedy
            assert "\n" not in str(error)
            lost += 1

    def over() -> bool:
        step(driven.scan)
        step(driven.submit)
        open_jobs = "SELECT id FROM extraction.batch_jobs WHERE state <> 'published' ORDER BY id"
        for (job_id,) in driven.rows(open_jobs):
            job = driven.job(job_id)
            match job.state:
                case JobState.SUBMITTED:
                    step(partial(poll, driven.pipeline, job, ACTOR))
                case JobState.ENDED:
                    step(partial(driven.collect, job.id))
                case JobState.COLLECTED:
                    step(partial(driven.publish, job.id))
                case _:
                    step(partial(driven.resolve, job.id))
        return driven.summary().published == DOCUMENTS and not driven.rows(open_jobs)

    wait_until(over)
    return lost


def test_whichever_commit_is_lost_nothing_is_bought_twice(
    driven: Driven, workplace: Workplace, proxy: Proxy, losses: Callable[[int], None]
) -> None:
    """Promise 4: a failure of the database is mended by replay, never by inference."""
    number, lost = 0, 1
    while lost:
        number += 1
        for path in (workplace.documents / "notes").iterdir():
            path.unlink()
        driven.scan()
        driven.execute(
            "DELETE FROM extraction.extractions; DELETE FROM extraction.raw_responses;"
            "DELETE FROM extraction.request_costs; DELETE FROM extraction.result_files;"
            "DELETE FROM extraction.audit_events; DELETE FROM extraction.batch_items;"
            "DELETE FROM extraction.batch_jobs; DELETE FROM extraction.document_sources;"
            "DELETE FROM extraction.documents"
        )
        creates, downloads = proxy.count(CREATE), proxy.count(CONTENT)
        workplace.write(DOCUMENTS, start=number * DOCUMENTS)
        losses(number)
        lost = lived(driven)
        assert lost <= 1, number
        keys = driven.rows("SELECT job_key FROM extraction.batch_jobs")
        assert [driven.creates_by_key()[key] for (key,) in keys] == [1], number
        assert proxy.count(CREATE) - creates == 1, number
        assert proxy.count(CONTENT) - downloads <= 1 + lost, number
        (counted,) = driven.rows(
            "SELECT (SELECT count(*) FROM extraction.batch_items),"
            " (SELECT count(*) FROM extraction.raw_responses),"
            " (SELECT count(*) FROM extraction.request_costs),"
            " (SELECT count(*) FROM extraction.extractions)"
        )
        assert tuple(counted) == (DOCUMENTS,) * 4, number
    assert number > FEWEST
