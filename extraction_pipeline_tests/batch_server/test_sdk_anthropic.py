"""Anthropic's own client against the server, with nothing done for it."""

from collections.abc import Iterator
from typing import Any

import pytest

from extraction_pipeline_tests.batch_server.client import NOTE_SCHEMA
from extraction_pipeline_tests.batch_server.process import running_server, wait_until

anthropic = pytest.importorskip("anthropic", reason="needs the extra `sdk`")
KEY = "sk-ant-test"


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> Iterator[Any]:
    environment = {"TEST_BATCH_KEY": KEY}
    with running_server(
        tmp_path_factory.mktemp("anthropic") / "state",
        environment=environment,
        api_key_variable="TEST_BATCH_KEY",
        delay=0.5,
    ) as server:
        yield anthropic.Anthropic(base_url=server.root_url, api_key=KEY, max_retries=0)


def request(custom_id: str, **changes: Any) -> dict[str, Any]:
    params = {
        "model": "rules-baseline",
        "max_tokens": 500,
        "messages": [{"role": "user", "content": "A fictional note."}],
        "output_config": {"format": {"type": "json_schema", "schema": NOTE_SCHEMA}},
        **changes,
    }
    return {"custom_id": custom_id, "params": params}


def ended(client: Any, batch_id: str) -> Any:
    def end() -> Any:
        batch = client.messages.batches.retrieve(batch_id)
        return batch if batch.processing_status == "ended" else None

    return wait_until(end)


def test_the_life_of_a_batch(client):
    batches = client.messages.batches
    created = batches.create(requests=[request("a"), request("b"), request("bad", max_tokens=-1)])
    assert created.processing_status == "in_progress" and created._request_id
    assert (created.request_counts.processing, created.results_url) == (3, None)
    with pytest.raises(anthropic.AnthropicError):
        batches.results(created.id)
    with pytest.raises(anthropic.BadRequestError):
        batches.delete(created.id)

    batch = ended(client, created.id)
    counts = batch.request_counts
    assert (counts.processing, counts.succeeded, counts.errored) == (0, 2, 1)
    assert batch.expires_at > batch.ended_at >= batch.created_at
    results = {line.custom_id: line.result for line in batches.results(batch.id)}
    assert results["a"].type == results["b"].type == "succeeded"
    message = results["a"].message
    assert (message.content[0].text, message.stop_reason) == ('{"title":null}', "end_turn")
    assert message.usage.service_tier == "batch"
    assert results["bad"].type == "errored"
    assert results["bad"].error.error.type == "invalid_request_error"

    with pytest.raises(anthropic.BadRequestError):
        batches.cancel(batch.id)
    assert batches.delete(batch.id).type == "message_batch_deleted"
    with pytest.raises(anthropic.NotFoundError) as caught:
        batches.retrieve(batch.id)
    assert caught.value.body["error"]["type"] == "not_found_error"
    assert caught.value.request_id == caught.value.body["request_id"]


def test_cancelling_and_the_beta_namespace(client):
    batch = client.beta.messages.batches.create(requests=[request("a")])
    cancelled = client.beta.messages.batches.cancel(batch.id)
    assert cancelled.processing_status in ("canceling", "ended")
    batch = ended(client, batch.id)
    assert batch.cancel_initiated_at is not None
    counts = batch.request_counts
    assert counts.canceled + counts.succeeded == 1
    (line,) = client.beta.messages.batches.results(batch.id)
    assert line.result.type in ("canceled", "succeeded")


def test_lists_are_paged_by_the_client(client):
    made = [client.messages.batches.create(requests=[request("a")]).id for _ in range(5)]
    found = [batch.id for batch in client.messages.batches.list(limit=2)]
    assert found[:5] == made[::-1]
    page = client.messages.batches.list(limit=2, before_id=made[0])
    assert [batch.id for batch in page.data] == [made[2], made[1]]


def test_errors_are_the_client_s_own(client):
    batches = client.messages.batches
    with pytest.raises(anthropic.BadRequestError):
        batches.create(requests=[])
    with pytest.raises(anthropic.BadRequestError, match="custom_id"):
        batches.create(requests=[request("not.valid")])
    with pytest.raises(anthropic.AuthenticationError):
        client.with_options(api_key="wrong").messages.batches.list()
