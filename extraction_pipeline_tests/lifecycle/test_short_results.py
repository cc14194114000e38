"""Results with fewer rows than the provider counts: what was paid for is not bought again."""

from collections.abc import Iterator

import pytest

from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.fetching import SHORT_PATIENCE, least_rows
from extraction_pipeline.lifecycle.releasing import release
from extraction_pipeline.providers.base import (
    CallRecord,
    JobPhase,
    JobStatus,
    RequestCounts,
    ResultKind,
    ResultReference,
)
from extraction_pipeline.providers.errors import CallFailed
from extraction_pipeline_tests.batch_server.process import ServerProcess
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import saying
from extraction_pipeline_tests.faults.proxy import CONTENT, POLL, Proxy, Route, rewritten
from extraction_pipeline_tests.faults.result_rows import both, envelope, undecodable, without
from extraction_pipeline_tests.lifecycle.driving import ACTOR, Driven

ANTHROPIC_RESULTS = Route("GET", r"/v1/messages/batches/[^/]+/results")
LOST = ("failed", "rejected", "results_lost")


def first_four_rows(content: bytes) -> bytes:
    return b"".join(content.splitlines(keepends=True)[:4])


@pytest.fixture(params=["local", "anthropic"])
def asked(
    request: pytest.FixtureRequest,
    driven: Driven,
    workplace: Workplace,
    proxy: Proxy,
    shared_server: ServerProcess,
) -> Iterator[tuple[Driven, Route]]:
    """The collection at a provider, and where its results are."""
    if request.param == "local":
        yield driven, CONTENT
        return
    workplace.declare(provider="anthropic", model="rules-baseline")
    workplace.environment.setenv("EXTRACTION_ANTHROPIC_API_KEY", "k-1")
    workplace.environment.setenv(
        "EXTRACTION_ANTHROPIC_BASE_URL", proxy.base_url.removesuffix("/v1")
    )
    pipeline = workplace.open(POLL_MAX_SECONDS="0.05")
    yield Driven(pipeline, shared_server), ANTHROPIC_RESULTS
    pipeline.engine.dispose()


def ended(driven: Driven, workplace: Workplace, count: int) -> int:
    workplace.write(count)
    (job_id,) = driven.submitted()
    driven.ended(job_id)
    return job_id


def cut_between_rows(proxy: Proxy, route: Route, *, times: int | None) -> None:
    """Under a good status, and correctly framed."""
    if route is CONTENT:
        proxy.plan_results(first_four_rows, times=times)
    else:
        proxy.plan(route, rewritten(first_four_rows), times=times)


def test_results_that_were_cut_between_two_rows_are_fetched_again(
    asked: tuple[Driven, Route], workplace: Workplace, proxy: Proxy
) -> None:
    driven, route = asked
    job_id = ended(driven, workplace, 6)
    cut_between_rows(proxy, route, times=1)
    with pytest.raises(CallFailed, match="got 4 of at least 6 results"):
        driven.collect(job_id)
    assert driven.job(job_id).state is JobState.ENDED
    assert driven.items() == {("claimed", None, None): 6}
    assert driven.rows("SELECT FROM extraction.result_files") == []
    assert driven.collect(job_id)[1].landed == 6
    assert len(driven.publish(job_id).published) == 6
    assert driven.submit().jobs == []


def test_results_that_stay_short_are_taken_and_a_person_decides_about_the_rest(
    asked: tuple[Driven, Route], workplace: Workplace, proxy: Proxy
) -> None:
    driven, route = asked
    job_id = ended(driven, workplace, 6)
    cut_between_rows(proxy, route, times=None)
    for _ in range(SHORT_PATIENCE):
        with pytest.raises(CallFailed):
            driven.collect(job_id)
    _, landing = driven.collect(job_id)
    assert (landing.landed, landing.missing) == (4, 2)
    assert driven.items() == {("answered", None, None): 4, LOST: 2}
    assert len(driven.publish(job_id).published) == 4
    assert driven.submit().jobs == []
    hashes = [row[0] for row in driven.rows("SELECT document_hash FROM extraction.documents")]
    assert release(driven.pipeline, "notes", "v1", hashes, ACTOR, "not to be found").count == 2
    assert driven.submit().documents == 2


def test_one_row_that_cannot_be_read_costs_one_document_and_is_not_bought_again(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Field report 31: one bad line failed the whole batch after paying."""
    proxy.plan_results(undecodable(1))
    job_id = ended(driven, workplace, 4)
    _, landing = driven.collect(job_id)
    assert (landing.landed, landing.undecodable, landing.missing) == (3, 1, 1)
    assert driven.items() == {("answered", None, None): 3, LOST: 1}
    assert len(driven.publish(job_id).published) == 3
    assert driven.submit().jobs == []


def test_a_row_of_a_failed_request_is_not_taken_for_one_that_was_completed(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Four are completed and one is failed: of four rows only three are of the completed."""
    failed = envelope(0, status_code=500, body={"error": {"message": "Oh.", "type": "server"}})
    proxy.plan_results(both(failed, without(3)))
    counts = {"total": 5, "completed": 4, "failed": 1}
    proxy.plan(POLL, saying(request_counts=counts), times=None)
    job_id = ended(driven, workplace, 5)
    driven.execute(
        "UPDATE extraction.batch_jobs"
        " SET troubles = jsonb_build_object('short_results', :patience)",
        patience=SHORT_PATIENCE,
    )
    _, landing = driven.collect(job_id)
    assert (landing.landed, landing.unasked, landing.missing) == (4, 1, 1)
    assert driven.items()[LOST] == 1


OUTPUT = ResultReference(ResultKind.OUTPUT, "output")
ERROR = ResultReference(ResultKind.ERROR, "error")


@pytest.mark.parametrize(
    ("phase", "counts", "results", "least"),
    [
        (JobPhase.ENDED, RequestCounts(9, 6, 2), (OUTPUT,), 8),
        (JobPhase.ENDED, RequestCounts(9, 6, 2), (OUTPUT, ERROR), 6),
        (JobPhase.ENDED, RequestCounts(99, 60, 20), (OUTPUT,), 9),
        (JobPhase.ENDED, RequestCounts(9, None, 2), (OUTPUT,), 2),
        (JobPhase.ENDED, RequestCounts(), (OUTPUT,), 0),
        (JobPhase.CANCELLED, RequestCounts(9, 6, 2), (OUTPUT,), 6),
        (JobPhase.EXPIRED, RequestCounts(9, 6, 2), (OUTPUT,), 6),
    ],
)
def test_how_many_rows_there_must_be(
    phase: JobPhase, counts: RequestCounts, results: tuple[ResultReference, ...], least: int
) -> None:
    call = CallRecord(200, None)
    status = JobStatus("b-1", phase, "any", counts, results, call)
    assert least_rows(status, 9) == least
