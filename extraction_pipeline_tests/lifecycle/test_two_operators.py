"""Two people, or a person and a run, decide about one job at the same moment: it is decided once,
and whoever comes second reads one line."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from extraction_pipeline.errors import ExtractionPipelineError
from extraction_pipeline.ledger.states import AuditEvent, JobState
from extraction_pipeline.lifecycle.decisions import adopt, cancel, give_up
from extraction_pipeline.lifecycle.releasing import release
from extraction_pipeline.providers.errors import ProviderError
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import answer, forward_then_drop, saying
from extraction_pipeline_tests.faults.proxy import CANCEL, CREATE, POLL, Proxy
from extraction_pipeline_tests.lifecycle.driving import ACTOR, Driven
from extraction_pipeline_tests.lifecycle.lost_calls import waiting_job

REASON = "decided by hand"
AT_ONCE = 4


def together(work: Callable[[int], object]) -> tuple[list[object], list[str]]:
    """Do it so many times at once: what came of it, and what the losers were told."""
    barrier = threading.Barrier(AT_ONCE)

    def one(number: int) -> tuple[object, str | None]:
        barrier.wait(20)
        try:
            return work(number), None
        except ExtractionPipelineError as error:
            assert "\n" not in str(error)
            return None, str(error)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        ends = list(threads.map(one, range(AT_ONCE)))
    return (
        [value for value, said in ends if said is None],
        [said for _, said in ends if said is not None],
    )


def lost(driven: Driven, workplace: Workplace, proxy: Proxy) -> tuple[int, str]:
    """A held job whose create was taken and its answer lost, and its id at the provider."""
    job_id = waiting_job(driven, workplace, proxy, forward_then_drop)
    driven.execute("UPDATE extraction.batch_jobs SET state = 'held'")
    key = driven.job(job_id).job_key
    listed = requests.get(f"{driven.server.base_url}/batches?limit=100", timeout=10).json()["data"]
    (batch,) = (one["id"] for one in listed if one["metadata"]["extraction_job_key"] == key)
    return job_id, batch


def test_of_people_who_adopt_a_batch_one_does(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id, batch = lost(driven, workplace, proxy)
    done, told = together(lambda _: adopt(driven.pipeline, job_id, batch, ACTOR, REASON))
    assert (len(done), len(told)) == (1, AT_ONCE - 1)
    assert all("another run" in one for one in told)
    assert driven.audited()[AuditEvent.JOB_ADOPTED] == 1
    assert len(driven.finished(job_id).published) == 2
    assert (driven.creates(job_id), proxy.count(CREATE)) == (1, 1)


def test_of_people_who_give_up_one_does_and_the_documents_are_sent_once(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id, _ = lost(driven, workplace, proxy)
    done, told = together(lambda _: give_up(driven.pipeline, job_id, ACTOR, REASON))
    assert (done, len(told)) == ([2], AT_ONCE - 1)
    assert all("another run" in one for one in told)
    assert driven.audited()[AuditEvent.JOB_GIVEN_UP] == 1
    assert driven.items() == {("failed", "transport", "given_up"): 2}
    (again,) = driven.submit().submitted
    assert driven.creates(again) == 1


def test_one_adopts_and_others_give_up_or_resolve(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Whoever wins, each document has one open request at most and ends with one record."""
    job_id, batch = lost(driven, workplace, proxy)

    def decide(number: int) -> object:
        if number == 0:
            adopt(driven.pipeline, job_id, batch, ACTOR, REASON)
            return None
        if number == 1:
            return give_up(driven.pipeline, job_id, ACTOR, REASON)
        return driven.resolve(job_id)

    together(decide)
    if driven.job(job_id).state is JobState.UNRESOLVED:
        driven.resolved(job_id)
    with_provider = "SELECT id FROM extraction.batch_jobs WHERE state = 'submitted'"
    if not driven.rows(with_provider):
        driven.submit()
    for (open_id,) in driven.rows(with_provider):
        driven.finished(open_id)
    assert driven.summary().published == 2
    assert driven.rows("SELECT count(*) FROM extraction.extractions")[0][0] == 2
    assert driven.creates(job_id) == 1


def test_people_who_release_documents_release_each_once(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id, _ = lost(driven, workplace, proxy)
    give_up(driven.pipeline, job_id, ACTOR, REASON)
    hashes = [row[0] for row in driven.rows("SELECT document_hash FROM extraction.documents")]
    done, told = together(
        lambda _: release(driven.pipeline, "notes", "v1", hashes, ACTOR, REASON).count
    )
    assert (sorted(map(int, map(str, done))), told) == ([0] * (AT_ONCE - 1) + [2], [])
    assert driven.items() == {("released", None, "given_up"): 2}


def test_people_who_cancel_ask_for_one_end(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(2)
    (job_id,) = driven.submitted()
    gone = saying(status="cancelled", output_file_id=None, request_counts=None)
    proxy.plan(CANCEL, gone, times=None)
    proxy.plan(POLL, gone, times=None)
    done, told = together(lambda _: cancel(driven.pipeline, job_id, ACTOR, REASON))
    assert (done, told) == (["cancelled"] * AT_ONCE, [])
    driven.finished(job_id)
    assert driven.items() == {("released", None, "cancelled"): 2}
    with pytest.raises(ExtractionPipelineError, match="Only a job that the provider works on"):
        cancel(driven.pipeline, job_id, ACTOR, REASON)


@pytest.mark.parametrize("status", [400, 404, 500])
def test_field_report_53_a_cancel_that_the_provider_refuses_is_said(
    driven: Driven, workplace: Workplace, proxy: Proxy, status: int
) -> None:
    workplace.write(1)
    (job_id,) = driven.submitted()
    proxy.plan(CANCEL, answer(status), times=None)
    proxy.plan(POLL, saying(status="in_progress", output_file_id=None), times=1)
    with pytest.raises(ProviderError, match=f"{status}") as raised:
        cancel(driven.pipeline, job_id, ACTOR, REASON)
    assert "\n" not in str(raised.value)
    assert driven.audited()[AuditEvent.CANCEL_ASKED] == 0
    assert driven.job(job_id).state is JobState.SUBMITTED
    proxy.forget_plans()
    assert len(driven.finished(job_id).published) == 1  # it goes on, as the provider does


def test_field_report_51_a_job_that_is_overdue_is_not_sent_again(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """It is named by the check; only a person gives it up. It is collected when it ends."""
    workplace.write(2)
    (job_id,) = driven.submitted()
    driven.later(96, job_id)
    driven.execute("UPDATE extraction.batch_jobs SET submitted_at = now() - interval '4 days'")
    report = driven.submit()
    assert (report.jobs, report.waiting) == ([], [])
    assert driven.resolve(job_id).state is JobState.SUBMITTED
    assert len(driven.finished(job_id).published) == 2
    assert (driven.creates(job_id), proxy.count(CREATE)) == (1, 1)
