"""What holds in every wire format: the way of a batch, whatever happens on it."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import requests

from extraction_pipeline.schemas.discharge_summary import DOCUMENT_TYPE
from extraction_pipeline_tests.batch_server.chat_endpoint import chat_endpoint, completion, refusal
from extraction_pipeline_tests.batch_server.client import NOTE_SCHEMA
from extraction_pipeline_tests.batch_server.process import running_server, wait_until
from extraction_pipeline_tests.batch_server.test_server_process import peak_memory
from extraction_pipeline_tests.batch_server.wire_clients import (
    WIRE_CLIENTS,
    AnthropicClient,
    GeminiClient,
    InfraiClient,
)

MARKS = [f"k-{number}" for number in range(20)]


@pytest.fixture(params=WIRE_CLIENTS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


@pytest.fixture
def wire(kind, server):
    return kind(server.root_url)


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A server whose batches take half a minute."""
    with running_server(tmp_path_factory.mktemp("slow") / "state", delay=30) as running:
        yield running


def wires(server) -> tuple[AnthropicClient, GeminiClient, InfraiClient]:
    """A client of every wire format."""
    url = server.root_url
    return AnthropicClient(url), GeminiClient(url), InfraiClient(url)


def contents(server) -> set[str]:
    """The files that a server keeps."""
    return {path.name for path in (server.state / "files").iterdir()}


def test_every_request_has_its_own_answer_in_another_order(wire):
    batch_id = wire.create(MARKS)
    wire.ended(batch_id)
    outcomes = wire.outcomes(batch_id)
    marks = [outcome.mark for outcome in outcomes]
    assert sorted(marks) == sorted(MARKS) and marks != MARKS
    assert {outcome.text for outcome in outcomes} == {'{"title":null}'}
    assert outcomes == wire.outcomes(batch_id)


def test_answers_are_those_of_the_document(wire):
    """The rules find their schema though only OpenAI's format names it."""
    text = "DISCHARGE SUMMARY\n\nDISCHARGE MEDICATIONS:\n1. Examplol 20 mg p.o. daily.\n"
    schema = DOCUMENT_TYPE.json_schema
    by_format: dict[Any, dict[str, Any]] = {
        AnthropicClient: {"output_config": {"format": {"type": "json_schema", "schema": schema}}},
        GeminiClient: {"generationConfig": {"responseJsonSchema": schema}},
        InfraiClient: {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": DOCUMENT_TYPE.name, "schema": schema},
            }
        },
    }
    changes = by_format[type(wire)]
    if not isinstance(wire, GeminiClient):
        changes["max_tokens"] = 5000
    batch_id = wire.create(["k-0"], text=text, **changes)
    wire.ended(batch_id)
    (outcome,) = wire.outcomes(batch_id)
    assert outcome.text is not None
    record = json.loads(outcome.text)
    assert record.keys() == schema["properties"].keys()
    assert [item["name"] for item in record["medications"]] == ["Examplol"]


def test_a_model_that_is_not_there_is_an_error_of_the_request(wire):
    batch_id = wire.create(["k-0"], model="gpt-0")
    wire.ended(batch_id)
    (outcome,) = wire.outcomes(batch_id)
    assert outcome.text is None and "model" in str(outcome.error)


@pytest.mark.parametrize("pause", [0.0, 0.15])
def test_a_killed_server_goes_on(tmp_path, pause):
    with running_server(tmp_path / "state") as server:
        marks = [f"k-{number}" for number in range(300)]
        made = [(wire, wire.create(marks)) for wire in wires(server)]
        time.sleep(pause)
        server.restart()
        for wire, batch_id in made:
            wire.ended(batch_id)
            outcomes = wire.outcomes(batch_id)
            assert sorted(outcome.mark for outcome in outcomes) == sorted(marks)
            assert all(outcome.text for outcome in outcomes)
        # The requests are not needed any more; the results are.
        wait_until(lambda: len(contents(server)) == len(made))
        statistics = server.statistics()
        assert (statistics["jobs_created"], statistics["requests_accepted"]) == (3, 900)


def test_a_server_killed_while_it_counted_requests_counts_them_again(tmp_path):
    with running_server(tmp_path / "state", delay=30) as server:
        made = [(wire, wire.create(MARKS)) for wire in wires(server)]
        progress = server.state / "progress"
        wait_until(lambda: server.log.read_text().count("20 requests") == 3)
        server.kill()
        for path in progress.iterdir():
            path.unlink()
        for _, batch_id in made:
            (progress / f"{batch_id}.sqlite3").touch()
        server.start()
        for wire, batch_id in made:
            assert wire.cancel(batch_id).status_code == 200
            wire.ended(batch_id)


