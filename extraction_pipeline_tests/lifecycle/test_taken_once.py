"""A job is taken once: one that was taken is never sent again, whatever lists and readings say by
then, and a process that was stopped just before its create call makes it only while it may."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import pytest
import requests

from extraction_pipeline import crash_points
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.holding import GONE_PATIENCE
from extraction_pipeline.lifecycle.polling import poll
from extraction_pipeline.lifecycle.watching import jobs_to_look_at
from extraction_pipeline.providers.errors import CallFailed
from extraction_pipeline_tests.batch_server.process import ServerProcess
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.ledger.databases import LOCK_HOLDERS_END
from extraction_pipeline_tests.lifecycle.driving import ACTOR, Driven
from extraction_pipeline_tests.lifecycle.fault_cases import DIALECTS, Fault, fault

NOT_LISTED = fault("list_lags", seconds=80_000)
UNKNOWN = fault("answer", call="status", status=404)
WORKED_ON = fault("stuck")
NO_RESULTS = (
    fault("answer", call="results", status=404),
    fault("answer", call="file", status=404),
)


class Provider:
    """The batch server in one wire format."""

    def __init__(self, server: ServerProcess, name: str) -> None:
        self.server = server
        self.name = name
        self.before = self._made()

    def put(self, *faults: Fault) -> None:
        answer = requests.put(f"{self.server.root_url}/faults", json={"faults": faults}, timeout=5)
        assert answer.status_code == 200, answer.text

    def made(self) -> int:
        """How many jobs it made since the test began."""
        return self._made() - self.before

    def _made(self) -> int:
        dialects = self.server.statistics()["dialects"]
        assert isinstance(dialects, dict)
        return int(dialects.get(self.name, {}).get("jobs_created", 0))


@pytest.fixture(params=DIALECTS)
def provider(
    request: pytest.FixtureRequest, shared_server: ServerProcess, workplace: Workplace
) -> Iterator[Provider]:
    name = request.param
    workplace.declare(provider=name, model="rules-baseline")
    workplace.environment.setenv(f"EXTRACTION_{name.upper()}_API_KEY", "k-1")
    path = "/v1" if name == "openai" else ""
    workplace.environment.setenv(
        f"EXTRACTION_{name.upper()}_BASE_URL", shared_server.root_url + path
    )
    opened = Provider(shared_server, name)
    yield opened
    opened.put()


@pytest.fixture
def driven(
    workplace: Workplace, shared_server: ServerProcess, provider: Provider
) -> Iterator[Driven]:
    """Two notes, to be sent to that provider, by a process that waits long enough."""
    workplace.write(2)
    long = dict.fromkeys(("READ_TIMEOUT", "POLL_TIMEOUT", "CONNECT_TIMEOUT"), "30")
    pipeline = workplace.open(shared_server.base_url, POLL_MAX_SECONDS="0.05", **long)
    yield Driven(pipeline, shared_server)
    pipeline.engine.dispose()


def test_a_held_job_that_was_taken_is_asked_for_by_its_id_and_never_sent_again(
    driven: Driven, provider: Provider
) -> None:
    provider.put(WORKED_ON)
    (job_id,) = driven.submitted()
    taken = driven.job(job_id)
    provider.put(UNKNOWN, NOT_LISTED, WORKED_ON)
    for _ in range(GONE_PATIENCE):
        poll(driven.pipeline, driven.job(job_id), ACTOR)
    assert driven.job(job_id).state is JobState.HELD
    driven.later(1)  # past the time after which a job that no list shows counts as absent
    with driven.pipeline.engine.connect() as connection:
        (named,) = jobs_to_look_at(connection, driven.pipeline, driven.collection)
    assert named.why.startswith(f"held; batch {taken.job_id}; not found there since 20")
    held = driven.resolve(job_id)
    assert held.state is driven.job(job_id).state is JobState.HELD
    assert f"stays held: batch {taken.job_id} was taken by {provider.name}" in (held.cause or "")
    provider.put(NOT_LISTED, WORKED_ON)
    assert driven.resolve(job_id).state is JobState.SUBMITTED
    # One of an older ledger may have been left in the middle of a search.
    driven.execute("UPDATE extraction.batch_jobs SET state = 'unresolved'")
    provider.put(UNKNOWN, NOT_LISTED)
    assert driven.resolve(job_id).state is driven.job(job_id).state is JobState.HELD

    provider.put(NOT_LISTED, *NO_RESULTS)
    assert driven.resolve(job_id).state is JobState.SUBMITTED
    driven.ended(job_id)
    for _ in range(GONE_PATIENCE):
        with pytest.raises(CallFailed):
            driven.collect(job_id)
    assert driven.job(job_id).state is JobState.HELD
    provider.put(NOT_LISTED)
    assert driven.resolve(job_id).state is JobState.SUBMITTED
    assert len(driven.finished(job_id).published) == 2

    job = driven.job(job_id)
    assert (job.job_id, job.submitted_at) == (taken.job_id, taken.submitted_at)
    assert (provider.made(), driven.audited()["job_proven_absent"]) == (1, 0)


def stopped_before_its_create_call(
    monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]
) -> None:
    """Let the first process that is about to make a create call stand still, and `meanwhile`
    happen, as with SIGSTOP and SIGCONT."""
    monkeypatch.setattr(crash_points, "_arrivals", Counter())
    monkeypatch.setattr(os, "kill", lambda process, number: meanwhile())
    monkeypatch.setenv(crash_points.VARIABLE, crash_points.CrashPoint.CREATE_DUE)


def test_a_process_that_lost_its_lock_before_its_create_call_does_not_make_it(
    monkeypatch: pytest.MonkeyPatch, driven: Driven, provider: Provider
) -> None:
    def taken_over() -> None:
        driven.rows(LOCK_HOLDERS_END)
        driven.later(1)
        ((job_id,),) = driven.rows("SELECT id FROM extraction.batch_jobs")
        driven.resolve(job_id)
        driven.later(1)
        driven.resolved(job_id)
        driven.finished(job_id)

    stopped_before_its_create_call(monkeypatch, taken_over)
    driven.scan()
    report = driven.submit()
    (job_id,) = report.jobs
    assert (driven.job(job_id).state, provider.made()) == (JobState.PUBLISHED, 1)
    if provider.name != "gemini":  # there the upload is looked for first, and was withdrawn
        assert (report.submitted, report.waiting) == ([job_id], [])
    assert driven.audited()["duplicate_job"] == 0
    assert len(report.causes) == 1


def test_a_process_that_stood_still_before_its_create_call_begins_again(
    monkeypatch: pytest.MonkeyPatch, driven: Driven, provider: Provider
) -> None:
    """It has its lock, and would lose it in the middle of a call that nobody counts on."""
    stopped_before_its_create_call(monkeypatch, partial(driven.later, 1))
    driven.scan()
    (job_id,) = driven.submit().waiting
    assert (driven.job(job_id).state, provider.made()) == (JobState.PREPARED, 0)
    driven.later(1)
    driven.resolved(job_id)
    assert provider.made() == 1
