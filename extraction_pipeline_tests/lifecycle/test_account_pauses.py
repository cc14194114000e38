"""One call that is told to wait holds back all calls of its account, and those of no other."""

import time
from collections import Counter
from dataclasses import replace

import pytest

from extraction_pipeline.ledger import jobs, pauses, readings
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.pacing import READINGS_PER_INTERVAL, next_poll
from extraction_pipeline.lifecycle.pausing import LONGEST_PAUSE_SECONDS, accounts
from extraction_pipeline.lifecycle.polling import poll, poll_due
from extraction_pipeline.providers.base import BatchProvider, ProviderLimits
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.errors import CallFailed
from extraction_pipeline.providers.openai import OpenAIBatchProvider
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import Hold, answer, forward_then_drop, saying
from extraction_pipeline_tests.faults.proxy import (
    CONTENT,
    CREATE,
    LIST,
    POLL,
    UPLOAD,
    Fault,
    Proxy,
)
from extraction_pipeline_tests.lifecycle.driving import ACTOR, Driven
from extraction_pipeline_tests.lifecycle.limits import limited
from extraction_pipeline_tests.providers.scripted_server import scripted_server, silence

ONE_A_JOB = ProviderLimits(1, 1_000_000, None)
PENDING = saying(status="in_progress")


def pause_of(driven: Driven) -> tuple[float, int]:
    """Seconds that the only pause goes on for, and how many there were in a row."""
    ((seconds, refusals),) = driven.rows(
        "SELECT extract(epoch FROM until - now()), refusals FROM extraction.account_pauses"
    )
    return float(seconds), refusals


def with_two_accounts(driven: Driven, openai: str) -> Driven:
    """The same collection; jobs of `openai` are asked for at another address."""
    local = driven.pipeline.provider

    def provider(name: str) -> BatchProvider:
        if name != "openai":
            return local(name)
        return OpenAIBatchProvider(name, ProviderEndpoint(openai, "k", read_timeout=0.3), ONE_A_JOB)

    return replace(driven, pipeline=replace(driven.pipeline, provider=provider))


@pytest.mark.parametrize("status", [429, 529])
def test_one_refused_reading_pauses_all_kinds_of_calls_of_its_account(
    driven: Driven, workplace: Workplace, proxy: Proxy, status: int
) -> None:
    """Field reports 42, 50: a provider that says when to come back is not asked before."""
    workplace.write(4)
    driven = limited(driven, ONE_A_JOB)
    proxy.plan(CREATE, forward_then_drop)
    driven.scan()
    report = driven.submit()
    (lost,), (first, second, ended) = report.waiting, report.submitted
    driven.ended(ended)
    proxy.plan(POLL, answer(status, retry_after="500"), times=None)
    assert poll(driven.pipeline, driven.job(first), ACTOR).paused
    seconds, _ = pause_of(driven)
    assert 480 < seconds <= 500
    asked = proxy.count(POLL), proxy.count(LIST), proxy.count(CREATE), proxy.count(CONTENT)
    driven.execute("UPDATE extraction.batch_jobs SET due_at = now()")
    assert poll_due(driven.pipeline, ACTOR, 10, seconds=5) == []
    with driven.pipeline.engine.connect() as connection:
        assert jobs.jobs_to_run(connection, 10, accounts=accounts(driven.pipeline)) == []
    searched = driven.resolve(lost)
    assert (searched.state, searched.paused) == (JobState.UNRESOLVED, True)
    assert f"local asked to wait (HTTP {status}, 1 in a row)" in (searched.cause or "")
    with pytest.raises(CallFailed, match="asked to wait"):
        driven.collect(ended)
    workplace.write(2, start=7)
    driven.scan()
    more = driven.submit()
    assert (len(more.jobs), more.submitted, len(more.causes)) == (2, [], 1)
    assert asked == (
        proxy.count(POLL),
        proxy.count(LIST),
        proxy.count(CREATE),
        proxy.count(CONTENT),
    )
    assert driven.items() == {("claimed", None, None): 6}
    proxy.forget_plans()
    driven.pause_ends()
    driven.resolved(lost)
    for job_id in more.jobs:
        assert driven.resolve(job_id).state is JobState.SUBMITTED
    for job_id in (lost, first, second, ended, *more.jobs):
        driven.finished(job_id)
        assert driven.creates(job_id) == 1
    assert driven.summary().published == 6


