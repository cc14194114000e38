"""The whole life of a job, in every wire format that the batch server speaks, on a real one.

A service without an API speaks none: `test_outside` takes a job through the same life.

A further provider is here by its name in the registry. What differs between providers is asked of
the interface (`files`, the verdict of a search), never of a name.
"""

import json
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from extraction_pipeline.providers.base import (
    AnswerOutcome,
    BatchProvider,
    FailureKind,
    JobPhase,
    SearchVerdict,
    Submission,
)
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.errors import CallFailed, CallRefused, OutcomeUnknown
from extraction_pipeline.providers.infrai import build_infrai
from extraction_pipeline.providers.registry import BUILDERS, ProviderName
from extraction_pipeline_tests.batch_server.process import (
    ServerProcess,
    running_server,
)
from extraction_pipeline_tests.providers.scripted_server import (
    ScriptedServer,
    forwarded,
    scripted_server,
)
from extraction_pipeline_tests.providers.sent_job import (
    KEY,
    MODEL,
    Sent,
    ended,
    provider_at,
    request_of,
    results_of,
)

EVERY_PROVIDER = pytest.mark.parametrize("name", BUILDERS)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    state = tmp_path_factory.mktemp("conformance") / "state"
    with running_server(
        state, api_key_variable="TEST_BATCH_KEY", environment={"TEST_BATCH_KEY": KEY}
    ) as running:
        yield running


@pytest.fixture(scope="module")
def slow_server(tmp_path_factory):
    """A server whose jobs take long."""
    with running_server(tmp_path_factory.mktemp("slow") / "state", delay=60) as running:
        yield running


@pytest.fixture(params=BUILDERS)
def provider(request, server) -> BatchProvider:
    return provider_at(request.param, server.root_url)


@pytest.fixture
def job_key() -> str:
    """A key of this test's own, in all the characters that keys have."""
    return f"notes-2.v1_b.{uuid.uuid4().hex}"


@pytest.fixture
def sent(tmp_path, provider, job_key) -> Sent:
    return Sent(tmp_path, provider, job_key)


def test_a_job_from_submission_to_results(sent, provider):
    sent.write_notes(40)
    receipt = sent.upload()
    assert receipt is None or receipt.call.http_status == 200
    submitted = provider.submit(sent.submission(receipt))
    assert submitted.call.http_status == 200
    status = ended(provider, submitted.job_id)
    assert (status.phase, status.job_id) == (JobPhase.ENDED, submitted.job_id)
    assert status.counts.completed == 40
    assert status.failure_kind is None
    results = results_of(provider, status)
    got = [result.custom_id or "" for result in results]
    asked = [each.custom_id for each in sent.requests]
    assert sorted(got) == sorted(asked) and got != asked
    for result in results:
        assert result.outcome is AnswerOutcome.COMPLETED
        assert json.loads(result.text or "") == {"title": None}
        assert result.http_status in (200, None)
        assert result.usage.input_tokens and result.usage.output_tokens


def test_a_search_before_and_after(sent):
    sent.write_notes(3)
    receipt = sent.upload()
    assert not sent.search().found
    job_id = sent.provider.submit(sent.submission(receipt)).job_id
    found = sent.found()
    if found is None:
        assert sent.provider.submit(sent.submission(receipt)).job_id == job_id
    else:
        assert found == [job_id]


def test_a_request_that_cannot_be_served_is_rejected(sent, provider):
    sent.write(request_of(sent.job_key, 1, model="no-such-model"))
    try:
        status = ended(provider, sent.submit().job_id)
    except CallRefused as refused:
        assert refused.kind is FailureKind.REJECTED
        return
    assert status.phase is JobPhase.ENDED
    (result,) = results_of(provider, status)
    assert result.outcome is AnswerOutcome.REJECTED
    assert result.error_code


def test_an_answer_over_its_limit_is_truncated(sent, provider):
    sent.write(replace(request_of(sent.job_key, 1), max_output_tokens=1))
    (result,) = results_of(provider, ended(provider, sent.submit().job_id))
    assert result.outcome is AnswerOutcome.TRUNCATED


