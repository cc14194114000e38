"""The batch API in front of a model's chat endpoint."""

import threading
import time
from collections import Counter
from typing import Any

import pytest

from extraction_pipeline.batch_server.answers import Answered, Interrupted, NotAnswered
from extraction_pipeline.batch_server.config import RelayConfig
from extraction_pipeline.batch_server.relay import RelayAnswerer
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline_tests.batch_server.chat_endpoint import (
    ChatEndpoint,
    chat_endpoint,
    completion,
    refusal,
)
from extraction_pipeline_tests.batch_server.client import Client, jsonl, line
from extraction_pipeline_tests.batch_server.process import running_server, wait_until


def many(number: int, **changes: Any) -> bytes:
    return jsonl(line(f"id-{n}", f"note {n}", model="any", **changes) for n in range(number))


def said(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


@pytest.fixture(scope="module")
def relayed(tmp_path_factory):
    """An endpoint whose answer a test sets, and a client of a server that relays to it."""
    with chat_endpoint(lambda body: completion()) as endpoint:
        options: dict[str, Any] = {
            "relay_url": endpoint.url,
            "relay_model": "qwen",
            "relay_key_variable": "TEST_RELAY_KEY",
            "relay_concurrency": 2,
        }
        environment = {"TEST_RELAY_KEY": "sk-relay"}
        state = tmp_path_factory.mktemp("relay") / "state"
        with running_server(state, environment=environment, **options) as server:
            yield endpoint, Client(server.base_url)


@pytest.fixture
def endpoint(relayed) -> ChatEndpoint:
    """The shared endpoint with nothing asked yet."""
    endpoint: ChatEndpoint = relayed[0]
    endpoint.forget()
    return endpoint


@pytest.fixture
def client(relayed) -> Client:
    client: Client = relayed[1]
    return client


def after(seconds: float):
    """An answer that takes its time."""

    def slowly(body):
        time.sleep(seconds)
        return completion()

    return slowly


def test_a_batch_is_relayed(endpoint, client):
    endpoint.answer = lambda body: completion(f"on {said(body)}")
    batch = client.ended(client.batch_of(many(20, temperature=0.5)))
    rows = client.rows(batch["output_file_id"])
    assert batch["request_counts"] == {"total": 20, "completed": 20, "failed": 0}
    assert batch["usage"]["total_tokens"] == 20 * 7
    answers = {
        row["custom_id"]: row["response"]["body"]["choices"][0]["message"]["content"]
        for row in rows
    }
    assert answers == {f"id-{n}": f"on note {n}" for n in range(20)}
    assert set(Counter(said(body) for body in endpoint.requests).values()) == {1}
    for body, headers in zip(endpoint.requests, endpoint.headers, strict=True):
        assert body["path"] == "/v1/chat/completions"
        assert (body["model"], body["max_tokens"], body["temperature"]) == ("qwen", 500, 0.5)
        assert "max_completion_tokens" not in body
        assert body["response_format"]["json_schema"]["strict"] is True
        assert headers["authorization"] == "Bearer sk-relay"


def test_the_rules_still_answer_for_their_own_model(endpoint, client):
    batch = client.ended(client.batch_of(jsonl([line("a")])))
    assert batch["status"] == "completed" and endpoint.requests == []


def test_failures_of_the_endpoint_become_error_lines(endpoint, client):
    endpoint.answer = lambda body: refusal(400) if said(body) == "note 1" else completion()
    batch = client.ended(client.batch_of(many(3)))
    assert batch["request_counts"] == {"total": 3, "completed": 2, "failed": 1}
    (row,) = client.rows(batch["error_file_id"])
    assert (row["custom_id"], row["response"]["status_code"]) == ("id-1", 400)


def test_no_more_than_so_many_are_asked_at_once(endpoint, client):
    endpoint.answer = after(0.03)
    client.ended(client.batch_of(many(20)))
    assert endpoint.most_at_once == 2


def test_a_cancelled_batch_keeps_what_the_model_said_and_names_the_rest(endpoint, client):
    endpoint.answer = after(0.1)
    batch_id = client.batch_of(many(200))
    wait_until(lambda: len(endpoint.requests) > 5)
    client.call("POST", f"/batches/{batch_id}/cancel")
    batch = client.ended(batch_id)
    output = client.rows(batch["output_file_id"])
    errors = client.rows(batch["error_file_id"])
    assert batch["status"] == "cancelled"
    assert len(output) == batch["request_counts"]["completed"] == len(endpoint.requests) < 60
    assert len(output) + len(errors) == 200
    assert {(row["response"], row["error"]["code"]) for row in errors} == {
        (None, "batch_cancelled")
    }


def test_a_small_batch_does_not_wait_for_a_big_one(endpoint, client):
    endpoint.answer = after(0.05)
    big = client.batch_of(many(800))
    small = client.batch_of(many(3))
    assert client.ended(small, seconds=10)["status"] == "completed"
    assert client.get_batch(big)["status"] == "in_progress"
    client.call("POST", f"/batches/{big}/cancel")
    client.ended(big)


def test_what_was_answered_is_not_asked_again_after_a_kill(tmp_path):
    gate = threading.Event()

    def halfway(body):
        if int(said(body).split()[1]) >= 10:
            gate.wait(20)
        return completion()

    with (
        chat_endpoint(halfway) as endpoint,
        running_server(tmp_path / "state", relay_url=endpoint.url, relay_concurrency=2) as server,
    ):
        client = Client(server.base_url)
        batch_id = client.batch_of(many(20))
        wait_until(lambda: len(endpoint.requests) == 12)
        time.sleep(0.1)
        server.restart()
        gate.set()
        batch = client.ended(batch_id)
    assert batch["request_counts"]["completed"] == 20
    asked = Counter(said(body) for body in endpoint.requests)
    assert {asked[f"note {n}"] for n in range(10)} == {1}
    # Only the two that were being answered at the moment of the kill are asked a second time.
    assert sum(asked.values()) == 22


def test_an_expired_batch_keeps_what_the_model_said_and_names_the_rest(tmp_path):
    with (
        chat_endpoint(after(0.1)) as endpoint,
        running_server(tmp_path / "state", relay_url=endpoint.url, window=0.7) as server,
    ):
        client = Client(server.base_url)
        batch = client.ended(client.batch_of(many(300)))
        output = client.rows(batch["output_file_id"])
        errors = client.rows(batch["error_file_id"])
    assert batch["status"] == "expired"
    assert 0 < len(output) == batch["request_counts"]["completed"] < 100
    assert len(output) + len(errors) == 300
    assert {row["error"]["code"] for row in errors} == {"batch_expired"}


def relay(endpoint: ChatEndpoint, stopping: threading.Event | None = None, **options: Any):
    config = RelayConfig(url=endpoint.url, first_pause=0.05, **options)
    return RelayAnswerer(config, stopping or threading.Event())


BODY = line("a", model="any")["body"]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_overloaded_endpoint_is_asked_again(status):
    answers = iter([refusal(status), completion()])
    with chat_endpoint(lambda body: next(answers)) as endpoint:
        answer = relay(endpoint).answer(BODY)
    assert isinstance(answer, Answered) and answer.succeeded
    assert len(endpoint.requests) == 2


def test_a_refusal_is_passed_on_at_once():
    with chat_endpoint(lambda body: refusal(400)) as endpoint:
        answer = relay(endpoint).answer(BODY)
    assert isinstance(answer, Answered)
    assert (answer.status_code, answer.body["error"]["code"]) == (400, "c")
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("said", [b"<html>", b"[]", b"{}", b'{"choices": null}'])
def test_an_answer_that_is_no_completion_is_a_failure(said):
    with chat_endpoint(lambda body: (200, said)) as endpoint:
        answer = relay(endpoint, attempts=1).answer(BODY)
    assert isinstance(answer, Answered)
    assert (answer.status_code, answer.body["error"]["code"]) == (502, "relay_bad_answer")


def test_attempts_are_bounded():
    with chat_endpoint(lambda body: (503, b"busy")) as endpoint:
        answer = relay(endpoint, attempts=2).answer(BODY)
    assert isinstance(answer, Answered) and answer.status_code == 503
    assert len(endpoint.requests) == 2
    with chat_endpoint(lambda body: completion()) as endpoint:
        gone = relay(endpoint, attempts=1)
    assert gone.answer(BODY) == NotAnswered(
        "relay_failed", "The relayed call failed: ConnectionError."
    )


def test_a_silent_endpoint_is_given_up():
    def silent(body):
        time.sleep(1)
        return completion()

    with chat_endpoint(silent) as endpoint:
        answer = relay(endpoint, attempts=1, timeout=0.2).answer(BODY)
    assert isinstance(answer, NotAnswered) and answer.code == "relay_timeout"


def test_a_stopping_server_leaves_the_request_unanswered():
    stopping = threading.Event()
    stopping.set()
    with chat_endpoint(lambda body: refusal(503)) as endpoint, pytest.raises(Interrupted):
        relay(endpoint, stopping).answer(BODY)


def test_a_relay_that_cannot_work_is_refused():
    for options in ({"url": "host/v1"}, {"url": "http://h", "concurrency": 0}):
        with pytest.raises(ConfigurationError):
            RelayConfig(**options)
    assert RelayConfig("http://h/v1/").chat_url == "http://h/v1/chat/completions"
    assert RelayConfig("http://h/v1/chat/completions").chat_url == "http://h/v1/chat/completions"