@pytest.mark.parametrize(
    ("route", "fault"),
    [
        (UPLOAD, answer(429, retry_after="70")),
        (CREATE, answer(429, retry_after="70")),
        (CREATE, answer(503, retry_after="70")),
    ],
    ids=["upload", "create", "create of unknown outcome"],
)
def test_a_refused_submission_sends_no_other_job_of_the_account(
    driven: Driven, workplace: Workplace, proxy: Proxy, route: tuple[str, str], fault: Fault
) -> None:
    workplace.write(3)
    driven = limited(driven, ONE_A_JOB)
    driven.scan()
    proxy.plan(route, fault)  # type: ignore[arg-type]
    report = driven.submit()
    assert (len(report.jobs), report.submitted, proxy.count(UPLOAD)) == (3, [], 1)
    assert 60 < pause_of(driven)[0] <= 70
    driven.pause_ends()
    for job_id in report.jobs:
        driven.resolved(job_id)
        driven.finished(job_id)
        assert driven.creates(job_id) == 1


def test_no_credit_under_429_is_no_pause(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(1)
    driven.scan()
    proxy.plan(CREATE, answer(429, {"error": {"code": "insufficient_quota"}}))
    driven.submit()
    assert driven.rows("SELECT * FROM extraction.account_pauses") == []


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        (None, 9, 10),
        ("-5", 9, 10),
        ("0", 9, 10),
        ("nan", 9, 10),
        ("soon", 9, 10),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 9, 10),
        ("inf", 9, 10),
        ("1e300", LONGEST_PAUSE_SECONDS - 5, LONGEST_PAUSE_SECONDS),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_PAUSE_SECONDS - 5, LONGEST_PAUSE_SECONDS),
    ],
)
def test_odd_wishes_are_bounded(
    driven: Driven,
    workplace: Workplace,
    proxy: Proxy,
    header: str | None,
    least: float,
    most: float,
) -> None:
    workplace.write(1)
    (job_id,) = driven.submitted()
    slow = Driven(workplace.open(POLL_SECONDS="10", POLL_MAX_SECONDS="100"), driven.server)
    proxy.plan(POLL, answer(429, **({} if header is None else {"retry_after": header})))
    poll(slow.pipeline, slow.job(job_id), ACTOR)
    assert least < pause_of(slow)[0] <= most
    slow.pipeline.engine.dispose()


