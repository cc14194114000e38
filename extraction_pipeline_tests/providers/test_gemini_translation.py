"""Gemini's wire format, as pure functions: operations, result lines and error bodies."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from extraction_pipeline.providers.base import (
    CallRecord,
    FailureKind,
    JobPhase,
    JobStatus,
    RequestCounts,
    ResultKind,
    ResultReference,
    UndecodableResult,
)
from extraction_pipeline.providers.gemini_translation import decode_result, job_status, read_error
from extraction_pipeline.providers.gemini_wire import OperationPage, WireOperation
from extraction_pipeline_tests.providers.any_json import assert_has_an_outcome, json_with

CALL = CallRecord(200, None)
FILE = {"responsesFile": "files/batch-1"}
IN_FILE = (ResultReference(ResultKind.OUTPUT, "files/batch-1"),)
INLINE = (ResultReference(ResultKind.OUTPUT, "inline:batches/1"),)
ITEM = {"metadata": {"key": "job-doc"}, "response": {}}
INLINED = {"inlinedResponses": {"inlinedResponses": [ITEM]}}


def operation(state: str | None, metadata: dict[str, Any] | None = None, **fields: Any) -> Any:
    told = {
        "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
        "model": "models/some-model",
        "displayName": "notes.v1.0",
        "createTime": "2026-03-01T12:00:00.123456789Z",
        "batchStats": {"requestCount": "3", "pendingRequestCount": "3"},
        "name": "batches/1",
    }
    if state is not None:
        told["state"] = state
    return {"name": "batches/1", "metadata": told | (metadata or {}), **fields}


def status(state: str | None, metadata: dict[str, Any] | None = None, **fields: Any) -> JobStatus:
    body = json.dumps(operation(state, metadata, **fields))
    return job_status(WireOperation.model_validate_json(body), CALL)


@pytest.mark.parametrize("prefix", ["BATCH_STATE_", "JOB_STATE_", ""])
@pytest.mark.parametrize(
    ("state", "fields", "phase"),
    [
        ("UNSPECIFIED", {}, JobPhase.PENDING),
        ("QUEUED", {}, JobPhase.PENDING),
        ("PENDING", {}, JobPhase.PENDING),
        ("RUNNING", {}, JobPhase.PENDING),
        ("PAUSED", {}, JobPhase.PENDING),
        ("CANCELLING", {}, JobPhase.PENDING),
        ("UPDATING", {}, JobPhase.PENDING),
        ("SLEEPING", {}, JobPhase.PENDING),
        ("SLEEPING", {"response": FILE}, JobPhase.PENDING),
        ("SUCCEEDED", {"done": True, "response": FILE}, JobPhase.ENDED),
        ("SUCCEEDED", {"done": True}, JobPhase.PENDING),
        ("SUCCEEDED", {"done": True, "response": {"responsesFile": ""}}, JobPhase.PENDING),
        ("PARTIALLY_SUCCEEDED", {"done": True, "response": FILE}, JobPhase.ENDED),
        ("FAILED", {"done": True, "error": {"code": 13}}, JobPhase.FAILED),
        ("FAILED", {"done": True, "response": FILE}, JobPhase.ENDED),
        ("CANCELLED", {"done": True, "error": {"code": 13}}, JobPhase.CANCELLED),
        ("EXPIRED", {"done": True}, JobPhase.EXPIRED),
        ("EXPIRED", {"done": True, "response": FILE}, JobPhase.EXPIRED),
    ],
)
def test_states_in_every_spelling(prefix, state, fields, phase):
    reading = status(prefix + state, **fields)
    assert (reading.phase, reading.provider_state) == (phase, prefix + state)
    assert (reading.failure_kind is not None) == (phase is JobPhase.FAILED)
    expected = IN_FILE if fields.get("response") == FILE and phase.is_end else ()
    assert reading.results == expected


@pytest.mark.parametrize(
    ("fields", "phase"),
    [
        ({}, JobPhase.PENDING),
        ({"done": False}, JobPhase.PENDING),
        ({"done": True}, JobPhase.PENDING),
        ({"done": True, "response": FILE}, JobPhase.ENDED),
        ({"done": True, "error": {"code": 1, "message": "m"}}, JobPhase.CANCELLED),
        ({"done": True, "error": {"code": 13, "message": "m"}}, JobPhase.FAILED),
        ({"error": {"code": 13, "message": "m"}}, JobPhase.PENDING),
    ],
)
@pytest.mark.parametrize("state", [None, "BATCH_STATE_UNSPECIFIED", "JOB_STATE_WANDERING"])
def test_without_a_known_state_the_operation_tells_whether_it_is_done(state, fields, phase):
    assert status(state, **fields).phase is phase


def test_a_state_beside_the_metadata_is_read():
    body = operation(None) | {"state": "JOB_STATE_EXPIRED"}
    reading = job_status(WireOperation.model_validate(body), CALL)
    assert (reading.phase, reading.provider_state) == (JobPhase.EXPIRED, "JOB_STATE_EXPIRED")


@pytest.mark.parametrize(
    ("response", "results"),
    [
        (FILE, IN_FILE),
        (FILE | INLINED, IN_FILE),
        (INLINED, INLINE),
        ({"responses_file": "files/batch-1"}, IN_FILE),
        ({"inlined_responses": {"inlined_responses": [ITEM]}}, INLINE),
        ({"inlinedResponses": {"inlinedResponses": []}}, ()),
        ({"inlinedResponses": {}}, ()),
        ({"responsesFile": 7, "inlinedResponses": "x"}, ()),
        ({}, ()),
    ],
)
def test_results_are_in_a_file_or_inline(response, results):
    succeeded = status("BATCH_STATE_SUCCEEDED", done=True, response=response)
    assert succeeded.results == results
    assert succeeded.phase is (JobPhase.ENDED if results else JobPhase.PENDING)
    mirrored = status("BATCH_STATE_SUCCEEDED", {"output": response}, done=True)
    assert mirrored.results == results


@pytest.mark.parametrize(
    ("stats", "counts"),
    [
        ({"requestCount": "3", "successfulRequestCount": "2"}, RequestCounts(3, 2, 0)),
        ({"requestCount": 3, "failedRequestCount": 3}, RequestCounts(3, 0, 3)),
        ({"request_count": "9007199254740993"}, RequestCounts(9007199254740993, 0, 0)),
        ({"requestCount": "-1"}, RequestCounts(0, 0, 0)),
        ({}, RequestCounts(0, 0, 0)),
        ("odd", RequestCounts()),
        (None, RequestCounts()),
    ],
)
def test_counts_are_strings_and_zeros_are_left_out(stats, counts):
    assert status("BATCH_STATE_RUNNING", {"batchStats": stats}).counts == counts


def test_times():
    end = {"endTime": "2026-03-01T13:00:00.987654321Z"}
    reading = status("BATCH_STATE_SUCCEEDED", end, done=True, response=FILE)
    assert reading.ended_at == datetime(2026, 3, 1, 13, 0, 0, 987654, tzinfo=UTC)
    assert reading.expires_at == datetime(2026, 3, 3, 12, 0, 0, 123456, tzinfo=UTC)
    assert status("BATCH_STATE_RUNNING", end).ended_at is None
    assert status("BATCH_STATE_RUNNING", {"createTime": "soon"}).expires_at is None


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        ({"code": 8, "message": "quota"}, "8", FailureKind.TRANSPORT),
        ({"code": 14, "status": "UNAVAILABLE"}, "UNAVAILABLE", FailureKind.TRANSPORT),
        ({"code": 13}, "13", FailureKind.TRANSPORT),
        ({"code": 3}, "3", FailureKind.REJECTED),
        ({"code": 5}, "5", FailureKind.REJECTED),
        ({"code": 7}, "7", FailureKind.ACCOUNT),
        ({"code": 16}, "16", FailureKind.ACCOUNT),
        ({"code": 429}, "429", FailureKind.TRANSPORT),
        ({"code": 402}, "402", FailureKind.ACCOUNT),
        ({"code": 400}, "400", FailureKind.REJECTED),
        ({"message": "no code"}, None, FailureKind.MODEL),
        (None, None, FailureKind.MODEL),
        ("text", None, FailureKind.MODEL),
    ],
)
def test_why_a_batch_failed(error, code, kind):
    reading = status("BATCH_STATE_FAILED", done=True, error=error)
    assert (reading.phase, reading.error_code) == (JobPhase.FAILED, code)
    assert reading.failure_kind is kind


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("{}", []),
        ('{"operations": []}', []),
        ('{"operations": [{"name": "batches/1", "surprise": 1}]}', ["batches/1"]),
        ('{"operations": [], "unreachable": []}', []),
    ],
)
def test_a_page_of_the_list(body, names):
    page = OperationPage.model_validate_json(body)
    assert [one.name for one in page.operations] == names


@pytest.mark.parametrize(
    "body",
    [
        '{"id": "x"}',
        '{"error": {}}',
        '{"operations": [{}]}',
        '{"operations": null}',
        '{"operations": [], "unreachable": ["europe"]}',
        "[]",
    ],
)
def test_what_is_no_whole_page_proves_no_absence(body):
    with pytest.raises(ValueError, match="validation"):
        OperationPage.model_validate_json(body)


def line(**fields: Any) -> bytes:
    return json.dumps({"key": "job-doc"} | fields).encode()


def served(*parts: Any, finish: str | None = "STOP", **fields: Any) -> bytes:
    response = {
        "candidates": [
            {"content": {"parts": list(parts), "role": "model"}, "finishReason": finish, "index": 0}
        ],
        "usageMetadata": {
            "promptTokenCount": 11,
            "candidatesTokenCount": 5,
            "thoughtsTokenCount": 30,
            "totalTokenCount": 46,
        },
        "modelVersion": "some-model-001",
        "responseId": "abc",
    }
    return line(response=response | fields)


def failed(code: Any, **fields: Any) -> bytes:
    return line(error={"code": code} | fields)


TEXT = {"text": "{}"}
THOUGHT = {"text": "Hm.", "thought": True}
SHAPES = [
    ("completed", served({"text": '{"title":null}'}), "completed", '{"title":null}'),
    ("parts", served({"text": "{"}, {"text": "}"}), "completed", "{}"),
    ("thoughts aside", served(THOUGHT, TEXT), "completed", "{}"),
    ("no finish reason", served(TEXT, finish=None), "completed", "{}"),
    ("unspecified finish reason", served(TEXT, finish="NEW_REASON"), "completed", "{}"),
    ("snake case", line(response={"candidates": [{"content": {"parts": [TEXT]},
     "finish_reason": "MAX_TOKENS"}]}), "truncated", "{}"),
    ("max tokens", served({"text": '{"ti'}, finish="MAX_TOKENS"), "truncated", '{"ti'),
    ("max tokens, thoughts only", served(THOUGHT, finish="MAX_TOKENS"), "truncated", None),
    ("safety", served(finish="SAFETY"), "blocked", None),
    ("recitation", served({"text": "{"}, finish="RECITATION"), "blocked", "{"),
    ("prohibited", served(finish="PROHIBITED_CONTENT"), "blocked", None),
    ("personal data", served(finish="SPII"), "blocked", None),
    ("other", served(TEXT, finish="OTHER"), "errored", "{}"),
    ("prompt blocked", served(candidates=None, promptFeedback={"blockReason": "SAFETY"}),
     "blocked", None),
    ("prompt blocked, list empty", served(candidates=[], promptFeedback={"blockReason": "OTHER"}),
     "blocked", None),
    ("no candidates", served(candidates=[]), "empty", None),
    ("nothing in the response", line(response={}), "empty", None),
    ("only thoughts", served(THOUGHT), "empty", None),
    ("blank", served({"text": " \n"}), "empty", " \n"),
    ("no parts", served(candidates=[{"content": {"role": "model"}, "finishReason": "STOP"}]),
     "empty", None),
    ("error empty beside an answer", line(response={"candidates": [{"content": {"parts": [TEXT]}}]},
     error={}), "completed", "{}"),
    ("unserved after a cancel", failed(1), "cancelled", None),
    ("bad request", failed(3, message="m"), "rejected", None),
    ("no such model", failed(5), "rejected", None),
    ("permission", failed(7), "account", None),
    ("key", failed(16), "account", None),
    ("billing", failed(9), "account", None),
    ("exhausted", failed(8), "errored", None),
    ("deadline", failed(4), "errored", None),
    ("internal", failed(13), "errored", None),
    ("unavailable", failed(14), "errored", None),
    ("http 400", failed(400), "rejected", None),
    ("http 402", failed(402, status="RESOURCE_EXHAUSTED"), "account", None),
    ("http 429", failed(429, status="RESOURCE_EXHAUSTED"), "errored", None),
    ("http 503", failed(503), "errored", None),
    ("code as text", failed("3"), "rejected", None),
    ("no code", line(error={"message": "m"}), "errored", None),
    ("error text", line(error="oops"), "errored", None),
    ("neither", line(), "errored", None),
    ("inline", json.dumps({"metadata": {"key": "job-doc"}, "error": {"code": 1}}).encode(),
     "cancelled", None),
    ("key twice the same", line(metadata={"key": "job-doc"}, error={"code": 1}), "cancelled", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("result_line", "outcome", "said"), [s[1:] for s in SHAPES], ids=[s[0] for s in SHAPES]
)
def test_result_shapes(result_line, outcome, said):
    decoded = decode_result(result_line)
    assert (decoded.custom_id, decoded.outcome, decoded.text) == ("job-doc", outcome, said)


def test_what_a_result_tells_of_itself():
    decoded = decode_result(served(TEXT))
    assert (decoded.request_id, decoded.model) == ("abc", "some-model-001")
    assert (decoded.usage.input_tokens, decoded.usage.output_tokens) == (11, 35)
    few = decode_result(served(usageMetadata={"promptTokenCount": 4}))
    assert (few.usage.input_tokens, few.usage.output_tokens) == (4, 0)
    none = decode_result(served(usageMetadata=None))
    assert (none.usage.input_tokens, none.usage.output_tokens) == (None, None)
    refused = decode_result(failed(3, message="Jane Doe"))
    assert (refused.error_code, refused.error_message) == ("3", "Jane Doe")
    assert "Jane Doe" not in repr(refused)


@pytest.mark.parametrize(
    "result_line",
    [
        *(b"", b"{", b"[]", b"null", b"\xff", b"{}"),
        b'{"response": {"candidates": []}}',
        b'{"key": "", "response": {}}',
        b'{"key": 7, "response": {}}',
        b'{"key": "a", "key": "b", "response": {}}',
        b'{"key": "a", "metadata": {"key": "b"}, "response": {}}',
        b'{"metadata": {"key": null}, "response": {}}',
        served(TEXT)[:-9],
    ],
)
def test_a_result_that_names_no_request_is_undecodable_and_not_quoted(result_line):
    with pytest.raises(UndecodableResult, match="cannot be read") as caught:
        decode_result(result_line)
    assert "Jane" not in str(caught.value)


def body(status: str | None, *details: Any, code: int = 400) -> bytes:
    error = {"code": code, "message": "m", "status": status, "details": list(details)}
    return json.dumps({"error": error}).encode()


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
BAD_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
ACCOUNT = FailureKind.ACCOUNT


@pytest.mark.parametrize(
    ("said", "code", "kind", "retry_after"),
    [
        (body("INVALID_ARGUMENT"), "INVALID_ARGUMENT", None, None),
        (body("INVALID_ARGUMENT", BAD_KEY), "INVALID_ARGUMENT", ACCOUNT, None),
        (body("FAILED_PRECONDITION"), "FAILED_PRECONDITION", ACCOUNT, None),
        (body("PERMISSION_DENIED"), "PERMISSION_DENIED", ACCOUNT, None),
        (body("UNAUTHENTICATED"), "UNAUTHENTICATED", ACCOUNT, None),
        (body("NOT_FOUND"), "NOT_FOUND", None, None),
        (body("RESOURCE_EXHAUSTED", RETRY), "RESOURCE_EXHAUSTED", None, 34.5),
        (body("RESOURCE_EXHAUSTED", {}, {"retryDelay": "soon"}), "RESOURCE_EXHAUSTED", None, None),
        (body("UNAVAILABLE"), "UNAVAILABLE", None, None),
        (body(None), None, None, None),
        (b'{"error": "text"}', None, None, None),
        (b"<html>", None, None, None),
        (b"[]", None, None, None),
    ],
)
def test_what_an_error_body_says(said, code, kind, retry_after):
    reading = read_error(400, {}, said)
    assert (reading.code, reading.kind, reading.retry_after) == (code, kind, retry_after)


JSON = json_with(
    "candidates content parts text thought finishReason promptFeedback blockReason "
    "usageMetadata promptTokenCount code message modelVersion"
)


@given(JSON, JSON)
def test_any_json_beside_a_key_is_decoded_to_some_outcome(response, error):
    assert_has_an_outcome(decode_result(line(response=response, error=error)))
