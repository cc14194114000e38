"""OpenAI's wire format, as pure functions: request lines, batches and result lines."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.providers.base import (
    CallRecord,
    FailureKind,
    JobPhase,
    JobStatus,
    ModelRequest,
    RequestCounts,
    ResultKind,
    ResultReference,
)
from extraction_pipeline.providers.openai_translation import (
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
