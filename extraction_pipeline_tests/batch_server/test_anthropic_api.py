"""`/v1/messages/batches` as a client sees it."""

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from extraction_pipeline.batch_server.anthropic.translation import BatchRequest, core_request
from extraction_pipeline.batch_server.config import Limits, ServerConfig
from extraction_pipeline.batch_server.core_lines import Refusal
from extraction_pipeline_tests.batch_server.chat_endpoint import chat_endpoint, completion
from extraction_pipeline_tests.batch_server.client import NOTE_SCHEMA
from extraction_pipeline_tests.batch_server.in_process import served
from extraction_pipeline_tests.batch_server.process import running_server, wait_until
from extraction_pipeline_tests.batch_server.wire_clients import AnthropicClient

SPEC_VARIABLE = "ANTHROPIC_BATCH_SPEC"
"""Names a copy of Anthropic's API description; the shapes are checked against it where it is
set."""
PATH = "/v1/messages/batches"


def conforms(schema: str, body: object) -> None:
    path = os.environ.get(SPEC_VARIABLE)
    if path is None:
        return
    spec = json.loads(Path(path).read_text())
    jsonschema.validate(
        body, {"$ref": f"#/components/schemas/{schema}", "components": spec["components"]}
    )


@pytest.fixture
def client(server) -> AnthropicClient:
    return AnthropicClient(server.root_url)


def test_a_batch_from_creation_to_deletion(client, server):
    asked = {"requests": [client.request(f"job-{number}") for number in range(5)]}
    asked["requests"].append(client.request("job-bad", max_tokens=0))
    conforms("CreateMessageBatchParams", {"requests": asked["requests"][:5]})
    created = client.call("POST", PATH, json=asked)
    batch = created.json()
    conforms("MessageBatch", batch)
    assert created.status_code == 200 and created.headers["request-id"].startswith("req_")
    assert batch["request_counts"] == {
        "processing": 6,
        "succeeded": 0,
        "errored": 0,
        "canceled": 0,
        "expired": 0,
    }
    assert (batch["processing_status"], batch["results_url"]) == ("in_progress", None)
    assert batch["ended_at"] is None and batch["cancel_initiated_at"] is None
    hours = datetime.fromisoformat(batch["expires_at"]) - datetime.fromisoformat(
        batch["created_at"]
    )
    assert hours.total_seconds() == 24 * 3600

    batch = client.ended(batch["id"])
    conforms("MessageBatch", batch)
    assert batch["request_counts"] == {
        "processing": 0,
        "succeeded": 5,
        "errored": 1,
        "canceled": 0,
        "expired": 0,
    }
    assert batch["created_at"] <= batch["ended_at"]
    path = f"{PATH}/{batch['id']}"
    assert batch["results_url"] == f"{server.root_url}{path}/results"

    results = client.call("GET", f"{path}/results")
    assert results.headers["content-type"].startswith("application/x-jsonl")
    assert results.content.endswith(b"}\n")
    lines = [json.loads(line) for line in results.content.splitlines()]
    for line in lines:
        conforms("MessageBatchIndividualResponse", line)
    (bad,) = [line for line in lines if line["custom_id"] == "job-bad"]
    assert bad["result"]["type"] == "errored"
    assert bad["result"]["error"]["type"] == "error"
    assert bad["result"]["error"]["error"]["type"] == "invalid_request_error"
    assert "max_tokens" in bad["result"]["error"]["error"]["message"]
    messages = [line["result"]["message"] for line in lines if line is not bad]
    assert len({message["id"] for message in messages}) == 5
    for message in messages:
        assert (message["stop_reason"], message["model"]) == ("end_turn", "rules-baseline")
        assert message["usage"]["output_tokens"] > 0
        assert message["usage"]["service_tier"] == "batch"

    deleted = client.call("DELETE", path).json()
    conforms("DeleteMessageBatchResponse", deleted)
    assert deleted == {"id": batch["id"], "type": "message_batch_deleted"}
    for gone in (path, f"{path}/results"):
        assert client.call("GET", gone).status_code == 404
    ids = [item["id"] for item in client.call("GET", PATH).json()["data"]]
    assert batch["id"] not in ids


