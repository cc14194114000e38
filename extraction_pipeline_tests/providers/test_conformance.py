"""The whole life of a job, in every wire format that the batch server speaks, on a real one."""

import json
import os
import signal
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from extraction_pipeline.providers.base import (
    AnswerOutcome,
    BatchProvider,
    JobPhase,
    JobStatus,
    ModelRequest,
    ResultKind,
    Search,
    Sought,
    Submission,
)
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.errors import CallFailed, CallRefused, OutcomeUnknown
from extraction_pipeline.providers.registry import ProviderName, build_provider
from extraction_pipeline_tests.batch_server.process import (
    ServerProcess,
    running_server,
    wait_until,
)

KEY = "sk-test"
SINCE = datetime.now(UTC) - timedelta(minutes=10)
SPOKEN = (ProviderName.LOCAL, ProviderName.OPENAI)
"""The providers whose wire format the batch server speaks."""
SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": ["string", "null"]}},
    "required": ["title"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    state = tmp_path_factory.mktemp("conformance") / "state"
    with running_server(
        state, api_key_variable="TEST_BATCH_KEY", environment={"TEST_BATCH_KEY": KEY}
    ) as running:
        yield running


def provider_at(name: ProviderName, base_url: str, key: str = KEY) -> BatchProvider:
    endpoint = ProviderEndpoint(base_url, api_key=key, connect_timeout=2, read_timeout=10)
    return build_provider(name, endpoint)


@pytest.fixture(params=SPOKEN)
def provider(request, server) -> BatchProvider:
    return provider_at(request.param, server.base_url)


@pytest.fixture
def job_key() -> str:
    """A key of this test's own, in all the characters that keys have."""
    return f"notes-2.v1_b.{uuid.uuid4().hex}"


def request_of(number: int, model: str = "rules-baseline", document: str = "") -> ModelRequest:
    return ModelRequest(
        custom_id=f"job-{number}",
        model=model,
        instructions="Extract the title.",
        document=document or f"Fictional note {number}: é, 漢字, 🩺, \u2028 and \u0000",
        schema_name="note",
        json_schema=SCHEMA,
        max_output_tokens=500,
    )


def write(folder: Path, provider: BatchProvider, requests: list[ModelRequest]) -> Path:
    path = folder / "payload.jsonl"
    path.write_bytes(b"".join(provider.encode_request(each) + b"\n" for each in requests))
    return path


def submit(folder: Path, provider: BatchProvider, job_key: str, *requests: ModelRequest) -> str:
    receipt = provider.upload(write(folder, provider, list(requests)), job_key)
    return provider.submit(of(receipt.input_id, job_key)).job_id


def of(input_id: str, job_key: str) -> Submission:
    return Submission(job_key, "rules-baseline", input_id=input_id)


def find(provider: BatchProvider, job_key: str, count: int = 1) -> Search:
    now = datetime.now(UTC)
    return provider.find(Sought(job_key, SINCE, now, count, custom_id_prefix="job-"))


def ended(provider: BatchProvider, job_id: str) -> JobStatus:
    def end() -> JobStatus | None:
        status = provider.status(job_id)
        return status if status.phase.is_end else None

    status: JobStatus = wait_until(end)
    return status


def lines(provider: BatchProvider, status: JobStatus, kind: ResultKind) -> list[bytes]:
    (reference,) = [result for result in status.results if result.kind is kind]
    with provider.download(reference) as chunks:
        return b"".join(chunks).splitlines()


def test_a_job_from_upload_to_results(tmp_path, provider, job_key):
    requests = [request_of(number) for number in range(40)]
    receipt = provider.upload(write(tmp_path, provider, requests), job_key)
    assert find(provider, job_key, 40).found == ()
    submitted = provider.submit(of(receipt.input_id, job_key))
    assert (submitted.call.http_status, receipt.call.http_status) == (200, 200)
    assert submitted.call.request_id and receipt.call.request_id

    (found,) = find(provider, job_key, 40).found
    assert found.job_id == submitted.job_id
    assert found.created_at is not None and found.created_at > SINCE

    status = ended(provider, submitted.job_id)
    assert (status.phase, status.counts.completed) == (JobPhase.ENDED, 40)
    assert [result.kind for result in status.results] == [ResultKind.OUTPUT]
    assert status.ended_at is not None and status.failure_kind is None
    results = [provider.decode_result(each) for each in lines(provider, status, ResultKind.OUTPUT)]
    got = [result.custom_id for result in results]
    sent = [each.custom_id for each in requests]
    assert sorted(got) == sorted(sent) and got != sent
    for result in results:
        assert result.outcome is AnswerOutcome.COMPLETED
        assert json.loads(result.text or "") == {"title": None}
        assert (result.http_status, result.model) == (200, "rules-baseline")
        assert result.request_id
        assert result.usage.input_tokens and result.usage.output_tokens


def test_a_job_whose_requests_all_fail_has_only_errors(tmp_path, provider, job_key):
    job_id = submit(tmp_path, provider, job_key, request_of(1, model="no-such-model"))
    status = ended(provider, job_id)
    assert status.phase is JobPhase.ENDED
    assert [result.kind for result in status.results] == [ResultKind.ERROR]
    (line,) = lines(provider, status, ResultKind.ERROR)
    result = provider.decode_result(line)
    assert (result.outcome, result.http_status) == (AnswerOutcome.REJECTED, 404)
    assert result.error_code == "model_not_found"


def test_a_job_with_a_repeated_id_fails_as_a_whole(tmp_path, provider, job_key):
    job_id = submit(tmp_path, provider, job_key, request_of(1), request_of(1))
    status = ended(provider, job_id)
    assert (status.phase, status.error_code) == (JobPhase.FAILED, "duplicate_custom_id")
    assert status.results == () and status.failure_kind is not None


def test_an_answer_over_its_limit_is_truncated(tmp_path, provider, job_key):
    requests = [ModelRequest(**{**vars(request_of(1)), "max_output_tokens": 1})]
    status = ended(provider, submit(tmp_path, provider, job_key, *requests))
    (line,) = lines(provider, status, ResultKind.OUTPUT)
    assert provider.decode_result(line).outcome is AnswerOutcome.TRUNCATED


def test_a_payload_that_is_not_there_is_refused(provider, job_key):
    with pytest.raises(CallRefused) as caught:
        provider.submit(of("file-none", job_key))
    assert caught.value.http_status == 400
    assert find(provider, job_key).found == ()


def test_what_is_not_there_is_refused(provider):
    for call in (provider.status, provider.cancel):
        with pytest.raises(CallRefused) as caught:
            call("batch_none")
        assert caught.value.http_status == 404


@pytest.mark.parametrize("name", SPOKEN)
def test_a_wrong_key_is_an_account_failure(server, name, tmp_path):
    provider = provider_at(name, server.base_url, key="sk-other")
    with pytest.raises(CallRefused) as caught:
        provider.upload(write(tmp_path, provider, [request_of(1)]), "notes.v1.0")
    assert (caught.value.kind, caught.value.code) == ("account", "invalid_api_key")


@pytest.fixture(scope="module")
def slow_server(tmp_path_factory):
    """A server whose jobs take long."""
    with running_server(tmp_path_factory.mktemp("slow") / "state", delay=60) as running:
        yield running


@pytest.mark.parametrize("name", SPOKEN)
def test_a_job_that_is_cancelled_keeps_what_was_done(tmp_path, slow_server, name, job_key):
    provider = provider_at(name, slow_server.base_url)
    job_id = submit(tmp_path, provider, job_key, request_of(1), request_of(2))
    wait_until(lambda: provider.status(job_id).counts.completed == 2)
    provider.cancel(job_id)
    status = ended(provider, job_id)
    assert status.phase is JobPhase.CANCELLED
    assert len(lines(provider, status, ResultKind.OUTPUT)) == 2
    assert provider.cancel(job_id).phase is JobPhase.CANCELLED


def test_cancelling_what_has_ended_gives_its_end(tmp_path, provider, job_key):
    job_id = submit(tmp_path, provider, job_key, request_of(1))
    ended(provider, job_id)
    assert provider.cancel(job_id).phase is JobPhase.ENDED


@pytest.mark.parametrize("name", SPOKEN)
def test_a_job_is_found_again_after_the_server_was_killed(tmp_path, slow_server, name, job_key):
    provider = provider_at(name, slow_server.base_url)
    job_id = submit(tmp_path, provider, job_key, request_of(1))
    slow_server.kill()
    for call in (lambda: provider.status(job_id), lambda: find(provider, job_key)):
        with pytest.raises(CallFailed):
            call()
    with pytest.raises(CallFailed, match="nothing was sent"):
        provider.submit(of("file-any", job_key))
    slow_server.restart()
    assert [job.job_id for job in find(provider, job_key).found] == [job_id]
    assert provider.status(job_id).phase is JobPhase.PENDING
    assert jobs_of(slow_server, job_key) == 1


def test_a_job_whose_answer_never_came_is_found_and_is_one(tmp_path, server, provider, job_key):
    receipt = provider.upload(write(tmp_path, provider, [request_of(1)]), job_key)
    hasty = ProviderEndpoint(server.base_url, api_key=KEY, read_timeout=0.3)
    # A stopped process takes the connection (its kernel does) and does not answer.
    os.kill(server.pid, signal.SIGSTOP)
    try:
        with pytest.raises(OutcomeUnknown):
            build_provider(ProviderName(provider.name), hasty).submit(of(receipt.input_id, job_key))
    finally:
        os.kill(server.pid, signal.SIGCONT)
    (found,) = wait_until(lambda: find(provider, job_key).found)
    assert ended(provider, found.job_id).phase is JobPhase.ENDED
    assert jobs_of(server, job_key) == 1


@pytest.mark.parametrize("name", SPOKEN)
def test_a_job_is_found_among_pages_of_others(tmp_path, slow_server, name, job_key):
    provider = provider_at(name, slow_server.base_url)
    receipt = provider.upload(write(tmp_path, provider, [request_of(1)]), f"{job_key}.file")
    keys = [f"{job_key}.{number}" for number in range(102)]
    jobs = {key: provider.submit(of(receipt.input_id, key)).job_id for key in keys}
    for key in (keys[0], keys[55], keys[-1]):
        assert [job.job_id for job in find(provider, key).found] == [jobs[key]]
    assert find(provider, f"{job_key}.102").found == ()


def jobs_of(server: ServerProcess, job_key: str) -> int:
    """How many jobs of this key the server has ever accepted."""
    headers = {"Authorization": f"Bearer {KEY}"}
    by_metadata: Any = server.statistics(headers)["jobs_by_metadata"]
    return int(by_metadata["extraction_job_key"].get(job_key, 0))