def test_a_repeated_id_is_refused_or_comes_back_as_what_it_was(sent, provider):
    """The pipeline itself never sends one; no result of it may look like another's."""
    sent.write(request_of(sent.job_key, 1), request_of(sent.job_key, 1))
    try:
        status = ended(provider, sent.submit().job_id)
    except CallRefused as refused:
        assert refused.kind is FailureKind.REJECTED
        return
    if status.phase is JobPhase.FAILED:
        assert status.failure_kind is not None and status.results == ()
    else:
        ids = {result.custom_id for result in results_of(provider, status)}
        assert ids == {sent.requests[0].custom_id}


def test_a_payload_that_is_not_there_is_not_submitted(sent, provider):
    if provider.files is None:
        pytest.skip("the create call carries the payload")
    with pytest.raises((CallRefused, CallFailed)) as caught:
        provider.submit(Submission(sent.job_key, MODEL, input_id="file-none"))
    assert caught.value.http_status in (400, 404)
    sent.write_notes(1)
    assert not sent.search().found


def test_a_deleted_payload_makes_no_job(sent, provider):
    if provider.files is None:
        pytest.skip("the create call carries the payload")
    receipt = sent.write_notes(1).upload()
    assert provider.files.holds(receipt.input_id)
    for _ in range(2):
        provider.files.delete(receipt.input_id)
        assert not provider.files.holds(receipt.input_id)
    with pytest.raises((CallRefused, CallFailed)):
        provider.submit(sent.submission(receipt))
    assert not sent.search().found


def test_what_a_provider_holds_of_a_job_can_be_deleted(sent, provider):
    sent.write_notes(2)
    receipt = sent.upload()
    status = ended(provider, provider.submit(sent.submission(receipt)).job_id)
    files = [one.reference for one in status.results] + ([receipt.input_id] if receipt else [])
    for _ in range(2):
        provider.clean_up(status.job_id, files)
    if provider.name == "infrai":
        return  # it documents no way
    for result in status.results:
        with pytest.raises(CallRefused), provider.download(result) as chunks:
            list(chunks)
    if receipt is not None:
        assert not provider.files.holds(receipt.input_id)


def test_what_is_not_there_is_refused(provider):
    for call in (provider.status, provider.cancel):
        with pytest.raises(CallRefused) as caught:
            call("batch_none")
        assert caught.value.kind is FailureKind.REJECTED


@EVERY_PROVIDER
def test_a_wrong_key_is_an_account_failure(server, name, tmp_path, job_key):
    provider = provider_at(name, server.root_url, key="sk-other")
    sent = Sent(tmp_path, provider, job_key).write_notes(1)
    for call in (sent.submit, lambda: provider.status("batch_none")):
        with pytest.raises(CallRefused) as caught:
            call()
        assert caught.value.kind is FailureKind.ACCOUNT


@EVERY_PROVIDER
def test_a_job_that_is_cancelled_keeps_what_was_done(tmp_path, slow_server, name, job_key):
    provider = provider_at(name, slow_server.root_url)
    sent = Sent(tmp_path, provider, job_key).write_notes(2)
    job_id = sent.submit().job_id
    told = _answered_within(1.0, provider, job_id)
    provider.cancel(job_id)
    status = ended(provider, job_id)
    assert status.phase in (JobPhase.CANCELLED, JobPhase.ENDED)
    results = results_of(provider, status)
    assert {result.outcome for result in results} <= {
        AnswerOutcome.COMPLETED,
        AnswerOutcome.CANCELLED,
    }
    ids = [result.custom_id for result in results]
    assert len(ids) == len(set(ids)) <= 2
    done = [one for one in results if one.outcome is AnswerOutcome.COMPLETED]
    assert len(done) >= told
    assert status.counts.completed in (len(done), None)
    assert provider.cancel(job_id).phase is status.phase


def _answered_within(seconds: float, provider: BatchProvider, job_id: str) -> int:
    """How many of two requests are said to be answered; some tell none before the end."""
    end = time.monotonic() + seconds
    while True:
        status = provider.status(job_id)
        assert status.phase is JobPhase.PENDING
        if status.counts.completed == 2 or time.monotonic() > end:
            return status.counts.completed or 0
        time.sleep(0.05)