def test_pauses_in_a_row_grow_to_a_bound_and_a_quiet_time_ends_the_row(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(1)
    (job_id,) = driven.submitted()
    slow = Driven(workplace.open(POLL_SECONDS="10", POLL_MAX_SECONDS="60"), driven.server)
    proxy.plan(POLL, answer(429), times=None)
    rows = []
    for _ in range(5):
        poll(slow.pipeline, slow.job(job_id), ACTOR)
        poll(slow.pipeline, slow.job(job_id), ACTOR)  # was under way when the pause began
        rows.append(pause_of(slow))
        slow.pause_ends()
    assert [refusals for _, refusals in rows] == [1, 2, 3, 4, 5]
    assert [round(seconds / 10) for seconds, _ in rows] == [1, 2, 4, 6, 6]
    slow.execute("UPDATE extraction.account_pauses SET until = now() - interval '61 seconds'")
    poll(slow.pipeline, slow.job(job_id), ACTOR)
    assert pause_of(slow)[1] == 1
    slow.pipeline.engine.dispose()


def test_another_key_is_another_account(workplace: Workplace, driven: Driven) -> None:
    provider = driven.pipeline.provider("local")
    endpoint = ProviderEndpoint(provider.base_url, "first")
    first = OpenAIBatchProvider("local", endpoint, ONE_A_JOB).account
    second = OpenAIBatchProvider("local", replace(endpoint, api_key="second"), ONE_A_JOB).account
    assert len({first, second, provider.account}) == 3
    assert "first" not in first


def test_a_paused_or_a_silent_account_leaves_the_others_their_time(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Field report 55: one slow provider must not eat the tick."""
    workplace.write(12)
    driven = limited(driven, ONE_A_JOB)
    submitted = driven.submitted(12)
    driven.execute(
        "UPDATE extraction.batch_jobs SET provider = 'openai', due_at = now() - interval '1 hour'"
        " WHERE id = ANY(:some)",
        some=list(submitted[:6]),
    )
    with scripted_server(*[silence(1.0)] * 20) as silent:
        both = with_two_accounts(driven, silent.url)
        for _ in range(20):
            began = time.monotonic()
            found = poll_due(both.pipeline, ACTOR, 10, seconds=0.5)
            assert time.monotonic() - began < 1.5
            if all(driven.job(job_id).state is JobState.ENDED for job_id in submitted[6:]):
                break
    assert all(driven.job(job_id).state is JobState.ENDED for job_id in submitted[6:])
    assert all(driven.job(job_id).state is JobState.SUBMITTED for job_id in submitted[:6])
    with driven.pipeline.engine.begin() as connection:
        account = both.pipeline.provider("openai").account
        pauses.pause(connection, account, "openai", "u", 429, asked=50, first=1, longest=9)
    driven.execute("UPDATE extraction.batch_jobs SET due_at = now(), state = 'submitted'")
    found = poll_due(both.pipeline, ACTOR, 10, seconds=5)
    assert len(found) == 6
    assert {reading.cause for reading in found} == {None}


def test_collections_take_turns_and_each_reads_the_longest_waiting_first(
    driven: Driven, workplace: Workplace
) -> None:
    workplace.write(5)
    driven = limited(driven, ONE_A_JOB)
    submitted = driven.submitted(5)
    driven.execute(
        "INSERT INTO extraction.extraction_versions (collection, name, fingerprint, recipe,"
        " schema_version, provider, model) SELECT 'other', name, fingerprint, recipe,"
        " schema_version, provider, model FROM extraction.extraction_versions"
    )
    for minutes, job_id in enumerate(submitted):
        driven.execute(
            "UPDATE extraction.batch_jobs SET due_at = now() - make_interval(mins => :minutes),"
            " version_id = (SELECT id FROM extraction.extraction_versions"
            " WHERE collection = :collection) WHERE id = :job",
            minutes=60 - minutes,
            collection="notes" if minutes < 4 else "other",
            job=job_id,
        )
    with driven.pipeline.engine.connect() as connection:
        due = readings.due_readings(connection, [], per_provider=3)
    assert [submitted.index(one.job.id) for one in due] == [0, 4, 1]


def test_polls_an_hour_are_bounded_whatever_the_number_of_jobs() -> None:
    """Field report 50: polling many open batches hit the rate limit."""
    for open_jobs in (1, 20, 400, 3000):
        polls = Counter[int]()
        for job in range(open_jobs):
            at = 0.0
            while (
                at := at + next_poll(polls[job], 0, first=15, longest=900, open_jobs=open_jobs)
            ) < 3600:
                polls[job] += 1
        assert polls.total() <= 1.15 * 3600 * READINGS_PER_INTERVAL / 15


def test_a_poll_spreads_by_the_jobs_that_are_open(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(1)
    (job_id,) = driven.submitted()
    slow = Driven(workplace.open(POLL_SECONDS="10", POLL_MAX_SECONDS="100"), driven.server)
    proxy.plan(POLL, PENDING)
    poll(slow.pipeline, slow.job(job_id), ACTOR, open_jobs=15 * READINGS_PER_INTERVAL)
    (wait,) = slow.rows("SELECT extract(epoch FROM due_at - now()) FROM extraction.batch_jobs")
    assert 130 < wait[0] < 166
    slow.pipeline.engine.dispose()


def test_what_spends_one_patience_leaves_the_others(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """A job read as not ended for long, or that cannot be reached, has not missed its results."""
    workplace.write(2)
    (job_id,) = driven.submitted()
    driven.ended(job_id)
    proxy.plan(POLL, PENDING, times=8)
    proxy.plan(CONTENT, Hold(forward=False))
    for _ in range(8):
        with pytest.raises(CallFailed, match="read as not ended"):
            driven.collect(job_id)
    with pytest.raises(CallFailed):
        driven.collect(job_id)
    counts = {"total": 2, "completed": 2, "failed": 0}
    proxy.plan(POLL, saying(status="expired", output_file_id=None, request_counts=counts))
    with pytest.raises(CallFailed, match="not there yet"):
        driven.collect(job_id)
    assert driven.job(job_id).troubles == {"not_ended": 8, "unreachable": 1, "no_result_files": 1}
    assert driven.items() == {("claimed", None, None): 2}
    assert len(driven.finished(job_id).published) == 2
