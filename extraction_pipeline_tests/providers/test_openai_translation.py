"""OpenAI's wire format, as pure functions: request lines, batches and result lines."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.providers.base import (
    AnswerOutcome,
    CallRecord,
    FailureKind,
    JobPhase,
    JobStatus,
    ModelRequest,
    RequestCounts,
    ResultKind,
    ResultReference,
    UndecodableResult,
)
from extraction_pipeline.providers.openai_translation import (
    decode_result,
    encode_request,
    job_status,
    read_error_code,
)
from extraction_pipeline.providers.openai_wire import WireBatch

CALL = CallRecord(200, "req_1")
SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": ["string", "null"]}, "after": {"type": "string"}},
    "required": ["title", "after"],
    "additionalProperties": False,
}


def request(document: str = "Patient: A. Sample", **changes: Any) -> ModelRequest:
    fields: dict[str, Any] = {
        "custom_id": "job-doc",
        "model": "some-model",
        "instructions": "Extract.",
        "document": document,
        "schema_name": "note",
        "json_schema": SCHEMA,
        "max_output_tokens": 900,
        "parameters": {"temperature": 0, "seed": 7},
    } | changes
    return ModelRequest(**fields)


GOLDEN = (
    '{"custom_id":"job-doc","method":"POST","url":"/v1/chat/completions","body":'
    '{"model":"some-model","messages":[{"role":"system","content":"Extract."},'
    '{"role":"user","content":"Patient: A. Sample"}],"response_format":{"type":"json_schema",'
    '"json_schema":{"name":"note","strict":true,"schema":{"type":"object","properties":'
    '{"title":{"type":["string","null"]},"after":{"type":"string"}},"required":["title","after"],'
    '"additionalProperties":false}}},"max_completion_tokens":900,"seed":7,"temperature":0}}'
)


def test_the_golden_request_line():
    assert encode_request(request()).decode() == GOLDEN


def test_the_order_of_parameters_does_not_matter():
    turned = request(parameters={"seed": 7, "temperature": 0})
    assert encode_request(turned) == encode_request(request())


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_stays_one_line_and_comes_back(text):
    encoded = encode_request(request(document=text, instructions=text[::-1]))
    assert len(encoded.splitlines()) == len(encoded.decode().splitlines()) == 1
    messages = json.loads(encoded)["body"]["messages"]
    assert [message["content"] for message in messages] == [text[::-1], text]


def test_line_separators_in_a_document_are_escaped():
    assert b'a\\u2028b\\u2029c\\u0085d"' in encode_request(request("a\u2028b\u2029c\u0085d"))


def test_text_that_is_no_unicode_is_refused_by_its_custom_id():
    with pytest.raises(ConfigurationError, match="job-doc") as caught:
        encode_request(request("Jane\ud800Doe"))
    assert "Jane" not in str(caught.value)


@pytest.mark.parametrize("name", ["model", "messages", "response_format", "max_tokens", "n"])
def test_a_parameter_that_the_pipeline_sets_is_refused(name):
    with pytest.raises(ConfigurationError, match=name):
        encode_request(request(parameters={name: 1}))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"error": {"message": "m", "type": "t", "param": null, "code": "c"}}', "c"),
        (b'{"error": {"message": "m", "type": "t", "code": null}}', "t"),
        (b'{"error": {"message": "m", "type": "t", "code": 429}}', "t"),
        (b'{"error": "text"}', None),
        (b"<html>", None),
        (b"", None),
        (b"[]", None),
    ],
)
def test_the_code_of_an_error_body(body, code):
    assert read_error_code(body) == code


def status(state: str, **fields) -> JobStatus:
    batch = {
        "id": "batch_1",
        "object": "batch",
        "endpoint": "/v1/chat/completions",
        "input_file_id": "file-in",
        "completion_window": "24h",
        "status": state,
        "created_at": 1_750_000_000,
        "request_counts": {"total": 3, "completed": 2, "failed": 1},
        **fields,
    }
    return job_status(WireBatch.model_validate_json(json.dumps(batch)), CALL)


BOTH = {"output_file_id": "file-out", "error_file_id": "file-err"}
OUTPUT = ResultReference(ResultKind.OUTPUT, "file-out")
ERROR = ResultReference(ResultKind.ERROR, "file-err")


@pytest.mark.parametrize(
    ("state", "fields", "phase"),
    [
        ("validating", {}, JobPhase.PENDING),
        ("in_progress", {}, JobPhase.PENDING),
        ("finalizing", {}, JobPhase.PENDING),
        ("cancelling", {}, JobPhase.PENDING),
        ("paused_by_the_moon", {}, JobPhase.PENDING),
        ("paused_by_the_moon", BOTH, JobPhase.PENDING),
        ("completed", BOTH, JobPhase.ENDED),
        ("completed", {"output_file_id": None, "error_file_id": "file-err"}, JobPhase.ENDED),
        ("completed", {"output_file_id": None, "error_file_id": None}, JobPhase.PENDING),
        ("expired", BOTH, JobPhase.EXPIRED),
        ("expired", {}, JobPhase.EXPIRED),
        ("cancelled", BOTH, JobPhase.CANCELLED),
        ("cancelled", {}, JobPhase.CANCELLED),
        ("failed", {}, JobPhase.FAILED),
        ("failed", {"output_file_id": "file-out"}, JobPhase.ENDED),
    ],
)
def test_states(state, fields, phase):
    reading = status(state, **fields)
    assert (reading.phase, reading.provider_state) == (phase, state)
    assert (reading.failure_kind is not None) == (phase is JobPhase.FAILED)


@pytest.mark.parametrize(
    ("fields", "results"),
    [
        (BOTH, (OUTPUT, ERROR)),
        ({"output_file_id": None, "error_file_id": "file-err"}, (ERROR,)),
        ({"output_file_id": "", "error_file_id": "file-err"}, (ERROR,)),
        ({"error_file_id": "file-err"}, (ERROR,)),
        ({"output_file_id": "file-out", "error_file_id": ""}, (OUTPUT,)),
        ({"output_file_id": "file-out", "error_file_id": None}, (OUTPUT,)),
        ({"output_file_id": "file-out"}, (OUTPUT,)),
        ({"output_file_id": 7, "error_file_id": {}}, ()),
    ],
)
def test_file_ids_may_be_null_absent_or_empty(fields, results):
    assert status("cancelled", **fields).results == results


@pytest.mark.parametrize(
    ("errors", "code", "kind"),
    [
        (
            [{"code": "token_limit_exceeded", "message": "Enqueued token limit", "line": None}],
            "token_limit_exceeded",
            FailureKind.TRANSPORT,
        ),
        (
            [{"code": "invalid_json_line", "message": "m", "line": 4}],
            "invalid_json_line",
            FailureKind.REJECTED,
        ),
        (
            [{"code": "invalid_json_line"}, {"code": "token_limit_exceeded"}],
            "token_limit_exceeded",
            FailureKind.TRANSPORT,
        ),
        ([{"code": "insufficient_quota"}], "insufficient_quota", FailureKind.ACCOUNT),
        ([{"code": "server_error"}], "server_error", FailureKind.TRANSPORT),
        ([], None, FailureKind.MODEL),
        ([{"message": "no code"}], None, FailureKind.MODEL),
    ],
)
def test_why_a_batch_failed(errors, code, kind):
    reading = status("failed", errors={"object": "list", "data": errors})
    assert (reading.error_code, reading.failure_kind) == (code, kind)


@pytest.mark.parametrize("errors", [None, "text", {"data": None}, {"data": "text"}, {}])
def test_odd_errors_do_not_hide_that_a_batch_failed(errors):
    assert status("failed", errors=errors).phase is JobPhase.FAILED


def test_counts_and_times():
    reading = status("completed", completed_at=1_750_000_100, expires_at=1_750_086_400, **BOTH)
    assert reading.counts == RequestCounts(3, 2, 1)
    assert reading.ended_at == datetime.fromtimestamp(1_750_000_100, UTC)
    assert reading.expires_at == datetime.fromtimestamp(1_750_086_400, UTC)
    odd = status("in_progress", request_counts={"total": -1, "completed": "x"}, completed_at=1)
    assert (odd.counts, odd.ended_at) == (RequestCounts(), None)


@pytest.mark.parametrize(
    "body", ['{"status": "completed"}', '{"id": "b"}', '{"id":"","status":"x"}']
)
def test_a_batch_without_id_or_status_is_no_batch(body):
    with pytest.raises(ValueError, match="validation"):
        WireBatch.model_validate_json(body)


def completion(content="{}", finish="stop", **message) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "model": "some-model-2026-01-01",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": content, **message},
            }
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16},
    }


def result(response=None, error=None, **fields) -> bytes:
    line = {"id": "batch_req_1", "custom_id": "job-doc", "response": response, "error": error}
    return json.dumps(line | fields).encode()


def served(body, status_code=200) -> bytes:
    return result({"status_code": status_code, "request_id": "req_9", "body": body})


def failed(status_code, code, type=None) -> bytes:
    error = {"message": "Jane Doe", "type": type, "param": None, "code": code}
    return served({"error": error}, status_code)


PARTS = [{"type": "text", "text": "{"}, {"type": "text", "text": "}"}]
REFUSING = [{"type": "refusal", "refusal": "I will not."}]
OK = {"status_code": 200, "body": completion()}
SHAPES = [
    ("completed", served(completion('{"title":null}')), "completed", '{"title":null}'),
    ("201", served(completion(), 201), "completed", "{}"),
    ("no finish reason", served(completion(finish=None)), "completed", "{}"),
    ("another finish reason", served(completion(finish="eos")), "completed", "{}"),
    ("parts", served(completion(PARTS)), "completed", "{}"),
    ("error of empty object", result(OK, {}), "completed", "{}"),
    ("no status", result({"body": completion()}), "completed", "{}"),
    ("refusal field", served(completion(None, refusal="No.")), "refused", "No."),
    ("refusal and text", served(completion("{}", refusal="No.")), "refused", "No."),
    ("refusal part", served(completion(REFUSING)), "refused", "I will not."),
    ("length", served(completion('{"ti', "length")), "truncated", '{"ti'),
    ("length without text", served(completion(None, "length")), "truncated", None),
    ("content filter", served(completion(None, "content_filter")), "blocked", None),
    ("content null", served(completion(None)), "empty", None),
    ("content blank", served(completion(" \n")), "empty", " \n"),
    ("content missing", served({"choices": [{"message": {}}]}), "empty", None),
    ("content a number", served(completion(7)), "empty", None),
    ("tool call", served(completion(None, "tool_calls")), "empty", None),
    ("message missing", served({"choices": [{"finish_reason": "stop"}]}), "empty", None),
    ("choices empty", served({"choices": []}), "errored", None),
    ("choices missing", served({"id": "x"}), "errored", None),
    ("choices null", served({"choices": None}), "errored", None),
    ("body missing", result({"status_code": 200}), "errored", None),
    ("body text", served("oops"), "errored", None),
    ("body of an error with 200", failed(200, "server_error"), "errored", None),
    ("finish reason error", served(completion("{", "error")), "errored", "{"),
    ("400", failed(400, "invalid_value", "invalid_request_error"), "rejected", None),
    ("400 schema", failed(400, None, "invalid_request_error"), "rejected", None),
    ("400 too long", failed(400, "context_length_exceeded"), "rejected", None),
    ("400 content policy", failed(400, "content_policy_violation"), "blocked", None),
    ("400 billing", failed(400, "billing_hard_limit_reached"), "account", None),
    ("401", failed(401, "invalid_api_key"), "account", None),
    ("403", failed(403, None), "account", None),
    ("404 model", failed(404, "model_not_found"), "rejected", None),
    ("408", failed(408, None), "errored", None),
    ("429", failed(429, "rate_limit_exceeded"), "errored", None),
    ("429 quota", failed(429, "insufficient_quota"), "account", None),
    ("429 quota by type", failed(429, None, "insufficient_quota"), "account", None),
    ("500", failed(500, "server_error"), "errored", None),
    ("500 without body", served(None, 500), "errored", None),
    ("expired", result(error={"code": "batch_expired", "message": "m"}), "expired", None),
    ("cancelled", result(error={"code": "batch_cancelled", "message": "m"}), "cancelled", None),
    ("timeout", result(error={"code": "request_timeout", "message": "m"}), "errored", None),
    ("quota", result(error={"code": "insufficient_quota", "message": "m"}), "account", None),
    ("invalid", result(error={"code": "invalid_request_error", "message": ""}), "rejected", None),
    ("error text", result(error="something"), "errored", None),
    ("neither", result(), "errored", None),
    ("absent both", b'{"custom_id": "job-doc"}', "errored", None),
]


@pytest.mark.parametrize(
    ("line", "outcome", "text"), [shape[1:] for shape in SHAPES], ids=[s[0] for s in SHAPES]
)
def test_result_shapes(line, outcome, text):
    decoded = decode_result(line)
    assert (decoded.custom_id, decoded.outcome, decoded.text) == ("job-doc", outcome, text)


def test_what_a_result_tells_of_itself():
    decoded = decode_result(served(completion()))
    assert (decoded.http_status, decoded.request_id) == (200, "req_9")
    assert decoded.model == "some-model-2026-01-01"
    assert (decoded.usage.input_tokens, decoded.usage.output_tokens) == (11, 5)
    refused = decode_result(failed(429, "rate_limit_exceeded", "requests"))
    assert (refused.http_status, refused.error_code) == (429, "rate_limit_exceeded")
    assert refused.error_message == "Jane Doe" and "Jane Doe" not in repr(refused)


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"\n", b"{", b"[]", b"null", b"7", b'"text"', b"\xff\xfe", b"{}"),
        b'{"custom_id": ""}',
        b'{"custom_id": 7}',
        b'{"custom_id": null}',
        b'{"custom_id": "a", "custom_id": "b"}',
        b"[" * 100_000,
        served(completion())[:-9],
    ],
)
def test_a_line_that_names_no_request_is_undecodable_and_not_quoted(line):
    with pytest.raises(UndecodableResult) as caught:
        decode_result(line)
    assert "A result line cannot be read" in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_tokens_of_a_cache_and_of_thinking_are_in_the_sums_already():
    details = (
        b'"prompt_tokens_details": {"cached_tokens": 9}, '
        b'"completion_tokens_details": {"reasoning_tokens": 4}, "prompt_tokens": 11'
    )
    line = served(completion()).replace(b'"prompt_tokens": 11', details)
    usage = decode_result(line).usage
    assert details in line
    assert (usage.input_tokens, usage.output_tokens) == (11, 5)


def test_repeated_names_and_huge_numbers_cost_no_answer():
    line = served(completion("kept"))
    repeated = line.replace(b'"id": "chatcmpl-1"', b'"id": "x", "id": "y", "n": ' + b"9" * 5000)
    assert decode_result(repeated).text == "kept"
    same = line.replace(b'"custom_id"', b'"custom_id": "job-doc", "custom_id"')
    assert decode_result(same).custom_id == "job-doc"
    many = line.replace(b'"prompt_tokens": 11', b'"prompt_tokens": ' + b"9" * 40)
    assert decode_result(many).usage.input_tokens is None
    assert decode_result(many).usage.output_tokens == 5


def test_line_separators_and_broken_unicode_in_an_answer():
    raw = served(completion("@")).replace(b"@", "a\u2028b".encode())
    assert decode_result(raw).text == "a\u2028b"
    halves = served(completion("x\ud83dy \ud83d\ude00 z"))
    assert b"\\ud83d" in halves
    text = decode_result(halves).text
    assert text == "x\ufffdy \U0001f600 z"


NAMES = [
    *("response", "error", "body", "choices", "message", "content", "status_code", "usage"),
    *("finish_reason", "refusal", "code", "prompt_tokens", "text", "model"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=25,
)


@given(JSON, JSON)
def test_any_json_around_a_custom_id_is_decoded_to_some_outcome(response, error):
    decoded = decode_result(result(response, error))
    assert decoded.outcome in AnswerOutcome
    assert (decoded.text or "").encode() is not None


@given(JSON, JSON)
def test_a_plain_line_is_read_as_one_that_is_written_with_escapes(response, error):
    line = json.dumps({"custom_id": "a-1", "response": response, "error": error, "Z": "Z"})
    assert decode_result(line.encode()) == decode_result(line.replace("Z", "\\u005a").encode())
