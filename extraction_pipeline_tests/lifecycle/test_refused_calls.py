"""Calls that a provider provably refused: who may act next is decided by the kind of refusal."""

import pytest

from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.providers.base import ProviderLimits
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import answer, page
from extraction_pipeline_tests.faults.proxy import CREATE, UPLOAD, Proxy, Route
from extraction_pipeline_tests.lifecycle.driving import Driven
from extraction_pipeline_tests.lifecycle.limits import limited
from extraction_pipeline_tests.lifecycle.lost_calls import waiting_job

ONE_A_JOB = ProviderLimits(1, 1_000_000, None)


@pytest.mark.parametrize("route", [UPLOAD, CREATE], ids=["upload", "create"])
@pytest.mark.parametrize("status", [401, 402, 403])
def test_an_account_at_fault_stops_the_submission_and_burns_nothing(
    driven: Driven, workplace: Workplace, proxy: Proxy, route: Route, status: int
) -> None:
    """Field report 15: the credit ran out, and thousands of lines errored."""
    workplace.write(3)
    driven = limited(driven, ONE_A_JOB)
    driven.scan()
    proxy.plan(route, answer(status), times=None)
    report = driven.submit()
    assert (len(report.jobs), len(report.waiting), len(report.causes)) == (3, 3, 1)
    assert proxy.count(route) == 1
    assert [driven.job(job_id).state for job_id in report.jobs].count(JobState.SUBMITTED) == 0
    assert driven.items() == {("claimed", None, None): 3}
    assert driven.job(report.jobs[0]).due_at > driven.job(report.jobs[0]).created_at
    proxy.forget_plans()
    for job_id in report.jobs:
        assert driven.resolve(job_id).state is JobState.SUBMITTED
        driven.finished(job_id)
        assert driven.creates(job_id) == 1
    assert driven.summary().published == 3


def test_no_credit_under_status_429_is_an_account_at_fault(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(2)
    driven = limited(driven, ONE_A_JOB)
    driven.scan()
    proxy.plan(CREATE, answer(429, {"error": {"code": "insufficient_quota"}}), times=None)
    assert len(driven.submit().waiting) == 2
    assert proxy.count(CREATE) == 1


def test_a_limit_on_calls_waits_as_long_as_the_provider_asks(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Field report 42: 429 on create for hours; no duplicate, no attempt used up."""
    workplace.write(2)
    driven.scan()
    proxy.plan(CREATE, answer(429, retry_after="500"), times=3)
    (job_id,) = driven.submit().waiting
    for refused in (1, 2, 3):
        job = driven.job(job_id)
        assert (job.state, job.submit_attempt, job.trouble_count) == (
            JobState.PREPARED,
            refused,
            refused,
        )
        (wait,) = driven.rows(
            "SELECT extract(epoch FROM due_at - now()) FROM extraction.batch_jobs"
        )
        assert 480 < wait[0] <= 500
        driven.pause_ends()
        driven.resolve(job_id)
    assert proxy.count(UPLOAD) == 1  # what lies there need not be brought again
    assert len(driven.finished(job_id).published) == 2
    assert (driven.creates(job_id), proxy.count(CREATE)) == (1, 4)
    assert {row[0] for row in driven.rows("SELECT attempt FROM extraction.batch_items")} == {1}


def test_an_overloaded_upload_is_tried_again_later(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id = waiting_job(
        driven, workplace, proxy, answer(503, retry_after="90"), call=UPLOAD, documents=1
    )
    assert (driven.job(job_id).state, proxy.count(CREATE)) == (JobState.PREPARED, 0)
    (wait,) = driven.rows("SELECT extract(epoch FROM due_at - now()) FROM extraction.batch_jobs")
    assert 80 < wait[0] <= 90
    driven.pause_ends()
    assert driven.resolve(job_id).state is JobState.SUBMITTED


@pytest.mark.parametrize("route", [UPLOAD, CREATE], ids=["upload", "create"])
def test_a_rejected_job_fails_its_documents_and_the_others_go_on(
    driven: Driven, workplace: Workplace, proxy: Proxy, route: Route
) -> None:
    """A design input: nothing asks again by itself, and everybody sees why."""
    workplace.write(3)
    driven = limited(driven, ONE_A_JOB)
    driven.scan()
    proxy.plan(route, answer(400, {"error": {"code": "invalid_schema"}}))
    report = driven.submit()
    assert (len(report.jobs), len(report.submitted), len(report.waiting)) == (3, 2, 1)
    rejected = driven.job(report.waiting[0])
    assert (rejected.state, rejected.failure_kind, rejected.failure_code) == (
        JobState.REJECTED,
        "rejected",
        "invalid_schema",
    )
    assert driven.items() == {
        ("failed", "rejected", "invalid_schema"): 1,
        ("claimed", None, None): 2,
    }
    assert driven.audited()["job_rejected"] == 1
    for job_id in report.submitted:
        driven.finished(job_id)
    assert driven.submit().jobs == []
    counted = driven.summary()
    assert (counted.published, counted.failed, counted.waiting) == (2, 1, 0)


@pytest.mark.parametrize("route", [UPLOAD, CREATE], ids=["upload", "create"])
@pytest.mark.parametrize("status", [404, 405])
def test_a_base_url_without_the_api_fails_no_document(
    driven: Driven, workplace: Workplace, proxy: Proxy, route: Route, status: int
) -> None:
    """A slip in the settings is no fault of the documents, and is mended without a new version."""
    workplace.write(2)
    driven = limited(driven, ONE_A_JOB)
    driven.scan()
    proxy.plan(route, answer(status), times=None)
    report = driven.submit()
    assert (len(report.waiting), len(report.causes), proxy.count(route)) == (2, 1, 1)
    assert driven.items() == {("claimed", None, None): 2}
    proxy.forget_plans()
    for job_id in report.jobs:
        assert driven.resolve(job_id).state is JobState.SUBMITTED
        driven.finished(job_id)
        assert driven.creates(job_id) == 1
    assert driven.summary().published == 2


@pytest.mark.parametrize("route", [UPLOAD, CREATE], ids=["upload", "create"])
@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refusal_that_is_not_in_the_providers_form_fails_no_document(
    driven: Driven, workplace: Workplace, proxy: Proxy, route: Route, status: int
) -> None:
    """A gateway's page says nothing of the documents."""
    workplace.write(1)
    driven.scan()
    proxy.plan(route, page(status))
    report = driven.submit()
    (job_id,) = report.waiting
    assert driven.job(job_id).state is JobState.PREPARED
    assert len(driven.submit().submitted) == 0  # it is not due yet
    assert driven.resolve(job_id).state is JobState.SUBMITTED
    assert len(driven.finished(job_id).published) == 1
    assert driven.creates(job_id) == 1


def test_an_upload_that_is_gone_is_brought_again(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """A job that waited for the account, longer than the provider keeps its payload."""
    job_id = waiting_job(driven, workplace, proxy, answer(402), documents=1)
    files = driven.pipeline.provider("local").files
    assert files is not None
    files.delete(driven.job(job_id).input_id or "")
    assert driven.resolve(job_id).state is JobState.PREPARED
    assert driven.resolve(job_id).state is JobState.SUBMITTED
    assert (proxy.count(UPLOAD), driven.creates(job_id)) == (2, 1)


def test_a_server_that_is_not_there_was_sent_nothing(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(1)
    driven.scan()
    proxy.close()
    report = driven.submit()
    assert driven.job(report.waiting[0]).state is JobState.PREPARED
    assert driven.items() == {("claimed", None, None): 1}
