"""Polling: a failed reading is no end, a slow or broken job is nobody else's trouble."""

import threading
import time
from dataclasses import replace

import pytest

from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle import polling
from extraction_pipeline.lifecycle.holding import GONE_PATIENCE
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.polling import poll, poll_due
from extraction_pipeline.lifecycle.turns import Turns
from extraction_pipeline.providers.base import BatchProvider, ProviderLimits
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.names import ProviderName
from extraction_pipeline.providers.openai import OpenAIBatchProvider
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import Hold, answer, drop_before, saying
from extraction_pipeline_tests.faults.proxy import CREATE, POLL, Fault, Proxy, Route, rewritten
from extraction_pipeline_tests.lifecycle.driving import ACTOR, Driven
from extraction_pipeline_tests.lifecycle.limits import limited

ONE_A_JOB = ProviderLimits(1, 1_000_000, None)
PENDING = saying(status="in_progress")


def due_in(driven: Driven, job_id: int) -> float:
    """Seconds until the job is due, from its last change on."""
    ((seconds,),) = driven.rows(
        "SELECT extract(epoch FROM due_at - clock_timestamp()) FROM extraction.batch_jobs"
        " WHERE id = :job",
        job=job_id,
    )
    return float(seconds)


def test_every_third_poll_failing_ends_nothing(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Field report 49: one failed poll ended a wait of 24 hours."""
    workplace.write(1)
    (job_id,) = driven.submitted()
    proxy.plan(POLL, answer(502), every=3, times=None)
    proxy.plan(POLL, PENDING, times=8)
    readings = [poll(driven.pipeline, driven.job(job_id), ACTOR) for _ in range(12)]
    assert [reading.cause is not None for reading in readings] == [False, False, True] * 4
    assert [reading.ended for reading in readings] == [False] * 12
    assert len(driven.finished(job_id).published) == 1


@pytest.mark.parametrize(
    "fault",
    [
        answer(404),
        answer(401),
        answer(429),
        answer(500),
        drop_before,
        saying(status="a state of next year"),
        saying(id="batch_of_somebody_else", status="completed", output_file_id="file-1"),
        answer(200, {"no": "batch"}),
    ],
    ids=[
        "404 right after create",
        "401",
        "429",
        "500",
        "dropped",
        "unknown state",
        "another batch's end",
        "no batch",
    ],
)
def test_no_answer_of_this_kind_is_an_end(
    driven: Driven, workplace: Workplace, proxy: Proxy, fault: Fault
) -> None:
    workplace.write(1)
    (job_id,) = driven.submitted()
    proxy.plan(POLL, fault, times=3)
    for _ in range(3):
        assert not poll(driven.pipeline, driven.job(job_id), ACTOR).ended
        assert driven.job(job_id).state is JobState.SUBMITTED
    assert driven.items() == {("claimed", None, None): 1}
    assert len(driven.finished(job_id).published) == 1


def test_the_interval_grows_and_what_the_provider_asks_for_is_its_lower_bound(
    workplace: Workplace, driven: Driven, proxy: Proxy
) -> None:
    """Field report 50: polling many open batches hit the rate limit."""
    workplace.write(1)
    (job_id,) = driven.submitted()
    slow = Driven(workplace.open(POLL_SECONDS="10", POLL_MAX_SECONDS="100"), driven.server)
    proxy.plan(POLL, PENDING, times=8)
    waits = []
    for _ in range(8):
        poll(slow.pipeline, slow.job(job_id), ACTOR)
        waits.append(due_in(slow, job_id))
    assert waits[:6] == sorted(waits[:6])
    assert 8.5 < waits[0] < 11.1
    assert 89 < waits[-1] < 111
    proxy.plan(POLL, answer(429, retry_after="3000"))
    poll(slow.pipeline, slow.job(job_id), ACTOR)
    assert due_in(slow, job_id) > 2990
    proxy.plan(POLL, answer(429, retry_after="1"))
    poll(slow.pipeline, slow.job(job_id), ACTOR)
    assert 89 < due_in(slow, job_id) < 111
    slow.pipeline.engine.dispose()


def test_failed_polls_in_a_row_wait_longer_and_a_good_one_ends_the_count(
    workplace: Workplace, driven: Driven, proxy: Proxy
) -> None:
    workplace.write(1)
    (job_id,) = driven.submitted()
    proxy.plan(POLL, answer(500), times=3)
    proxy.plan(POLL, PENDING)
    troubles = []
    for _ in range(4):
        poll(driven.pipeline, driven.job(job_id), ACTOR)
        troubles.append(driven.job(job_id).trouble_count)
    assert troubles == [1, 2, 3, 0]


def test_a_job_that_cannot_be_polled_does_not_starve_the_rest(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Field report 55: one unroutable batch starved all others."""
    workplace.write(3)
    driven = limited(driven, ONE_A_JOB)
    first, *rest = driven.submitted(3)
    hanging = Route("GET", f"/v1/batches/{driven.job(first).job_id}")
    proxy.plan(hanging, Hold(forward=False), times=None)
    start = time.monotonic()
    for _ in range(20):
        poll_due(driven.pipeline, ACTOR, 10, seconds=0.5)
        if all(driven.job(job_id).state is JobState.ENDED for job_id in rest):
            break
    assert all(driven.job(job_id).state is JobState.ENDED for job_id in rest)
    assert driven.job(first).state is JobState.SUBMITTED
    assert time.monotonic() - start < 8


@pytest.fixture
def one_hangs(
    driven: Driven, workplace: Workplace, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> tuple[Pipeline, Hold]:
    """A pipeline that has three jobs at a provider that never answers, and three due after them at
    one whose jobs have ended; nobody was read yet."""
    workplace.write(6)
    narrow = limited(driven, ONE_A_JOB)
    narrow.submitted(6)
    driven.execute("UPDATE extraction.batch_jobs SET due_at = now() - interval '2 s'")
    driven.execute(
        "UPDATE extraction.batch_jobs SET provider = 'openai', due_at = now() - interval '1 s'"
        " WHERE id IN (SELECT id FROM extraction.batch_jobs ORDER BY id DESC LIMIT 3)"
    )
    hold = Hold(forward=False)
    proxy.plan(POLL, hold, times=None)
    direct = ProviderEndpoint(driven.server.base_url, None)

    def provider(name: str) -> BatchProvider:
        if name == ProviderName.OPENAI:
            return OpenAIBatchProvider(name, direct, ONE_A_JOB)
        return narrow.pipeline.provider(name)

    monkeypatch.setattr(polling, "_turns", Turns())
    return replace(driven.pipeline, provider=provider), hold


STATES = "SELECT provider, state::text, count(*) FROM extraction.batch_jobs GROUP BY 1, 2"


@pytest.mark.parametrize("begun_anew", [False, True], ids=["one process", "a start between"])
def test_a_provider_that_never_answers_costs_the_others_one_tick(
    driven: Driven,
    one_hangs: tuple[Pipeline, Hold],
    monkeypatch: pytest.MonkeyPatch,
    begun_anew: bool,
) -> None:
    """A call that is waited for longer than all of a tick took each tick for itself, for as many
    ticks as it had jobs."""
    pipeline, _ = one_hangs
    assert [one.ended for one in poll_due(pipeline, ACTOR, 10, seconds=0.5)] == [False]
    if begun_anew:
        monkeypatch.setattr(polling, "_turns", Turns())
    second = poll_due(pipeline, ACTOR, 10, seconds=0.5)
    assert [one.ended for one in second] == [True, True, True, False]
    assert set(map(tuple, driven.rows(STATES))) == {
        ("local", "submitted", 3),
        ("openai", "ended", 3),
    }


def test_a_reading_that_never_ends_holds_one_tick_and_none_after_it(
    one_hangs: tuple[Pipeline, Hold],
) -> None:
    """A shared folder that is not there any more has no time-out."""
    pipeline, hold = one_hangs
    first = threading.Thread(target=lambda: poll_due(pipeline, ACTOR, 10, seconds=0.5))
    first.start()
    assert hold.reached.wait(20)
    second = poll_due(pipeline, ACTOR, 10, seconds=5)
    first.join(20)
    assert [one.ended for one in second] == [True, True, True]


@pytest.mark.parametrize(
    "provider", ["openai", "of_a_later_version"], ids=["without its key", "unknown"]
)
def test_a_job_of_a_provider_that_cannot_be_reached_from_here_does_not_stop_the_tick(
    driven: Driven, workplace: Workplace, provider: str
) -> None:
    """Field report 55 again: the settings of this process lack what one job needs."""
    workplace.environment.delenv("OPENAI_API_KEY", raising=False)
    workplace.write(2)
    lost, fine = limited(driven, ONE_A_JOB).submitted(2)
    driven.execute(
        "UPDATE extraction.batch_jobs SET provider = :provider WHERE id = :job",
        provider=provider,
        job=lost,
    )
    readings = []
    for _ in range(40):
        readings += poll_due(driven.pipeline, ACTOR, 10, seconds=5)
        if driven.job(fine).state is JobState.ENDED:
            break
        time.sleep(0.02)
    assert driven.job(fine).state is JobState.ENDED
    assert driven.job(lost).state is JobState.SUBMITTED
    assert any(provider in (reading.cause or "") for reading in readings)


def test_no_reading_begins_after_the_time_of_a_tick_and_no_more_than_asked_for(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Field report 63: bounded work a tick."""
    workplace.write(4)
    limited(driven, ONE_A_JOB).submitted(4)
    assert poll_due(driven.pipeline, ACTOR, 10, seconds=0) == []
    proxy.plan(POLL, PENDING, times=None)
    assert len(poll_due(driven.pipeline, ACTOR, 3, seconds=5)) == 3
    assert proxy.count(POLL) == 3


def test_what_a_provider_says_is_kept_only_where_it_is_a_code(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """A state or an error code can be any text, even one that the database cannot hold."""
    workplace.write(1)
    (job_id,) = driven.submitted()
    said = "Mr. Fictional Name\0cannot be processed"
    proxy.plan(POLL, saying(status=said))
    assert not poll(driven.pipeline, driven.job(job_id), ACTOR).ended
    errors = {"data": [{"code": said}]}
    failed = saying(status="failed", errors=errors, output_file_id=None, request_counts=None)
    proxy.plan(POLL, failed, times=None)
    driven.ended(job_id)
    job, _ = driven.collect(job_id)
    assert job.state is JobState.FAILED
    for table in ("batch_jobs", "batch_items", "audit_events"):
        assert "Fictional" not in str(driven.rows(f"SELECT t::text FROM extraction.{table} t"))


def test_two_ticks_that_read_the_same_end_note_it_once(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Field report 61: two ticks at once."""
    workplace.write(1)
    (job_id,) = driven.submitted()
    stale = driven.job(job_id)
    driven.ended(job_id)
    assert poll(driven.pipeline, stale, ACTOR).ended
    assert driven.audited()["job_ended"] == 1


def test_a_poll_tells_how_far_the_provider_is(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(1)
    (job_id,) = driven.submitted()

    def half_done(body: bytes) -> bytes:
        return body.replace(b'"status":"completed"', b'"status":"in_progress"').replace(
            b'"status": "completed"', b'"status": "in_progress"'
        )

    proxy.plan(POLL, rewritten(half_done), times=None)
    for _ in range(50):
        poll(driven.pipeline, driven.job(job_id), ACTOR)
        found = driven.rows(
            "SELECT provider_state, provider_total, provider_completed FROM extraction.batch_jobs"
        )
        if tuple(found[0]) == ("in_progress", 1, 1):
            break  # not the server's own `finalizing`, which may be read in between
    assert tuple(found[0]) == ("in_progress", 1, 1)


def test_one_odd_answer_stops_no_other_job(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(3)
    jobs = limited(driven, ONE_A_JOB).submitted(3)
    driven.execute("UPDATE extraction.batch_jobs SET job_id = '..' WHERE id = :job", job=jobs[0])
    driven.execute(
        "UPDATE extraction.batch_jobs SET due_at = now() - interval '1 hour' WHERE id = :job",
        job=jobs[0],
    )
    readings = poll_due(driven.pipeline, ACTOR, 10, seconds=5)
    assert [reading.cause is None for reading in readings] == [False, True, True]
    cause = readings[0].cause or ""
    assert cause.startswith(f"Job {driven.job(jobs[0]).job_key} could not be polled: ")
    assert cause.endswith("what local says of it is unusable: ValueError.")
    assert driven.job(jobs[0]).trouble_count == 1
    assert due_in(driven, jobs[0]) > -5


def test_counts_that_nothing_can_hold_are_not_kept(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(1)
    (job_id,) = driven.submitted()
    batch = {
        "id": driven.job(job_id).job_id,
        "status": "in_progress",
        "request_counts": {"total": 2**31, "completed": 2**62, "failed": 1},
    }
    proxy.plan(POLL, answer(200, batch))
    assert poll(driven.pipeline, driven.job(job_id), ACTOR).cause is None
    kept = driven.rows(
        "SELECT provider_total, provider_completed, provider_failed FROM extraction.batch_jobs"
    )
    assert tuple(kept[0]) == (None, None, 1)


@pytest.mark.parametrize("status", [404, 410])
def test_a_batch_that_the_provider_does_not_know_any_more_is_held_after_a_while(
    driven: Driven, workplace: Workplace, proxy: Proxy, status: int
) -> None:
    workplace.write(1)
    (job_id,) = driven.submitted()
    proxy.plan(POLL, answer(status), times=GONE_PATIENCE - 1)
    proxy.plan(POLL, answer(503))  # says nothing of the batch, so the count begins again
    proxy.plan(POLL, answer(status), times=None)
    for _ in range(2 * GONE_PATIENCE - 1):
        reading = poll(driven.pipeline, driven.job(job_id), ACTOR)
        assert (driven.job(job_id).state, reading.needs_person) == (JobState.SUBMITTED, False)
    reading = poll(driven.pipeline, driven.job(job_id), ACTOR)
    assert driven.job(job_id).state is JobState.HELD
    assert reading.needs_person
    assert "is held" in (reading.cause or "")
    assert driven.audited()["job_held"] == 1
    proxy.forget_plans()
    assert driven.resolve(job_id).state is JobState.SUBMITTED  # a person had it searched for
    assert len(driven.finished(job_id).published) == 1
    assert proxy.count(CREATE) == 1


def test_a_batch_that_was_sent_elsewhere_is_not_held(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(1)
    (job_id,) = driven.submitted()
    driven.execute("UPDATE extraction.batch_jobs SET base_url = 'https://elsewhere.example/v1'")
    proxy.plan(POLL, answer(404), times=None)
    for _ in range(GONE_PATIENCE + 2):
        reading = poll(driven.pipeline, driven.job(job_id), ACTOR)
    assert driven.job(job_id).state is JobState.SUBMITTED
    assert reading.needs_person
    assert "Set the base URL back." in (reading.cause or "")


@pytest.mark.parametrize(("status", "needs_person"), [(401, True), (403, True), (503, False)])
def test_a_reading_says_whether_somebody_must_act(
    driven: Driven, workplace: Workplace, proxy: Proxy, status: int, needs_person: bool
) -> None:
    workplace.write(1)
    (job_id,) = driven.submitted()
    proxy.plan(POLL, answer(status))
    assert poll(driven.pipeline, driven.job(job_id), ACTOR).needs_person is needs_person
