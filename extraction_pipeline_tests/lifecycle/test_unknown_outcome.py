"""A create call whose outcome is not known: the job is looked for, and never guessed.

Field reports 1, 2, 4, 5: a second batch is bought because the answer to the first create is lost.
"""

import threading
from collections.abc import Callable

import pytest

from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.decisions import give_up
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.resolution import FAILED_SEARCHES
from extraction_pipeline.lifecycle.submission import SubmissionReport
from extraction_pipeline_tests.batch_server.client import Client
from extraction_pipeline_tests.batch_server.process import wait_until
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import (
    Hold,
    Late,
    answer,
    drop_before,
    forward_then,
    forward_then_drop,
    meanwhile,
    page,
)
from extraction_pipeline_tests.faults.proxy import (
    CREATE,
    DELETE_FILE,
    FILE,
    LIST,
    UPLOAD,
    Exchange,
    Fault,
    Proxy,
)
from extraction_pipeline_tests.ledger.databases import LOCK_HOLDERS_END
from extraction_pipeline_tests.lifecycle.driving import ACTOR, Driven
from extraction_pipeline_tests.lifecycle.lost_calls import waiting_job

REFUSED_AFTER_ALL = {
    "404 of a gateway": page(404),
    "429": answer(429),
    "413": answer(413, {"error": {"code": "too_large"}}),
    "400": answer(400, {"error": {"code": "invalid_request"}}),
}
"""Answers to the second of two calls that something on the way made of one."""

ACCEPTED_AND_LOST: dict[str, Callable[[], Fault]] = {
    "connection dropped": lambda: forward_then_drop,
    "answered 500 (field report 5)": lambda: forward_then(500),
    "answered 502": lambda: forward_then(502),
    "answered 409": lambda: forward_then(409),
    "answered 200 with a page": lambda: forward_then(200),
    "no answer in time": lambda: Hold(forward=True),
}


def lost(driven: Driven, workplace: Workplace, proxy: Proxy, fault: Fault) -> int:
    """A job whose create call is lost, long enough ago for absence to count."""
    job_id = waiting_job(driven, workplace, proxy, fault)
    driven.later(1)
    return job_id


@pytest.mark.parametrize("fault", ACCEPTED_AND_LOST.values(), ids=ACCEPTED_AND_LOST)
def test_a_job_that_was_taken_is_adopted_and_made_once(
    driven: Driven, workplace: Workplace, proxy: Proxy, fault: Callable[[], Fault]
) -> None:
    workplace.write(3)
    proxy.plan(CREATE, fault())
    driven.scan()
    report = driven.submit()
    (job_id,) = report.waiting
    assert driven.job(job_id).state is JobState.UNRESOLVED
    assert driven.submit().jobs == []  # its documents are claimed
    assert driven.resolve(job_id).state is JobState.SUBMITTED
    assert len(driven.finished(job_id).published) == 3
    assert (driven.creates(job_id), proxy.count(CREATE)) == (1, 1)
    assert driven.audited()["job_adopted"] == 1


@pytest.mark.parametrize("refusal", REFUSED_AFTER_ALL.values(), ids=REFUSED_AFTER_ALL)
def test_a_refusal_after_acceptance_buys_nothing_twice(
    driven: Driven, workplace: Workplace, proxy: Proxy, refusal: Fault
) -> None:
    def doubled(exchange: Exchange) -> None:
        exchange.forward()
        refusal(exchange)

    workplace.write(3)
    proxy.plan(CREATE, doubled)
    driven.scan()
    report = driven.submit()
    (job_id,) = report.jobs
    driven.pause_ends()
    assert driven.resolve(job_id).state is JobState.SUBMITTED
    assert len(driven.finished(job_id).published) == 3
    assert driven.creates(job_id) == 1
    assert (proxy.count(CREATE), proxy.count(UPLOAD)) == (1, 1)
    assert driven.audited()["job_adopted"] == 1


