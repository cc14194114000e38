"""A job that was given up and ends after all: what was paid for lands once, whoever was faster."""

import pytest
import requests

from extraction_pipeline.errors import LedgerError
from extraction_pipeline.ledger.deliveries import Delivery, keep
from extraction_pipeline.ledger.states import AuditEvent, DeliveryOutcome, JobState
from extraction_pipeline.lifecycle.decisions import adopt, give_up
from extraction_pipeline.lifecycle.late_results import NOTHING_CAME
from extraction_pipeline.lifecycle.polling import poll, poll_due
from extraction_pipeline.lifecycle.releasing import release
from extraction_pipeline.providers.errors import ProviderError
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import answer, forward_then_drop, saying
from extraction_pipeline_tests.faults.proxy import CONTENT, Proxy, Route
from extraction_pipeline_tests.faults.result_rows import both, said
from extraction_pipeline_tests.lifecycle.driving import ACTOR, Driven
from extraction_pipeline_tests.lifecycle.lost_calls import waiting_job

REASON = "never came"


def given_up(driven: Driven, workplace: Workplace, proxy: Proxy, count: int = 2) -> int:
    """A job of as many documents that its provider has, did not know for a while, and was given up
    for it."""
    workplace.write(count)
    (job_id,) = driven.submitted()
    driven.execute("UPDATE extraction.batch_jobs SET state = 'held' WHERE id = :job", job=job_id)
    assert give_up(driven.pipeline, job_id, ACTOR, REASON) == count
    assert driven.job(job_id).state is JobState.FAILED
    return job_id


def looked_at(driven: Driven, job_id: int) -> None:
    """Look at the given-up job, though its next look is hours away, until it has ended."""
    key = driven.job(job_id).job_key
    due = poll_due(driven.pipeline, ACTOR, 10, seconds=5)
    assert key not in [one.job_key for one in due]
    for _ in range(100):
        driven.execute("UPDATE extraction.batch_jobs SET due_at = now() WHERE id = :j", j=job_id)
        due = poll_due(driven.pipeline, ACTOR, 10, seconds=5)
        if any(one.ended for one in due if one.job_key == key):
            break
    assert driven.job(job_id).state is JobState.ENDED
    assert driven.audited()[AuditEvent.LATE_RESULTS] == 1


def records(driven: Driven) -> list[tuple[str, int]]:
    """The job of each record."""
    rows = driven.rows(
        "SELECT j.job_key, count(*) FROM extraction.extractions e"
        " JOIN extraction.raw_responses r ON r.id = e.raw_response_id"
        " JOIN extraction.batch_items i ON i.id = r.item_id"
        " JOIN extraction.batch_jobs j ON j.id = i.batch_job_id GROUP BY 1"
    )
    return [(row[0], row[1]) for row in rows]


def counted(driven: Driven) -> tuple[int, int, int]:
    """Raw responses, cost rows and records."""
    (row,) = driven.rows(
        "SELECT (SELECT count(*) FROM extraction.raw_responses),"
        " (SELECT count(*) FROM extraction.request_costs),"
        " (SELECT count(*) FROM extraction.extractions)"
    )
    return (row[0], row[1], row[2])


