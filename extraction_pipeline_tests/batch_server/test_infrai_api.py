"""`/v1/ai/batch` and `/v1/discovery` as a client sees them."""

import json
import threading
import uuid
from typing import Any

import jsonschema
import pytest

from extraction_pipeline.batch_server.config import Limits, ServerConfig
from extraction_pipeline.batch_server.infrai.wire import CHAT_CAPABILITIES
from extraction_pipeline.schemas.discharge_summary import DOCUMENT_TYPE
from extraction_pipeline_tests.batch_server.in_process import served
from extraction_pipeline_tests.batch_server.process import running_server
from extraction_pipeline_tests.batch_server.wire_clients import InfraiClient

SUBMIT = "/v1/ai/batch/submit"


@pytest.fixture
def client(server) -> InfraiClient:
    return InfraiClient(server.root_url)


def unwrapped(body: dict[str, Any]) -> dict[str, Any]:
    """The data of a good answer."""
    assert body.keys() == {"ok", "data", "error", "metadata"}
    assert body["ok"] is True and body["error"] is None
    metadata = body["metadata"]
    assert metadata.keys() == {"cost_usd", "latency_ms", "vendor", "cache_hit", "request_id"}
    assert uuid.UUID(metadata["request_id"]).version == 7
    return dict(body["data"])


def test_a_batch_from_submission_to_results(client):
    submitted = unwrapped(client.ask(["a", "b", "c"], key=uuid.uuid4().hex).json())
    assert submitted.keys() == {
        "batch_id",
        "state",
        "total_count",
        "estimated_eta",
        "estimated_cost_usd",
    }
    assert (submitted["state"], submitted["total_count"]) == ("queued", 3)
    batch_id = submitted["batch_id"]
    client.ended(batch_id)
    status = unwrapped(client.call("GET", f"/v1/ai/batch/status/{batch_id}").json())
    assert status["status"] == "completed" and status["progress"] == 1.0
    assert (status["total_count"], status["completed_count"], status["failed_count"]) == (3, 3, 0)
    results = unwrapped(client.call("GET", f"/v1/ai/batch/results/{batch_id}").json())
    assert results["batch_id"] == batch_id
    assert sorted(item["index"] for item in results["items"]) == [0, 1, 2]
    for item in results["items"]:
        assert item["ok"] is True and item["error"] is None and item["custom_id"] is None
        assert item["metadata"] == {"mark": "abc"[item["index"]]}
        assert item["result"]["object"] == "chat.completion"


@pytest.mark.parametrize("name", ["note", DOCUMENT_TYPE.name])
def test_a_mark_within_the_schema_comes_back(client, name):
    """A property with one permitted value, which the rules know nothing of."""
    item = client.item("a")
    asked = item["body"]["response_format"]["json_schema"]
    known = asked["schema"] if name == "note" else DOCUMENT_TYPE.json_schema
    mark = {"document_hash": {"type": "string", "enum": ["0123abcd"]}}
    asked["name"] = name
    asked["schema"] = {**known, "properties": {**mark, **known["properties"]}}
    item["body"]["max_completion_tokens"] = 5000
    batch_id = client.id_in(client.call("POST", SUBMIT, json={"requests": [item]}).json())
    client.ended(batch_id)
    (outcome,) = client.outcomes(batch_id)
    assert outcome.text is not None
    record = json.loads(outcome.text)
    assert record.keys() == asked["schema"]["properties"].keys()
    assert record["document_hash"] == "0123abcd"


def test_requests_without_a_mark_keep_their_order(client):
    items = [client.item("a", text="x" * 20 * number) for number in range(9)]
    for item in items:
        del item["body"]["metadata"]
    items[3]["capability"] = "ai.image.generate"
    batch_id = client.id_in(client.call("POST", SUBMIT, json={"requests": items}).json())
    client.ended(batch_id)
    found = client.items(batch_id)
    assert [item["index"] for item in found] == list(range(9))
    assert [item["ok"] for item in found] == [True] * 3 + [False] + [True] * 5
    assert found[3]["error"]["code"] == "NOT_FOUND" and not found[3]["error"]["retryable"]


def test_a_custom_id_comes_back(client):
    items = [client.item("a") | {"custom_id": str(number)} for number in range(5)]
    batch_id = client.id_in(client.call("POST", SUBMIT, json={"requests": items}).json())
    client.ended(batch_id)
    assert {item["custom_id"]: item["index"] for item in client.items(batch_id)} == {
        str(number): number for number in range(5)
    }


def test_the_same_key_is_the_same_batch(tmp_path):
    with running_server(tmp_path / "state", delay=30) as server:
        client = InfraiClient(server.root_url)
        first = client.create(["a"], key="k1")
        assert client.create(["a"], key="k1") == first
        assert client.create(["a"], options={"idempotency_key": "k1"}) == first
        server.restart()
        assert client.create(["a"], key="k1") == first
        for other in ({"text": "another"}, {"options": {"batch_timeout": "1h"}}):
            answer = client.ask(["a"], key="k1", **other)
            assert answer.status_code == 409
            error = answer.json()["error"]
            assert error["code"] == "IDEMPOTENCY_CONFLICT" and error["retryable"] is False
        assert client.create(["a"], key="k2") != first
        # Without a key, every call makes one.
        assert client.create(["a"]) != client.create(["a"])
        both = client.ask(["a"], key="k1", options={"idempotency_key": "k2"})
        assert both.status_code == 400
        statistics = server.statistics()["dialects"]
        assert isinstance(statistics, dict)
        assert statistics["infrai"]["jobs_created"] == 4
        assert statistics["infrai"]["jobs_by_key"] == {"k1": 1, "k2": 1}
        assert len(list((server.state / "files").iterdir())) == 4


