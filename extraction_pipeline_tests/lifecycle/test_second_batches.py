"""Two batches of one job at the provider: the second is named until a person has settled it."""

import pytest
import requests

from extraction_pipeline.errors import LedgerError
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.decisions import GONE, SETTLED_BY_HAND, adopt, settle
from extraction_pipeline.lifecycle.holding import GONE_PATIENCE
from extraction_pipeline.lifecycle.polling import poll
from extraction_pipeline.lifecycle.watching import jobs_to_look_at
from extraction_pipeline.providers.errors import CallRefused
from extraction_pipeline_tests.batch_server.client import Client
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import answer, forward_then_drop, saying
from extraction_pipeline_tests.faults.proxy import CANCEL, POLL, Fault, Proxy, Route
from extraction_pipeline_tests.lifecycle.driving import ACTOR, Driven
from extraction_pipeline_tests.lifecycle.lost_calls import waiting_job

REASON = "seen to it"


def copied(driven: Driven, job_id: int) -> str:
    """A second batch of the job, as a create call makes it that comes through after all; its id."""
    job = driven.job(job_id)
    assert job.input_id is not None
    made = Client(driven.server.base_url).create(
        job.input_id, metadata={"extraction_job_key": job.job_key}
    )
    return str(made.json()["id"])


def named(driven: Driven) -> list[str]:
    """What is said of the jobs that need a person's eye."""
    with driven.pipeline.engine.connect() as connection:
        return [one.why for one in jobs_to_look_at(connection, driven.pipeline, driven.collection)]


def audited(driven: Driven, event: str) -> list[tuple[str, str | None]]:
    """Batch and reason of the audit events of this kind."""
    rows = driven.rows(
        "SELECT details->>'job_id', details->>'reason' FROM extraction.audit_events"
        " WHERE event = :event ORDER BY id",
        event=event,
    )
    return [(row[0], row[1]) for row in rows]


def held_twice(driven: Driven, workplace: Workplace, proxy: Proxy) -> tuple[int, list[str]]:
    """A job whose create call was made twice, and the ids of its batches."""
    job_id = waiting_job(driven, workplace, proxy, forward_then_drop, documents=1)
    copied(driven, job_id)
    sent = driven.resolve(job_id)
    assert sent.state is JobState.SUBMITTED
    ours = driven.job(job_id).job_id or ""
    ((second, _),) = audited(driven, "duplicate_job")
    assert ours != second
    assert ours in (sent.cause or "")
    assert f"settle_second_batch cancels {second} there" in (sent.cause or "")
    return job_id, [ours, second]


