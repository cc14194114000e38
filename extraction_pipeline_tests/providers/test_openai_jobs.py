"""What OpenAI's wire format has beyond the others: two result files, and codes for a whole job."""

import pytest

from extraction_pipeline.providers.base import (
    AnswerOutcome,
    JobPhase,
    ModelRequest,
    ResultKind,
    Submission,
)
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.errors import CallRefused
from extraction_pipeline.providers.openai import OpenAIBatchProvider
from extraction_pipeline_tests.batch_server.process import running_server, wait_until
from extraction_pipeline_tests.providers.sample_request import object_of, sample_request

KEY = "notes.v1.0123"
SCHEMA = object_of(title={"type": ["string", "null"]})


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    state = tmp_path_factory.mktemp("openai_jobs") / "state"
    with running_server(
        state, api_key_variable="TEST_BATCH_KEY", environment={"TEST_BATCH_KEY": "sk-test"}
    ) as running:
        yield running


@pytest.fixture
def provider(server) -> OpenAIBatchProvider:
    endpoint = ProviderEndpoint(server.base_url, api_key="sk-test", read_timeout=10)
    return OpenAIBatchProvider("openai", endpoint)


def request_of(number: int, model: str = "rules-baseline") -> ModelRequest:
    return sample_request(
        custom_id=f"job-{number}", model=model, json_schema=SCHEMA, document="A fictional note."
    )


def end_of(provider: OpenAIBatchProvider, folder, *requests: ModelRequest):
    path = folder / "payload.jsonl"
    path.write_bytes(b"".join(provider.encode_request(each) + b"\n" for each in requests))
    receipt = provider.files.upload(path, KEY)
    job = provider.submit(Submission(KEY, requests[0].model, input_id=receipt.input_id))
    assert receipt.call.request_id and job.call.request_id
    wait_until(lambda: provider.status(job.job_id).phase.is_end)
    return provider.status(job.job_id)


def test_a_job_whose_requests_all_fail_has_only_an_error_file(tmp_path, provider):
    status = end_of(provider, tmp_path, request_of(1, model="no-such-model"))
    assert status.phase is JobPhase.ENDED
    (reference,) = status.results
    assert reference.kind is ResultKind.ERROR
    with provider.download(reference) as chunks:
        result = provider.decode_result(b"".join(chunks))
    assert (result.outcome, result.http_status) == (AnswerOutcome.REJECTED, 404)
    assert result.error_code == "model_not_found"


def test_a_job_whose_requests_are_all_served_has_only_an_output_file(tmp_path, provider):
    status = end_of(provider, tmp_path, request_of(1), request_of(2))
    assert [reference.kind for reference in status.results] == [ResultKind.OUTPUT]
    with provider.download(status.results[0]) as chunks:
        results = [provider.decode_result(line) for line in b"".join(chunks).splitlines()]
    for result in results:
        assert (result.http_status, result.model) == (200, "rules-baseline")
        assert result.request_id


def test_a_repeated_id_fails_the_job_as_a_whole(tmp_path, provider):
    status = end_of(provider, tmp_path, request_of(1), request_of(1))
    assert (status.phase, status.error_code) == (JobPhase.FAILED, "duplicate_custom_id")
    assert status.results == () and status.failure_kind is not None


def test_a_wrong_key_is_told_by_its_code(server):
    endpoint = ProviderEndpoint(server.base_url, api_key="sk-other", read_timeout=10)
    with pytest.raises(CallRefused) as caught:
        OpenAIBatchProvider("openai", endpoint).status("batch_1")
    assert (caught.value.kind, caught.value.code) == ("account", "invalid_api_key")
