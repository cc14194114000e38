"""Whole lives of a job, in each of which the database is lost once: at another commit each time."""

from collections.abc import Callable
from functools import partial

from extraction_pipeline.errors import DatabaseUnavailable
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.polling import poll
from extraction_pipeline_tests.batch_server.process import wait_until
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.proxy import CONTENT, CREATE, Proxy
from extraction_pipeline_tests.lifecycle.driving import ACTOR, Driven

DOCUMENTS = 2

_FORGOTTEN = (
    "extractions",
    "raw_responses",
    "request_costs",
    "result_files",
    "audit_events",
    "batch_items",
    "batch_jobs",
    "document_sources",
    "documents",
)


def whole_lives(
    driven: Driven,
    workplace: Workplace,
    proxy: Proxy,
    lose: Callable[[int], None],
    has_lost: Callable[[], bool],
) -> int:
    """Live again and again with new documents, and lose the first commit, the second, ... until
    there is none left to lose; returns how many lives it took. In each, everything is bought once.

    `lose` arms the loss of a commit by its number from now on, `has_lost` says whether it came.
    """
    number = 0
    while True:
        number += 1
        for path in (workplace.documents / "notes").iterdir():
            path.unlink()
        driven.execute(";".join(f"DELETE FROM extraction.{table}" for table in _FORGOTTEN))
        creates, downloads = proxy.count(CREATE), proxy.count(CONTENT)
        workplace.write(DOCUMENTS, start=number * DOCUMENTS)
        lose(number)
        lost = _lived(driven)
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
        if not has_lost():
            return number


def _lived(driven: Driven) -> int:
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