def test_a_batch_that_is_cancelled_before_anything_was_done(tmp_path):
    """The relay of this server leads nowhere, so that no request ever has an answer."""
    options: dict[str, Any] = {"relay_url": "http://127.0.0.1:1", "relay_concurrency": 1}
    with running_server(tmp_path / "state", **options) as server:
        client = AnthropicClient(server.root_url)
        batch_id = client.create(["a-1", "a-2", "a-3", "a-4"], model="any")
        path = f"{PATH}/{batch_id}"
        assert client.call("GET", f"{path}/results").status_code == 400
        assert client.call("DELETE", path).status_code == 400
        batch = client.cancel(batch_id).json()
        conforms("MessageBatch", batch)
        assert batch["processing_status"] == "canceling" and batch["cancel_initiated_at"]
        assert batch["request_counts"]["processing"] == 4
        # What the model was asked for by then is waited for, so the server is started anew.
        server.restart()
        batch = client.ended(batch_id)
        assert batch["request_counts"]["canceled"] == 4
        for line in client.lines(batch_id):
            conforms("MessageBatchIndividualResponse", line)
            assert line["result"] == {"type": "canceled"}


def test_a_list_goes_both_ways(tmp_path):
    with served(ServerConfig(state=tmp_path)) as url:
        client = AnthropicClient(url)
        empty = client.call("GET", PATH).json()
        conforms("ListResponse_MessageBatch_", empty)
        assert empty == {"data": [], "has_more": False, "first_id": None, "last_id": None}
        newest = [client.create(["a"]) for _ in range(5)][::-1]

        def page(**query: object) -> tuple[list[str], bool]:
            body = client.call("GET", PATH, params=query).json()
            conforms("ListResponse_MessageBatch_", body)
            ids = [item["id"] for item in body["data"]]
            assert (body["first_id"], body["last_id"]) == (ids[0], ids[-1])
            return ids, body["has_more"]

        assert page() == (newest, False)
        assert page(limit=2) == (newest[:2], True)
        assert page(limit=2, after_id=newest[1]) == (newest[2:4], True)
        assert page(limit=2, after_id=newest[3]) == (newest[4:], False)
        assert page(limit=2, before_id=newest[4]) == (newest[2:4], True)
        assert page(limit=2, before_id=newest[2]) == (newest[:2], False)
        # One that was deleted meanwhile still marks its place.
        client.ended(newest[1])
        client.call("DELETE", f"{PATH}/{newest[1]}")
        assert page(limit=2, after_id=newest[1]) == (newest[2:4], True)
        assert page(limit=2) == ([newest[0], newest[2]], True)
        for query in (
            {"limit": 0},
            {"limit": 1001},
            {"limit": "x"},
            {"after_id": "none"},
            {"after_id": newest[0], "before_id": newest[1]},
        ):
            assert client.call("GET", PATH, params=query).status_code == 400, query


def request(custom_id: Any = "a", **more: Any) -> dict[str, Any]:
    return {"custom_id": custom_id, "params": {}, **more}


REFUSED: dict[str, Any] = {
    "no body": b"",
    "a list": [],
    "nothing": {},
    "no requests": {"requests": []},
    "null": {"requests": None},
    "no object": {"requests": [1]},
    "cut": b'{"requests": [{"custom_id": "a", "params": {}}',
    "not JSON": b'{"requests": [{"custom_id": "a", "params": {"x": oops}}]}',
    "no Unicode": {"requests": [request(params={"x": "\ud800"}) | {"custom_id": "\ud800"}]},
    "more beside": {"requests": [request()], "metadata": {"k": "v"}},
    "no id": {"requests": [{"params": {}}]},
    "no params": {"requests": [{"custom_id": "a"}]},
    "more within": {"requests": [request(priority=1)]},
    "id of a number": {"requests": [request(7)]},
    "empty id": {"requests": [request("")]},
    "id with a dot": {"requests": [request("a.b")]},
    "id with a line": {"requests": [request("a\n")]},
    "long id": {"requests": [request("a" * 65)]},
    "id twice": {"requests": [request(), request()]},
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED.keys())
def test_a_body_that_asks_for_no_batch_is_refused(client, server, body):
    before = server.statistics()["jobs_created"]
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = client.call("POST", PATH, data=data)
    error = answer.json()
    conforms("ErrorResponse", error)
    assert answer.status_code == 400
    assert error["type"] == "error" and error["error"]["type"] == "invalid_request_error"
    assert error["request_id"] == answer.headers["request-id"]
    assert server.statistics()["jobs_created"] == before
    assert list((server.state / "incoming").iterdir()) == []


