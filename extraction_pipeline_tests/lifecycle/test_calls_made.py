"""What each call was answered is kept with the audit event that it led to."""

import re
from collections.abc import Sequence
from typing import Any

from extraction_pipeline.ledger.states import JobState
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import forward_then, forward_then_drop
from extraction_pipeline_tests.faults.proxy import CREATE, Proxy
from extraction_pipeline_tests.lifecycle.driving import Driven
from extraction_pipeline_tests.lifecycle.lost_calls import waiting_job


def told(driven: Driven, event: str) -> list[tuple[str, int | None]]:
    """The calls of the last event of this kind, with ids left out; request ids are checked."""
    calls: Sequence[dict[str, Any]] = driven.rows(
        "SELECT details->'calls' FROM extraction.audit_events WHERE event = :event"
        " ORDER BY id DESC LIMIT 1",
        event=event,
    )[0][0]
    for call in calls:
        assert call["http_status"] != 200 or call["request_id"]
    ids = r"(?<=/)(file|batch)[-_][^/]+"
    return [(re.sub(ids, "ID", call["call"]), call["http_status"]) for call in calls]


def test_every_call_of_a_jobs_life_is_told_with_the_event_that_it_led_to(
    driven: Driven, workplace: Workplace
) -> None:
    workplace.write(2)
    (job_id,) = driven.submitted()
    assert told(driven, "job_submitted") == [("POST /files", 200), ("POST /batches", 200)]
    driven.finished(job_id)
    assert told(driven, "job_ended") == [("GET /batches/ID", 200)]
    assert told(driven, "job_collected") == [
        ("GET /batches/ID", 200),
        ("GET /files/ID", 200),
        ("GET /files/ID/content", 200),
    ]


def test_a_call_without_an_answer_and_the_search_after_it_are_told(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id = waiting_job(driven, workplace, proxy, forward_then_drop, documents=1)
    assert told(driven, "job_unresolved") == [("POST /files", 200), ("POST /batches", None)]
    assert driven.resolve(job_id).state is JobState.SUBMITTED
    assert told(driven, "job_adopted") == [("GET /files", 200), ("GET /batches", 200)]
    workplace.write(2)
    proxy.plan(CREATE, forward_then(502))
    driven.scan()
    driven.submit()
    assert told(driven, "job_unresolved")[-1] == ("POST /batches", 502)