def test_an_expired_batch_says_which_requests_it_left(tmp_path):
    def slowly(body):
        time.sleep(0.3)
        return completion()

    options: dict[str, Any] = {"relay_concurrency": 1, "window": 0.5}
    with (
        chat_endpoint(slowly) as endpoint,
        running_server(tmp_path / "state", relay_url=endpoint.url, **options) as server,
    ):
        anthropic, gemini, infrai = wires(server)
        made = [wire.create(MARKS, model="any") for wire in (anthropic, gemini, infrai)]
        counts = anthropic.ended(made[0])["request_counts"]
        assert counts["succeeded"] and counts["expired"]
        assert counts["succeeded"] + counts["expired"] == len(MARKS)
        errors = [outcome.error for outcome in anthropic.outcomes(made[0]) if not outcome.text]
        assert errors == ["expired"] * counts["expired"]
        operation = gemini.ended(made[1])
        assert operation["metadata"]["state"] == "BATCH_STATE_EXPIRED"
        assert operation["error"]["code"] == 4 and "response" not in operation
        status = infrai.ended(made[2])
        assert (status["status"], status["progress"]) == ("expired", 1.0)
        assert status["completed_count"] + status["failed_count"] == len(MARKS)
        codes = {item.error["code"] for item in infrai.outcomes(made[2]) if not item.text}
        assert codes == {"EXPIRED"}


def test_a_batch_that_is_cancelled_late_keeps_its_answers(kind, slow):
    def completed() -> int:
        dialects = slow.statistics()["dialects"].values()
        return sum(each["requests_completed"] for each in dialects)

    wire = kind(slow.root_url)
    before = completed()
    batch_id = wire.create(MARKS)
    wait_until(lambda: completed() == before + len(MARKS))
    assert wire.cancel(batch_id).status_code == 200
    wire.ended(batch_id)
    outcomes = wire.outcomes(batch_id)
    assert len(outcomes) == 20 and all(outcome.text for outcome in outcomes)
    # Again is harmless.
    assert wire.cancel(batch_id).status_code == 200


def test_a_batch_at_its_end_cannot_be_cancelled(wire):
    batch_id = wire.create(["k-0"])
    before = wire.ended(batch_id)
    assert wire.cancel(batch_id).status_code in (400, 409)
    assert wire.ended(batch_id) == before


RELAYED = {
    "cut": completion(choices=[{"finish_reason": "length", "message": {"content": "half"}}]),
    "no": completion(choices=[{"finish_reason": "stop", "message": {"refusal": "No."}}]),
    "blocked": completion(choices=[{"finish_reason": "content_filter", "message": {}}]),
    "odd": completion('"\ud800"'),
    "bad": refusal(400),
    "poor": refusal(402),
    "none": completion(choices=[], usage=None),
    "strange": (400, b'{"error": {"message": {"deep": 1}, "code": 7}}'),
}


def test_a_relayed_answer_comes_back_in_the_format_s_words(tmp_path):
    with (
        chat_endpoint(lambda body: RELAYED[body["messages"][-1]["content"]]) as endpoint,
        running_server(tmp_path / "state", relay_url=endpoint.url) as server,
    ):
        anthropic, gemini, infrai = wires(server)

        def results(wire: Any, read: Any) -> dict[str, Any]:
            made = {text: wire.create(["k-0"], model="any", text=text) for text in RELAYED}
            for batch_id in made.values():
                wire.ended(batch_id)
            return {text: read(batch_id)[0] for text, batch_id in made.items()}

        found = results(anthropic, anthropic.lines)
        messages = {text: line["result"].get("message") for text, line in found.items()}
        assert {text: said and said["stop_reason"] for text, said in messages.items()} == {
            "cut": "max_tokens",
            "no": "refusal",
            "blocked": "refusal",
            "odd": "end_turn",
            **dict.fromkeys(("bad", "poor", "none", "strange")),
        }
        assert messages["blocked"]["content"] == []
        assert messages["odd"]["content"][0]["text"] == '"\ud800"'
        errors = {text: line["result"].get("error") for text, line in found.items()}
        assert {text: error["error"]["type"] for text, error in errors.items() if error} == {
            "bad": "invalid_request_error",
            "poor": "billing_error",
            "none": "api_error",
            "strange": "invalid_request_error",
        }
        request = endpoint.requests[0]
        assert request["messages"][0] == {"role": "system", "content": "Extract."}
        assert (request["model"], request["max_tokens"]) == ("any", 500)
        assert request["response_format"]["json_schema"]["schema"] == NOTE_SCHEMA

        endpoint.forget()
        found = results(gemini, gemini.responses)
        assert {
            text: item["response"]["candidates"][0] if "response" in item else item["error"]["code"]
            for text, item in found.items()
        } == {
            "cut": _candidate("MAX_TOKENS", "half"),
            "no": _candidate("STOP", "No."),
            "blocked": {"content": {"role": "model"}, "finishReason": "SAFETY"},
            "odd": _candidate("STOP", '"\ud800"'),
            "bad": 3,
            "poor": 9,
            "none": 13,
            "strange": 3,
        }
        assert endpoint.requests[0] == {**request, "messages": endpoint.requests[0]["messages"]}

        endpoint.forget()
        found = results(infrai, infrai.items)
        assert [found[text]["ok"] for text in RELAYED] == [True] * 4 + [False] * 4
        assert found["poor"]["error"]["code"] == "INSUFFICIENT_CREDIT"
        assert "metadata" not in endpoint.requests[0]