def test_a_second_batch_is_named_until_a_person_has_settled_it(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id, (ours, second) = held_twice(driven, workplace, proxy)
    driven.finished(job_id)
    driven.execute("UPDATE extraction.batch_jobs SET created_at = '2026-01-01', trouble_count = 99")
    assert named(driven) == [f"exists_twice; second batch {second}"]
    with pytest.raises(LedgerError, match="is no second batch") as refused:
        settle(driven.pipeline, job_id, ours, ACTOR, REASON)
    assert second in (refused.value.remedy or "")

    batch = Route("GET", f"/v1/batches/{second}")
    proxy.plan(batch, saying(status="in_progress"), times=2)
    proxy.plan(CANCEL, answer(401))
    with pytest.raises(CallRefused):
        settle(driven.pipeline, job_id, second, ACTOR, REASON)
    assert len(named(driven)) == 1, "nothing is settled by a call that failed"
    there = requests.get(f"{driven.server.base_url}/batches/{second}", timeout=10).json()
    proxy.plan(CANCEL, answer(200, there | {"status": "cancelling"}))
    assert settle(driven.pipeline, job_id, second, ACTOR, REASON) == "cancelling"
    assert (named(driven), proxy.count(CANCEL)) == ([], 2)
    assert audited(driven, "duplicate_settled") == [(second, REASON)]
    with pytest.raises(LedgerError, match="or it is settled"):
        settle(driven.pipeline, job_id, second, ACTOR, REASON)


@pytest.mark.parametrize(
    ("there", "cancel_there", "state", "calls"),
    [
        (answer(404), True, GONE, 1),
        (saying(status="completed"), True, "completed", 1),
        (answer(500), False, SETTLED_BY_HAND, 0),
    ],
    ids=["gone", "at its end", "by hand"],
)
def test_what_is_not_worked_on_any_more_is_settled_without_a_cancel(
    driven: Driven,
    workplace: Workplace,
    proxy: Proxy,
    there: Fault,
    cancel_there: bool,
    state: str,
    calls: int,
) -> None:
    job_id, (_, second) = held_twice(driven, workplace, proxy)
    batch = Route("GET", f"/v1/batches/{second}")
    proxy.plan(batch, there)
    told = settle(driven.pipeline, job_id, second, ACTOR, REASON, cancel_there=cancel_there)
    assert (told, proxy.count(batch), proxy.count(CANCEL)) == (state, calls, 0)
    assert named(driven) == []


def test_a_held_job_says_since_when_it_is_not_found_and_keeps_its_batch_and_its_time(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(1)
    (job_id,) = driven.submitted()
    driven.execute("UPDATE extraction.batch_jobs SET submitted_at = '2026-11-01T00:00:00Z'")
    taken = driven.job(job_id)
    proxy.plan(POLL, answer(404), times=GONE_PATIENCE)
    for _ in range(GONE_PATIENCE):
        poll(driven.pipeline, driven.job(job_id), ACTOR)
        driven.execute(
            "UPDATE extraction.batch_jobs SET not_found_since = '2026-11-02T03:04:00Z'"
            " WHERE not_found_since > now() - interval '1 hour'"
        )
    proxy.plan(POLL, answer(500))
    assert driven.resolve(job_id).state is JobState.HELD, "which says nothing of the batch"
    assert named(driven) == [
        f"held; batch {taken.job_id}; not found there since 2026-11-02 03:04 UTC"
    ]
    adopt(driven.pipeline, job_id, taken.job_id or "", ACTOR, REASON)
    again = driven.job(job_id)
    assert (again.job_id, again.submitted_at) == (taken.job_id, taken.submitted_at)
    assert (named(driven), audited(driven, "duplicate_job")) == ([], [])

    driven.execute("UPDATE extraction.batch_jobs SET state = 'held'")
    second = copied(driven, job_id)
    adopt(driven.pipeline, job_id, second, ACTOR, REASON)
    other = driven.job(job_id)
    assert other.job_id == second
    assert taken.submitted_at is not None
    assert other.submitted_at is not None
    assert other.submitted_at > taken.submitted_at
    assert audited(driven, "duplicate_job") == [(str(taken.job_id), None)]
    assert named(driven) == [f"exists_twice; second batch {taken.job_id}"]
    driven.execute("UPDATE extraction.batch_jobs SET state = 'held'")
    adopt(driven.pipeline, job_id, taken.job_id or "", ACTOR, REASON)
    assert named(driven) == [f"exists_twice; second batch {second}"]


def test_a_batch_that_another_job_has_is_no_second_one(
    driven: Driven, workplace: Workplace
) -> None:
    """Two held jobs, and a person who gives each the batch of the other."""
    workplace.write(1)
    (first,) = driven.submitted()
    workplace.write(1, start=1)
    (second,) = driven.submitted()
    batches = [driven.job(job_id).job_id or "" for job_id in (first, second)]
    driven.execute(
        "UPDATE extraction.batch_jobs SET state = 'held', job_id = NULL WHERE id = :j", j=second
    )
    driven.execute("UPDATE extraction.batch_jobs SET state = 'held' WHERE id = :j", j=first)
    adopt(driven.pipeline, first, batches[1], ACTOR, REASON)
    assert named(driven)[0] == f"exists_twice; second batch {batches[0]}"
    adopt(driven.pipeline, second, batches[0], ACTOR, REASON)
    assert named(driven) == []
    with pytest.raises(LedgerError, match="is no second batch"):
        settle(driven.pipeline, first, batches[0], ACTOR, REASON)


def test_results_of_two_batches_are_not_mixed(driven: Driven, workplace: Workplace) -> None:
    workplace.write(1)
    (job_id,) = driven.submitted()
    driven.ended(job_id)
    driven.collect(job_id)
    second = copied(driven, job_id)
    driven.execute("UPDATE extraction.batch_jobs SET state = 'held'")
    with pytest.raises(LedgerError, match="would be mixed"):
        adopt(driven.pipeline, job_id, second, ACTOR, REASON)
    adopt(driven.pipeline, job_id, driven.job(job_id).job_id or "", ACTOR, REASON)