def test_late_answers_are_published_and_open_requests_are_superseded(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id = given_up(driven, workplace, proxy)
    (again,) = driven.submit().submitted
    looked_at(driven, job_id)
    late = driven.finished(job_id)
    assert (len(late.published), late.superseded) == (2, 0)
    assert driven.items() == {("published", None, None): 2, ("superseded", None, None): 2}
    assert driven.summary().published == 2
    loser = driven.finished(again)  # its answers are kept, with their cost, and not published
    assert (loser.published, driven.job(again).state) == ([], JobState.PUBLISHED)
    assert driven.items() == {("published", None, None): 2, ("superseded", None, None): 2}
    assert records(driven) == [(driven.job(job_id).job_key, 2)]
    assert counted(driven) == (4, 4, 2)
    assert proxy.count(CONTENT) == 2
    audited = driven.rows(
        "SELECT batch_job_id, details->'published', details->'superseded'"
        " FROM extraction.audit_events WHERE event = 'job_published' ORDER BY id"
    )
    assert [tuple(row) for row in audited] == [(job_id, 2, 0), (again, 0, 2)]
    assert driven.submit().jobs == []
    driven.execute("UPDATE extraction.batch_jobs SET due_at = now()")
    assert poll_due(driven.pipeline, ACTOR, 10, seconds=5) == []


@pytest.mark.parametrize("released", [False, True])
def test_late_answers_of_documents_with_a_record_are_kept_and_not_published(
    driven: Driven, workplace: Workplace, proxy: Proxy, released: bool
) -> None:
    job_id = given_up(driven, workplace, proxy)
    if released:
        hashes = [row[0] for row in driven.rows("SELECT document_hash FROM extraction.documents")]
        assert release(driven.pipeline, "notes", "v1", hashes, ACTOR, REASON).count == 2
    (again,) = driven.submit().submitted
    driven.finished(again)
    bodies = driven.rows("SELECT id, body_hash, published_at FROM extraction.extractions")
    looked_at(driven, job_id)
    late = driven.finished(job_id)
    assert (late.published, late.superseded, late.failed) == ([], 2, 0)
    assert driven.rows("SELECT id, body_hash, published_at FROM extraction.extractions") == bodies
    assert records(driven) == [(driven.job(again).job_key, 2)]
    assert counted(driven) == (4, 4, 2)
    assert {key[0] for key in driven.items()} == {"published", "superseded"}


def test_answers_that_are_landed_and_not_published_yet_lose_to_late_ones(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id = given_up(driven, workplace, proxy)
    (again,) = driven.submit().submitted
    driven.ended(again)
    driven.collect(again)
    looked_at(driven, job_id)
    assert len(driven.finished(job_id).published) == 2
    assert driven.publish(again).published == []
    assert records(driven) == [(driven.job(job_id).job_key, 2)]
    assert counted(driven) == (4, 4, 2)


def test_late_answers_that_are_not_valid_leave_the_new_request_alone(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id = given_up(driven, workplace, proxy)
    (again,) = driven.submit().submitted
    proxy.plan_results(both(said(0, "{}"), said(1, "{}")), times=1)
    looked_at(driven, job_id)
    late = driven.finished(job_id)
    assert (late.published, late.failed) == ([], 2)
    assert driven.items()[("claimed", None, None)] == 2
    assert len(driven.finished(again).published) == 2
    assert records(driven) == [(driven.job(again).job_key, 2)]


def test_a_job_that_was_given_up_without_a_batch_takes_one_that_is_found_later(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id = waiting_job(driven, workplace, proxy, forward_then_drop)
    driven.execute("UPDATE extraction.batch_jobs SET state = 'held'")
    assert give_up(driven.pipeline, job_id, ACTOR, REASON) == 2
    (again,) = driven.submit().submitted
    key = driven.job(job_id).job_key
    listed = requests.get(f"{driven.server.base_url}/batches?limit=100", timeout=10).json()["data"]
    (batch,) = (one["id"] for one in listed if one["metadata"]["extraction_job_key"] == key)
    adopt(driven.pipeline, job_id, batch, ACTOR, "found it")
    assert driven.job(job_id).state is JobState.SUBMITTED
    assert len(driven.finished(job_id).published) == 2
    assert driven.finished(again).published == []
    assert records(driven) == [(key, 2)]


def test_a_job_that_ended_without_anything_is_not_looked_at_again(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id = given_up(driven, workplace, proxy)
    route = Route("GET", f"/v1/batches/{driven.job(job_id).job_id}")
    proxy.plan(route, answer(404), times=2)
    proxy.plan(route, saying(status="in_progress"))
    proxy.plan(route, saying(status="cancelled", output_file_id=None, request_counts=None))
    for _ in range(4):
        assert not poll(driven.pipeline, driven.job(job_id), ACTOR).ended
    job = driven.job(job_id)
    assert (job.state, job.failure_code) == (JobState.FAILED, NOTHING_CAME)
    driven.execute("UPDATE extraction.batch_jobs SET due_at = now()")
    assert poll_due(driven.pipeline, ACTOR, 10, seconds=5) == []
    assert proxy.count(route) == 4


def test_the_announcement_of_its_end_brings_the_next_look_forward(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id = given_up(driven, workplace, proxy, 1)
    for number in (1, 2):
        delivery = Delivery("local", f"d-{number}", "batch.completed", driven.job(job_id).job_id)
        with driven.pipeline.engine.begin() as connection:
            outcome = keep(connection, delivery).outcome
        if number == 1:
            assert outcome is DeliveryOutcome.MADE_DUE
            assert len(poll_due(driven.pipeline, ACTOR, 10, seconds=5)) == 1
            if driven.job(job_id).state is not JobState.ENDED:
                looked_at(driven, job_id)
            assert len(driven.finished(job_id).published) == 1
    assert outcome is DeliveryOutcome.SETTLED
    assert poll_due(driven.pipeline, ACTOR, 10, seconds=5) == []


@pytest.mark.parametrize("state", [JobState.SUBMITTED, JobState.ENDED])
def test_a_job_that_can_never_be_read_is_given_up_by_a_person_and_one_on_its_way_is_not(
    driven: Driven, workplace: Workplace, proxy: Proxy, state: JobState
) -> None:
    workplace.write(2)
    (job_id,) = driven.submitted()
    if state is JobState.ENDED:
        driven.ended(job_id)
    with pytest.raises(LedgerError, match="Only a job can be given up that"):
        give_up(driven.pipeline, job_id, ACTOR, REASON)
    driven.execute(
        "UPDATE extraction.batch_jobs SET failing_since = now() - interval '2 hours'"
        " WHERE id = :job",
        job=job_id,
    )
    assert give_up(driven.pipeline, job_id, ACTOR, REASON) == 2
    (again,) = driven.submit().submitted
    assert len(driven.finished(again).published) == 2


@pytest.mark.parametrize("status", [403, 404])
def test_a_job_that_was_given_up_and_whose_results_cannot_be_had_is_over_as_before(
    driven: Driven, workplace: Workplace, proxy: Proxy, status: int
) -> None:
    job_id = given_up(driven, workplace, proxy)
    (over,) = driven.rows(
        "SELECT state::text, failure_code, collected_at FROM extraction.batch_jobs"
    )
    looked_at(driven, job_id)
    proxy.plan(CONTENT, answer(status))
    with pytest.raises(ProviderError):
        driven.collect(job_id)
    assert driven.rows(
        "SELECT state::text, failure_code, collected_at FROM extraction.batch_jobs"
        " WHERE due_at > now() + interval '5 hours'"
    ) == [over]
    driven.pause_ends()
    driven.execute("UPDATE extraction.batch_jobs SET due_at = now()")
    assert [one.ended for one in poll_due(driven.pipeline, ACTOR, 10, seconds=5)] == [True]
    assert len(driven.finished(job_id).published) == 2