def _candidate(reason: str, text: str) -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": text}]}
    return {"content": content, "finishReason": reason}


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("/v1/messages/batches/none", {"type", "error", "request_id"}),
        ("/v1/messages", {"type", "error", "request_id"}),
        ("/v1beta/batches/none", {"error"}),
        ("/v1beta/nothing", {"error"}),
        ("/v1/ai/batch/status/none", {"ok", "data", "error", "metadata"}),
        ("/v1/ai/nothing", {"ok", "data", "error", "metadata"}),
        ("/v1/discovery/none", {"ok", "data", "error", "metadata"}),
    ],
)
def test_errors_have_the_form_of_the_format(server, path, keys):
    headers = {"anthropic-version": "2023-06-01"}
    answer = requests.get(server.root_url + path, headers=headers, timeout=5)
    body = answer.json()
    assert answer.status_code == 404 and set(body) == keys
    if "request_id" in keys:
        assert body["error"]["type"] == "not_found_error"
        assert answer.headers["request-id"] == body["request_id"]
    elif "ok" in keys:
        assert body["ok"] is False and body["error"]["code"] == "NOT_FOUND"
    else:
        assert (body["error"]["code"], body["error"]["status"]) == (404, "NOT_FOUND")


def test_logs_hold_nothing_of_a_request(wire, server):
    secret = "Jane-Doe-has-a-rare-illness"
    wire.ended(wire.create(["k-0"], text=secret))
    wire.ask(["k-0", "k-0"], text=secret, **{secret: secret})
    assert secret not in server.log.read_text()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_memory_does_not_grow_with_the_batch(tmp_path):
    with running_server(tmp_path / "state") as server:
        anthropic, gemini, _ = wires(server)
        anthropic.ended(anthropic.create(MARKS))
        gemini.ended(gemini.create(MARKS))
        before = peak_memory(server.pid)
        marks = [f"k-{number}" for number in range(700)]
        text = "word " * 8000
        file = gemini.upload(gemini.file_of(marks, text=text))
        assert int(file["sizeBytes"]) > 28_000_000
        answer = gemini.submit({"inputConfig": {"fileName": file["name"]}})
        made = [
            (gemini, gemini.id_in(answer.json())),
            (anthropic, anthropic.create(marks, text=text)),
        ]
        for wire, batch_id in made:
            wire.ended(batch_id, seconds=30)
            assert len(wire.outcomes(batch_id)) == len(marks)
        assert peak_memory(server.pid) - before < 12_000


def test_a_cut_body_makes_no_batch(server, kind):
    """A client that goes away in the middle of its call leaves nothing behind."""
    paths = {
        AnthropicClient: "/v1/messages/batches",
        GeminiClient: "/v1beta/models/rules-baseline:batchGenerateContent",
        InfraiClient: "/v1/ai/batch/submit",
    }
    before = server.statistics()["jobs_created"]
    stop = threading.Event()

    def half():
        yield b'{"requests": ['
        stop.wait(0.2)
        raise OSError

    with pytest.raises(OSError):
        kind(server.root_url).call("POST", paths[kind], data=half())
    wait_until(lambda: not list((server.state / "incoming").iterdir()))
    assert server.statistics()["jobs_created"] == before