def test_cancelling_what_has_ended_gives_its_end(sent, provider):
    job_id = sent.write_notes(1).submit().job_id
    ended(provider, job_id)
    assert provider.cancel(job_id).phase is JobPhase.ENDED


@EVERY_PROVIDER
def test_a_job_is_there_after_the_server_was_killed(tmp_path, slow_server, name, job_key):
    provider = provider_at(name, slow_server.root_url)
    sent = Sent(tmp_path, provider, job_key).write_notes(1)
    receipt = sent.upload()
    job_id = provider.submit(sent.submission(receipt)).job_id
    before = slow_server.statistics()["jobs_created"]
    searchable = sent.search().verdict is not SearchVerdict.REPEATABLE
    slow_server.kill()
    calls: list[Callable[[], object]] = [
        lambda: provider.status(job_id),
        lambda: provider.submit(sent.submission(receipt)),
    ]
    for call in [*calls, sent.search] if searchable else calls:
        with pytest.raises(CallFailed):
            call()
    slow_server.restart()
    assert provider.status(job_id).phase is JobPhase.PENDING
    search = sent.search()
    assert search.verdict is not SearchVerdict.ABSENT
    assert {job.job_id for job in search.found} | set(search.possible) <= {job_id}
    assert slow_server.statistics()["jobs_created"] == before


def test_a_job_whose_answer_never_came_is_found_and_is_one(tmp_path, server, provider, job_key):
    before = jobs_created(server)
    with losing_answers_to_creates(server) as relay:
        lossy = provider_at(ProviderName(provider.name), relay.url.removesuffix("/v1"))
        sent = Sent(tmp_path, lossy, job_key).write_notes(2)
        receipt = sent.upload()
        submission = sent.submission(receipt)
        with pytest.raises(OutcomeUnknown):
            lossy.submit(submission)
    sent.provider = provider
    found = sent.found()
    if found is None:
        found = [provider.submit(submission).job_id]
    (job_id,) = found
    assert len(results_of(provider, ended(provider, job_id))) == 2
    assert jobs_created(server) == before + 1


@pytest.mark.parametrize("name", [ProviderName.OPENAI, ProviderName.GEMINI])
def test_a_job_is_found_among_pages_of_others(tmp_path, server, name, job_key):
    """More jobs than a page of theirs holds; of the others, one has no list, one pages of 1000."""
    provider = provider_at(name, server.root_url)
    jobs = {
        number: Sent(tmp_path, provider, f"{number}.{job_key[:-16]}{uuid.uuid4().hex[:16]}")
        for number in range(103)
    }
    sought = {number: jobs[number].write_notes(2) for number in (0, 55, 101)}
    never_sent = jobs.pop(102).write_notes(3)
    ids = {
        number: (sought.get(number) or one.write_notes(1)).submit().job_id
        for number, one in jobs.items()
    }
    for number, one in sought.items():
        assert one.found() == [ids[number]]
    assert never_sent.found() == []


def test_a_capability_of_infrai_is_read_as_a_contract(server):
    infrai = build_infrai(ProviderEndpoint(server.root_url, api_key=KEY))
    contract = infrai.described("ai.batch.submit")
    assert contract.available and contract.path == "/v1/ai/batch/submit"
    assert contract.parameter_names() >= {"requests", "metadata", "idempotency_key"}
    assert contract.contract_hash == infrai.described("ai.batch.submit").contract_hash
    assert contract.contract_hash != infrai.described("ai.batch.status").contract_hash
    with pytest.raises(CallRefused):
        infrai.described("ai.batch.dream")


def jobs_created(server: ServerProcess) -> int:
    """How many jobs the server has ever accepted."""
    return int(str(server.statistics({"Authorization": f"Bearer {KEY}"})["jobs_created"]))


@contextmanager
def losing_answers_to_creates(server: ServerProcess) -> Iterator[ScriptedServer]:
    """A relay in front of the server that passes all on, but drops the answer to a create call."""

    def relay(connection: socket.socket) -> None:
        request = running.requests[-1]
        answer = forwarded(request, server.root_url)
        path = request.split()[1]
        if not (request.startswith(b"POST ") and b"/files" not in path):
            connection.sendall(answer)

    with scripted_server(relay) as running:
        yield running
