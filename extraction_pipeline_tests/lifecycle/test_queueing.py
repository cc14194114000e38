"""What an account may have under way at once, and jobs that the provider finds too large."""

import threading

import pytest

from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.providers.base import ProviderLimits
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import answer
from extraction_pipeline_tests.faults.proxy import CREATE, UPLOAD, Exchange, Fault, Proxy, Reply
from extraction_pipeline_tests.lifecycle.driving import Driven
from extraction_pipeline_tests.lifecycle.limits import limited

TWO_AT_ONCE = ProviderLimits(1, 1_000_000, None, jobs_at_once=2)


def test_jobs_beyond_the_accounts_number_wait_until_others_end(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(3)
    driven = limited(driven, TWO_AT_ONCE)
    driven.scan()
    report = driven.submit()
    assert (len(report.submitted), len(report.waiting)) == (2, 1)
    assert "as many as the account may have" in report.causes[0]
    (waiting,) = report.waiting
    assert driven.resolve(waiting).state is JobState.PREPARED
    assert (proxy.count(UPLOAD), proxy.count(CREATE)) == (2, 2)
    driven.finished(report.submitted[0])
    assert driven.resolve(waiting).state is JobState.SUBMITTED
    for job_id in (report.submitted[1], waiting):
        driven.finished(job_id)
    assert driven.summary().published == 3
    assert {row[0] for row in driven.rows("SELECT attempt FROM extraction.batch_items")} == {1}


def test_a_job_that_may_exist_counts_as_one_that_does(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(2)
    driven = limited(driven, ProviderLimits(1, 1_000_000, None, jobs_at_once=1))
    driven.scan()
    proxy.plan(CREATE, answer(502))
    report = driven.submit()
    assert len(report.waiting) == 2
    assert proxy.count(CREATE) == 1


def test_payloads_beyond_the_queue_wait(driven: Driven, workplace: Workplace) -> None:
    workplace.write(2)
    driven = limited(driven, ProviderLimits(1, 1_000_000, None, queued_bytes=11_000))
    driven.scan()
    report = driven.submit()
    assert (len(report.submitted), len(report.waiting)) == (1, 1)
    assert "more would be queued" in report.causes[0]
    driven.finished(report.submitted[0])
    assert driven.resolve(report.waiting[0]).state is JobState.SUBMITTED


def test_two_senders_at_once_do_not_share_the_last_place(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(4)
    driven = limited(driven, ProviderLimits(1, 1_000_000, None, jobs_at_once=1))
    driven.scan()
    proxy.plan(CREATE, answer(429), times=1)
    jobs = driven.submit().jobs  # none is at the provider
    driven.pause_ends()
    threads = [threading.Thread(target=driven.resolve, args=(job_id,)) for job_id in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    states = [driven.job(job_id).state for job_id in jobs]
    assert states.count(JobState.SUBMITTED) == 1
    assert states.count(JobState.PREPARED) == 3


def over(size: int) -> Fault:
    """Refuse uploads of more than `size` bytes, as a provider's gateway does."""

    def fault(exchange: Exchange) -> None:
        if len(exchange.body) > size:
            exchange.answer(Reply(413, b"<html>Too large</html>"))
        else:
            exchange.answer(exchange.forward())

    return fault


@pytest.mark.parametrize("count", [5, 8])
def test_a_job_refused_for_its_size_is_made_again_as_smaller_ones(
    driven: Driven, workplace: Workplace, proxy: Proxy, count: int
) -> None:
    workplace.write(count)
    driven.scan()
    proxy.plan(UPLOAD, over(30_000), times=None)
    report = driven.submit()
    assert report.split >= 1
    assert report.documents == count
    assert report.waiting == []
    for job_id in report.submitted:
        driven.finished(job_id)
    assert driven.summary().published == count
    released = count * report.split
    assert driven.items() == {
        ("published", None, None): count,
        ("released", None, "too_large_for_provider"): released,
    }
    assert [driven.creates(job_id) for job_id in report.submitted] == [1] * len(report.submitted)


def test_a_job_that_is_held_for_a_person_keeps_no_place(
    driven: Driven, workplace: Workplace
) -> None:
    workplace.write(2)
    driven = limited(driven, ProviderLimits(1, 1_000_000, None, jobs_at_once=1))
    driven.scan()
    report = driven.submit()
    driven.execute(
        "UPDATE extraction.batch_jobs SET state = 'held' WHERE id = :job", job=report.submitted[0]
    )
    assert driven.resolve(report.waiting[0]).state is JobState.SUBMITTED