def test_the_version_has_to_be_named(client):
    del client.headers["anthropic-version"]
    for method, path in (("GET", PATH), ("POST", PATH), ("GET", f"{PATH}/none")):
        answer = client.call(method, path)
        assert answer.status_code == 400 and "anthropic-version" in answer.text


def test_the_limits_of_a_batch(tmp_path):
    config = ServerConfig(state=tmp_path, anthropic=Limits(requests=3, bytes=4000))
    with served(config) as url:
        client = AnthropicClient(url)
        assert client.ask(["a", "b", "c"]).status_code == 200
        many = client.call("POST", PATH, json={"requests": [request(str(n)) for n in range(4)]})
        large = client.ask(["a"], text="x" * 4000)
        unsized = client.call("POST", PATH, data=iter([b'{"requests": [', b" " * 4000]))
        for answer in (many, large, unsized):
            assert answer.status_code == 413
            assert answer.json()["error"]["type"] == "request_too_large"
        client.ended(client.id_in(client.call("GET", PATH).json()["data"][0]))
        wait_until(lambda: len(list((tmp_path / "files").iterdir())) == 1)


GOOD = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}


TOOL = {"name": "note", "input_schema": NOTE_SCHEMA}


def translated(**changes: Any) -> Any:
    return core_request(BatchRequest(custom_id="a", params={**GOOD, **changes})).asked


def test_a_request_as_a_chat_completion():
    blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    cached = [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]
    messages = [{"role": "user", "content": blocks}, {"role": "assistant", "content": "{"}]
    assert translated(
        messages=messages,
        system=cached,
        temperature=0,
        top_p=0.5,
        top_k=3,
        stop_sequences=["END"],
        output_config={"effort": "low"},
        metadata={"user_id": "u"},
        thinking={"type": "disabled"},
        service_tier="standard_only",
        stream=False,
    ) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "a\nb"},
            {"role": "assistant", "content": "{"},
        ],
        "max_completion_tokens": 5,
        "temperature": 0,
        "top_p": 0.5,
        "top_k": 3,
        "stop": ["END"],
        "reasoning_effort": "low",
    }


def test_an_answer_can_be_asked_for_by_a_tool(tmp_path):
    answers = iter(
        [
            completion('{"title": "x"}'),
            completion(choices=[{"finish_reason": "length", "message": {"content": '{"ti'}}]),
            completion(choices=[{"finish_reason": "stop", "message": {"refusal": "No."}}]),
        ]
    )
    choice = {"type": "tool", "name": "note"}
    with (
        chat_endpoint(lambda body: next(answers)) as endpoint,
        running_server(tmp_path / "state", relay_url=endpoint.url) as server,
    ):
        client = AnthropicClient(server.root_url)
        found = []
        for _ in range(3):
            batch_id = client.create(
                ["a"], model="any", tools=[TOOL], tool_choice=choice, output_config=None
            )
            client.ended(batch_id)
            (line,) = client.lines(batch_id)
            conforms("MessageBatchIndividualResponse", line)
            message = line["result"]["message"]
            found.append((message["stop_reason"], message["content"][0]))
        assert endpoint.requests[0]["response_format"]["json_schema"] == {
            "name": "note",
            "strict": True,
            "schema": NOTE_SCHEMA,
        }
        assert "tools" not in endpoint.requests[0]
    used, cut, refused = found
    assert (used[0], used[1]["name"], used[1]["input"]) == ("tool_use", "note", {"title": "x"})
    assert (cut[0], cut[1]["type"], cut[1]["input"]) == ("max_tokens", "tool_use", {})
    assert (refused[0], refused[1]["text"]) == ("refusal", "No.")


@pytest.mark.parametrize(
    "changes",
    [
        {"max_tokens": 0},
        {"max_tokens": None},
        {"model": ""},
        {"messages": []},
        {"messages": [{"role": "system", "content": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]},
        {"stream": True},
        {"tool_choice": {"type": "tool", "name": "t"}},
        {"tool_choice": {"type": "auto"}, "tools": [TOOL]},
        {"tools": [TOOL, TOOL]},
        {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        {"temperature": 2},
        {"output_config": {"format": {"type": "json_schema"}}},
        {"response_format": {"type": "json_object"}},
    ],
    ids=str,
)
def test_what_cannot_be_served_is_refused_request_by_request(changes):
    refused = translated(**changes)
    assert isinstance(refused, Refusal)
    assert refused.param and refused.param.startswith(next(iter(changes)))