def test_absence_counts_from_when_the_call_was_given_up(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """A payload may have been on its way for longer than any grace period."""
    job_id = waiting_job(driven, workplace, proxy, drop_before, documents=1)
    driven.execute("UPDATE extraction.batch_jobs SET submit_started_at = now() - interval '1h'")
    sent = driven.resolve(job_id)
    assert sent.state is JobState.UNRESOLVED
    assert "counts as absent in" in (sent.cause or "")
    assert proxy.count(CREATE) == 1


def test_a_create_that_never_arrived_is_proven_absent_and_sent_under_the_same_key(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id = waiting_job(driven, workplace, proxy, drop_before)
    before = driven.job(job_id)
    # Lists may lag behind: until a create could have taken effect, absence proves nothing.
    early = driven.resolve(job_id)
    assert early.state is JobState.UNRESOLVED
    assert "counts as absent in" in (early.cause or "")
    assert proxy.count(CREATE) == 1
    driven.resolved(job_id)
    after = driven.job(job_id)
    assert after.job_key == before.job_key
    assert after.submit_attempt == 2
    assert (after.payload_hash, after.payload_bytes) == (before.payload_hash, before.payload_bytes)
    assert (driven.creates(job_id), proxy.count(CREATE)) == (1, 2)
    assert driven.audited()["job_proven_absent"] == 1
    assert len(driven.finished(job_id).published) == 2


def test_a_search_that_fails_proves_nothing(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id = waiting_job(driven, workplace, proxy, drop_before, documents=1)
    proxy.plan(LIST, answer(503), times=3)
    for _ in range(3):
        driven.later(1)
        driven.pause_ends()
        sent = driven.resolve(job_id)
        assert sent.state is JobState.UNRESOLVED
        assert "could not be searched for" in (sent.cause or "")
    assert proxy.count(CREATE) == 1
    driven.resolved(job_id)
    assert (driven.creates(job_id), proxy.count(CREATE)) == (1, 2)


def test_a_job_found_under_another_address_only_is_no_proof_of_absence(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """The base URL was changed between the create and the search."""
    job_id = lost(driven, workplace, proxy, forward_then_drop)
    driven.execute("UPDATE extraction.batch_jobs SET base_url = 'https://batches.example/v1'")
    proxy.plan(LIST, answer(200, {"data": [], "has_more": False}), times=None)
    sent = driven.resolve(job_id)
    assert sent.state is JobState.UNRESOLVED
    assert "https://batches.example/v1" in (sent.cause or "")
    assert proxy.count(CREATE) == 1


def test_a_create_that_arrives_after_its_job_was_sent_again_makes_no_second_one(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """It names an upload that is not there any more."""
    late = Late()
    job_id = lost(driven, workplace, proxy, late)
    assert driven.resolve(job_id).state is JobState.SUBMITTED
    assert late.arrive() in (400, 404)
    assert (driven.creates(job_id), proxy.count(CREATE), proxy.count(UPLOAD)) == (1, 2, 2)
    assert driven.audited()["input_withdrawn"] == 1
    assert len(driven.finished(job_id).published) == 2


def test_a_create_that_arrives_right_behind_the_search_is_found_by_the_next(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    late = Late()
    job_id = lost(driven, workplace, proxy, late)
    proxy.plan(LIST, meanwhile(late.arrive))
    driven.resolved(job_id)
    assert (driven.creates(job_id), proxy.count(CREATE)) == (1, 1)
    assert driven.audited()["job_adopted"] == 1


def test_a_withdrawal_of_unknown_outcome_is_carried_on(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id = lost(driven, workplace, proxy, drop_before)
    proxy.plan(DELETE_FILE, forward_then_drop)
    assert driven.resolve(job_id).state is JobState.UNRESOLVED
    driven.resolved(job_id)
    assert (driven.creates(job_id), proxy.count(CREATE)) == (1, 2)


def test_a_list_of_another_account_proves_nothing(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """The key was changed between the create and the search."""
    job_id = lost(driven, workplace, proxy, forward_then_drop)
    proxy.plan(LIST, answer(200, {"data": [], "has_more": False}), times=None)
    proxy.plan(FILE, answer(404), times=None)
    sent = driven.resolve(job_id)
    assert sent.state is JobState.UNRESOLVED
    assert "same account" in (sent.cause or "")
    assert proxy.count(CREATE) == 1
    proxy.forget_plans()
    driven.resolved(job_id)
    assert (driven.creates(job_id), proxy.count(CREATE)) == (1, 1)


def test_two_resolvers_at_once_make_one_create(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id = lost(driven, workplace, proxy, drop_before)
    hold = Hold(forward=True)
    proxy.plan(CREATE, hold)
    first = threading.Thread(target=driven.resolve, args=(job_id,))
    first.start()
    assert hold.reached.wait(20)
    second = driven.resolve(job_id)
    assert "another run is at work" in (second.cause or "")
    hold.release.set()
    first.join(20)
    assert driven.job(job_id).state is JobState.SUBMITTED
    assert driven.resolve(job_id).state is JobState.SUBMITTED
    assert (driven.creates(job_id), proxy.count(CREATE)) == (1, 2)


def test_of_a_job_that_exists_twice_one_is_adopted_and_the_other_audited(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id = waiting_job(driven, workplace, proxy, forward_then_drop)
    job = driven.job(job_id)
    assert job.input_id is not None
    Client(driven.server.base_url).create(
        job.input_id, metadata={"extraction_job_key": job.job_key}
    )
    assert driven.creates(job_id) == 2
    sent = driven.resolve(job_id)
    assert sent.state is JobState.SUBMITTED
    ((details,),) = driven.rows(
        "SELECT details FROM extraction.audit_events WHERE event = 'duplicate_job'"
    )
    adopted = driven.job(job_id).job_id
    assert adopted != details["job_id"]
    assert all(str(known) in (sent.cause or "") for known in (adopted, details["job_id"]))
    assert len(driven.finished(job_id).published) == 2


@pytest.mark.parametrize("answered", [True, False], ids=["answer", "time-out"])
def test_what_comes_after_another_run_resolved_the_job_changes_nothing(
    driven: Driven, workplace: Workplace, proxy: Proxy, answered: bool
) -> None:
    """The lock of the first run is lost with its database session while its create hangs."""
    workplace.write(2)
    hold = Hold(forward=True)
    proxy.plan(CREATE, hold)
    driven.scan()
    reports: list[SubmissionReport] = []
    slow = threading.Thread(target=lambda: reports.append(driven.submit()))
    slow.start()
    assert hold.reached.wait(20)
    driven.execute(LOCK_HOLDERS_END)
    (job_id,) = [row[0] for row in driven.rows("SELECT id FROM extraction.batch_jobs")]
    wait_until(lambda: driven.resolve(job_id).state is JobState.SUBMITTED)
    adopted = driven.job(job_id)
    if answered:
        hold.release.set()
    slow.join(20)
    assert driven.job(job_id).job_id == adopted.job_id
    assert (driven.creates(job_id), proxy.count(CREATE)) == (1, 1)
    assert driven.audited()["duplicate_job"] == 0
    # A lock that went with its session is not held against the work.
    assert [report.submitted for report in reports] == [[job_id]]


@pytest.mark.parametrize("state", ["unresolved", "held", "prepared"])
def test_what_comes_while_another_run_has_found_nothing_yet_is_the_batch_of_the_job(
    driven: Driven, workplace: Workplace, proxy: Proxy, state: str
) -> None:
    """No run may buy a second one after that, and no person is told to cancel the only one."""
    workplace.write(1)

    def taken_over() -> None:
        driven.execute(f"UPDATE extraction.batch_jobs SET state = '{state}'")

    proxy.plan(CREATE, meanwhile(taken_over))
    driven.scan()
    (job_id,) = driven.submit().submitted
    assert driven.job(job_id).state is JobState.SUBMITTED
    assert len(driven.finished(job_id).published) == 1
    assert (driven.creates(job_id), driven.audited()["duplicate_job"]) == (1, 0)


def test_what_comes_while_another_run_makes_a_call_of_its_own_is_told(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(1)

    def taken_over() -> None:
        driven.execute("UPDATE extraction.batch_jobs SET submit_attempt = submit_attempt + 1")

    proxy.plan(CREATE, meanwhile(taken_over))
    driven.scan()
    report = driven.submit()
    assert any("exists twice" in cause for cause in report.causes), report
    assert driven.audited()["duplicate_job"] == 1


def test_an_upload_is_repeated_freely_and_the_payload_is_the_same(
    driven: Driven, connected: Pipeline, workplace: Workplace, proxy: Proxy
) -> None:
    job_id = waiting_job(driven, workplace, proxy, forward_then_drop, call=UPLOAD)
    before = driven.job(job_id)
    assert (before.state, before.submit_attempt) == (JobState.PREPARED, 0)
    driven.resolved(job_id)
    after = driven.job(job_id)
    assert after.payload_hash == before.payload_hash
    assert after.input_id is not None
    uploaded = Client(driven.server.base_url).call("GET", f"/files/{after.input_id}/content")
    assert uploaded.content == connected.store.get(after.payload_hash or "")
    assert (driven.creates(job_id), proxy.count(UPLOAD)) == (1, 2)


@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_job_that_can_never_be_searched_for_is_held_in_the_end(
    driven: Driven, workplace: Workplace, proxy: Proxy, status: int
) -> None:
    job_id = waiting_job(driven, workplace, proxy, forward_then_drop)
    proxy.plan(LIST, answer(status), times=None)

    def searched() -> JobState:
        driven.pause_ends()
        return driven.resolve(job_id).state

    assert {searched() for _ in range(FAILED_SEARCHES)} == {JobState.UNRESOLVED}
    driven.later(49)
    assert searched() is JobState.HELD
    assert searched() is JobState.HELD, "a person may have it searched for once more"
    assert give_up(driven.pipeline, job_id, ACTOR, "the service lists no batches") == 2
    proxy.forget_plans()
    (second,) = driven.submitted()
    assert len(driven.finished(second).published) == 2
    assert driven.creates(job_id) == 1