def test_ten_calls_at_once_under_one_key_make_one_batch(client, server):
    before = server.statistics()["jobs_created"]
    found: list[str] = []
    key = uuid.uuid4().hex

    def submit() -> None:
        found.append(client.create(["a"], key=key))

    threads = [threading.Thread(target=submit) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 10 and len(set(found)) == 1
    assert server.statistics()["jobs_created"] == before + 1


def test_before_the_end_there_are_no_results(tmp_path):
    with served(ServerConfig(state=tmp_path, delay=30)) as url:
        client = InfraiClient(url)
        batch_id = client.create(["a"], options={"batch_timeout": "1s", "metadata": {"k": [1]}})
        answer = client.call("GET", f"/v1/ai/batch/results/{batch_id}")
        assert answer.status_code == 409
        assert answer.json()["error"]["code"] == "BATCH_NOT_FINISHED"
        assert answer.json()["error"]["retryable"] is True
        assert client.get(batch_id)["metadata"] == {"k": [1]}
        assert client.ended(batch_id)["status"] == "expired"
        assert client.outcomes(batch_id)[0].text


REFUSED: dict[str, Any] = {
    "no body": b"",
    "nothing": {},
    "no requests": {"requests": []},
    "no object": {"requests": [1]},
    "no body of a request": {"requests": [{"capability": "ai.chat"}]},
    "no capability": {"requests": [{"body": {}}]},
    "more within": {"requests": [{"capability": "ai.chat", "body": {}, "x": 1}]},
    "more beside": {"requests": [{"capability": "ai.chat", "body": {}}], "x": 1},
    "odd time-out": {
        "requests": [{"capability": "ai.chat", "body": {}}],
        "batch_timeout": "soon",
    },
    "no Unicode": {"requests": [{"capability": "ai.chat", "body": {"x": "\ud800"}}]},
    "no Unicode beside": {
        "requests": [{"capability": "ai.chat", "body": {}}],
        "metadata": {"x": "\ud800"},
    },
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED.keys())
def test_a_body_that_asks_for_no_batch_is_refused(client, server, body):
    before = server.statistics()["jobs_created"]
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = client.call("POST", SUBMIT, data=data)
    assert answer.status_code == 400
    assert answer.json()["ok"] is False and answer.json()["data"] is None
    assert answer.json()["error"].keys() == {"code", "message", "hint", "retryable"}
    assert answer.json()["error"]["code"] == "VALIDATION_ERROR"
    assert server.statistics()["jobs_created"] == before


def test_the_limits_of_a_batch(tmp_path):
    config = ServerConfig(state=tmp_path, infrai=Limits(requests=2, bytes=5000))
    with served(config) as url:
        client = InfraiClient(url)
        assert client.ask(["a", "b"]).status_code == 200
        for answer in (client.ask(["a", "b", "c"]), client.ask(["a"], text="x" * 5000)):
            assert answer.status_code == 413
            assert answer.json()["error"]["code"] == "PAYLOAD_TOO_LARGE"


def test_discovery_tells_the_truth(client):
    listed = unwrapped(client.call("GET", "/v1/discovery").json())
    assert {"version", "generated_at", "capabilities"} == listed.keys()
    ids = [capability["id"] for capability in listed["capabilities"]]
    assert [name for name in ids if name.startswith("ai.batch.")] == [
        f"ai.batch.{what}" for what in ("submit", "status", "results", "cancel")
    ]
    assert {name for name in ids if not name.startswith("ai.batch.")} == CHAT_CAPABILITIES
    details = {name: unwrapped(client.call("GET", f"/v1/discovery/{name}").json()) for name in ids}
    for capability in listed["capabilities"]:
        assert capability.items() <= details[capability["id"]].items()
        assert capability["available"] is True
    submit = details["ai.batch.submit"]
    assert (submit["method"], submit["path"]) == ("POST", SUBMIT)
    body = {"requests": [client.item("a")], "batch_timeout": "24h", "metadata": {"k": "v"}}
    jsonschema.validate(body, submit["params"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"requests": [{"body": {}}]}, submit["params"])
    answers = {"ai.batch.submit": client.call(submit["method"], submit["path"], json=body).json()}
    batch_id = answers["ai.batch.submit"]["data"]["batch_id"]
    client.ended(batch_id)
    for name in ("ai.batch.status", "ai.batch.results"):
        path = details[name]["path"].replace("{id}", batch_id)
        answers[name] = client.call(details[name]["method"], path).json()
    for name, answer in answers.items():
        assert answer["data"].keys() >= details[name]["response"]["properties"].keys()
        jsonschema.validate(answer["data"], details[name]["response"])
    path = details["ai.batch.cancel"]["path"].replace("{id}", batch_id)
    error = client.call("POST", path)
    codes = {each["code"]: each for each in details["ai.batch.cancel"]["errors"]}
    assert codes[error.json()["error"]["code"]]["http_status"] == error.status_code == 409
