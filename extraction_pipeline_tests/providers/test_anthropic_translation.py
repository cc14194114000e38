"""Anthropic's wire format, as pure functions: batches, result lines and error bodies."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from extraction_pipeline.providers.anthropic_translation import (
    decode_result,
    job_status,
    read_error,
    total_count,
)
from extraction_pipeline.providers.anthropic_wire import WireBatch
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
from extraction_pipeline_tests.providers.any_json import assert_has_an_outcome, json_with

CALL = CallRecord(200, "req_1")
URL = "https://elsewhere.example/v1/messages/batches/msgbatch_1/results"


def batch(state: str, **fields: Any) -> WireBatch:
    body = {
        "id": "msgbatch_1",
        "type": "message_batch",
        "processing_status": state,
        "request_counts": counts(processing=3),
        "created_at": "2026-03-01T12:00:00.100435Z",
        "expires_at": "2026-03-02T12:00:00.100435+00:00",
        "ended_at": None,
        "cancel_initiated_at": None,
        "archived_at": None,
        "results_url": None,
    }
    return WireBatch.model_validate_json(json.dumps(body | fields))


def counts(**given: int) -> dict[str, int]:
    names = ("processing", "succeeded", "errored", "canceled", "expired")
    return dict.fromkeys(names, 0) | given


def status(state: str, **fields: Any) -> JobStatus:
    return job_status(batch(state, **fields), CALL)


@pytest.mark.parametrize(
    ("state", "fields", "phase"),
    [
        ("in_progress", {}, JobPhase.PENDING),
        ("canceling", {}, JobPhase.PENDING),
        ("resting", {"results_url": URL}, JobPhase.PENDING),
        ("ended", {"request_counts": counts(succeeded=3)}, JobPhase.ENDED),
        ("ended", {"request_counts": counts(errored=3)}, JobPhase.ENDED),
        ("ended", {"request_counts": counts(canceled=3)}, JobPhase.CANCELLED),
        ("ended", {"request_counts": counts(expired=3)}, JobPhase.EXPIRED),
        ("ended", {"request_counts": counts(canceled=2, succeeded=1)}, JobPhase.ENDED),
        ("ended", {"request_counts": counts(expired=2, succeeded=1)}, JobPhase.ENDED),
        ("ended", {"request_counts": counts(expired=2, canceled=1)}, JobPhase.ENDED),
        ("ended", {"request_counts": counts()}, JobPhase.ENDED),
        ("ended", {"request_counts": None}, JobPhase.ENDED),
        ("ended", {"request_counts": {"canceled": 3}}, JobPhase.CANCELLED),
        ("ended", {"request_counts": {"expired": "3", "canceled": "0"}}, JobPhase.EXPIRED),
        ("ended", {"request_counts": {"expired": "2", "succeeded": "1"}}, JobPhase.ENDED),
        ("ended", {"request_counts": {"expired": None, "canceled": "3"}}, JobPhase.CANCELLED),
    ],
)
def test_states_and_what_the_counts_tell_of_the_one_end(state, fields, phase):
    reading = status(state, **{"results_url": URL} | fields)
    assert (reading.phase, reading.provider_state) == (phase, state)
    assert reading.failure_kind is None
    expected = (ResultReference(ResultKind.OUTPUT, "msgbatch_1"),) if phase.is_end else ()
    assert reading.results == expected


def test_an_end_without_results_is_no_end_until_they_are_there_or_archived():
    done = counts(succeeded=3)
    assert status("ended", request_counts=done).phase is JobPhase.PENDING
    assert status("ended", request_counts=done, results_url="").phase is JobPhase.PENDING
    archived = status("ended", request_counts=done, archived_at="2026-04-01T00:00:00Z")
    assert (archived.phase, archived.results) == (JobPhase.ENDED, ())
    nothing = status("ended", request_counts=counts(canceled=3))
    assert (nothing.phase, nothing.results) == (JobPhase.CANCELLED, ())


def test_counts_and_times():
    reading = status(
        "ended",
        request_counts=counts(succeeded=4, errored=1, expired=2),
        ended_at="2026-03-01T13:00:00+00:00",
        results_url=URL,
    )
    assert reading.counts == RequestCounts(total=7, completed=4, failed=3)
    assert reading.ended_at == datetime(2026, 3, 1, 13, tzinfo=UTC)
    assert reading.expires_at == datetime(2026, 3, 2, 12, 0, 0, 100435, tzinfo=UTC)
    running = status("in_progress", ended_at="2026-03-01T13:00:00Z")
    assert (running.counts, running.ended_at) == (RequestCounts(3, 0, 0), None)
    odd = batch("in_progress", request_counts={"processing": -1}, created_at="yesterday")
    assert (total_count(odd), odd.created_at) == (None, None)
    assert batch("ended", created_at="2026-03-01T12:00:00").created_at == datetime(
        2026, 3, 1, 12, tzinfo=UTC
    )


def line(result: Any, **fields: Any) -> bytes:
    return json.dumps({"custom_id": "job-doc", "result": result} | fields).encode()


def succeeded(*content: Any, stop: str | None = "end_turn", **fields: Any) -> bytes:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "some-model-2026",
        "content": list(content),
        "stop_reason": stop,
        "usage": {"input_tokens": 11, "output_tokens": 5, "service_tier": "batch"},
    }
    return line({"type": "succeeded", "message": message | fields})


def text(value: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, "citations": None}


def errored(kind: str | None, message: str = "Jane Doe", request_id: str | None = "req_7") -> bytes:
    error = {"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id}
    return line({"type": "errored", "error": error})


THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
TOOL = {"type": "tool_use", "id": "t", "name": "note", "input": {"title": "é"}}
REFUSAL = {"type": "refusal", "category": "bio", "explanation": "Not this."}
CREDIT = "Your credit balance is too low to access the API."
LIMIT = "You have reached your specified API usage limits."
SHAPES = [
    ("completed", succeeded(text('{"title":null}')), "completed", '{"title":null}'),
    ("parts", succeeded(text("{"), text("}")), "completed", "{}"),
    ("thinking aside", succeeded(THINKING, text("{}")), "completed", "{}"),
    ("other blocks aside", succeeded({"type": "note", "text": "x"}, text("{}")), "completed", "{}"),
    ("stop sequence", succeeded(text("{}"), stop="stop_sequence"), "completed", "{}"),
    ("no stop reason", succeeded(text("{}"), stop=None), "completed", "{}"),
    ("unknown stop reason", succeeded(text("{}"), stop="tired"), "completed", "{}"),
    ("tool", succeeded(TOOL, stop="tool_use"), "completed", '{"title": "\\u00e9"}'),
    ("tool beside text", succeeded(text("Here:"), TOOL), "completed", '{"title": "\\u00e9"}'),
    ("tool cut", succeeded(TOOL, stop="max_tokens"), "truncated", '{"title": "\\u00e9"}'),
    ("refusal", succeeded(text("No."), stop="refusal"), "refused", "No."),
    ("refusal told apart", succeeded(stop="refusal", stop_details=REFUSAL), "refused", "Not this."),
    ("refusal without a word", succeeded(stop="refusal"), "refused", None),
    ("max tokens", succeeded(text('{"ti'), stop="max_tokens"), "truncated", '{"ti'),
    ("window", succeeded(stop="model_context_window_exceeded"), "truncated", None),
    ("paused", succeeded(text("{"), stop="pause_turn"), "errored", "{"),
    ("no content", succeeded(), "empty", None),
    ("blank", succeeded(text(" \n")), "empty", " \n"),
    ("only thinking", succeeded(THINKING), "empty", None),
    ("text a number", succeeded(text(7)), "empty", None),
    ("content null", succeeded(content=None), "empty", None),
    ("no message", line({"type": "succeeded"}), "errored", None),
    ("canceled", line({"type": "canceled"}), "cancelled", None),
    ("expired", line({"type": "expired"}), "expired", None),
    ("unknown type", line({"type": "lost"}), "errored", None),
    ("no result", line(None), "errored", None),
    ("result text", line("oops"), "errored", None),
    ("invalid request", errored("invalid_request_error"), "rejected", None),
    ("no such model", errored("not_found_error"), "rejected", None),
    ("too large", errored("request_too_large"), "rejected", None),
    ("credit", errored("invalid_request_error", CREDIT), "account", None),
    ("limit of spending", errored("invalid_request_error", LIMIT), "account", None),
    ("billing", errored("billing_error"), "account", None),
    ("key", errored("authentication_error"), "account", None),
    ("permission", errored("permission_error"), "account", None),
    ("rate", errored("rate_limit_error"), "errored", None),
    ("overloaded", errored("overloaded_error"), "errored", None),
    ("internal", errored("api_error"), "errored", None),
    ("timeout", errored("timeout_error"), "errored", None),
    ("error without type", errored(None), "errored", None),
    (
        "error nested once",
        line({"type": "errored", "error": {"type": "invalid_request_error", "message": "m"}}),
        "rejected",
        None,
    ),
    ("error missing", line({"type": "errored"}), "errored", None),
]


@pytest.mark.parametrize(
    ("result_line", "outcome", "said"), [s[1:] for s in SHAPES], ids=[s[0] for s in SHAPES]
)
def test_result_shapes(result_line, outcome, said):
    decoded = decode_result(result_line)
    assert (decoded.custom_id, decoded.outcome, decoded.text) == ("job-doc", outcome, said)


def test_what_a_result_tells_of_itself():
    decoded = decode_result(succeeded(text("{}")))
    assert (decoded.request_id, decoded.model) == ("msg_1", "some-model-2026")
    assert (decoded.usage.input_tokens, decoded.usage.output_tokens) == (11, 5)
    refused = decode_result(errored("overloaded_error"))
    assert (refused.request_id, refused.error_code) == ("req_7", "overloaded_error")
    assert refused.error_message == "Jane Doe" and "Jane Doe" not in repr(refused)


def test_tokens_of_a_cache_are_part_of_the_input():
    usage = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 100,
        "output_tokens": 9,
    }
    decoded = decode_result(succeeded(text("{}"), usage=usage))
    assert (decoded.usage.input_tokens, decoded.usage.output_tokens) == (123, 9)
    odd = decode_result(succeeded(text("{}"), usage={"input_tokens": "many"}))
    assert (odd.usage.input_tokens, odd.usage.output_tokens) == (None, None)


@pytest.mark.parametrize(
    "result_line",
    [
        *(b"", b"{", b"[]", b"null", b"\xff", b"{}"),
        b'{"custom_id": ""}',
        b'{"custom_id": 7, "result": {"type": "expired"}}',
        b'{"custom_id": "a", "custom_id": "b", "result": {"type": "expired"}}',
        succeeded(text("{}"))[:-9],
    ],
)
def test_a_line_that_names_no_request_is_undecodable_and_not_quoted(result_line):
    with pytest.raises(UndecodableResult, match="cannot be read") as caught:
        decode_result(result_line)
    assert caught.value.__suppress_context__


def test_broken_unicode_and_line_separators_in_an_answer():
    raw = succeeded(text("@")).replace(b"@", "a\u2028b".encode())
    assert decode_result(raw).text == "a\u2028b"
    assert decode_result(succeeded(text("x\ud83dy"))).text == "x\ufffdy"


def error_body(kind: str | None, message: str = "m") -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


RETRY = {"retry-after": "30"}
ACCOUNT = FailureKind.ACCOUNT


@pytest.mark.parametrize(
    ("http", "headers", "body", "code", "kind"),
    [
        (400, {}, error_body("invalid_request_error"), "invalid_request_error", None),
        (400, {}, error_body("invalid_request_error", CREDIT), "invalid_request_error", ACCOUNT),
        (400, {}, error_body("invalid_request_error", LIMIT), "invalid_request_error", ACCOUNT),
        (401, {}, error_body("authentication_error"), "authentication_error", ACCOUNT),
        (402, {}, error_body("billing_error"), "billing_error", ACCOUNT),
        (403, {}, error_body("permission_error"), "permission_error", ACCOUNT),
        (404, {}, error_body("not_found_error"), "not_found_error", None),
        (413, {}, error_body("request_too_large"), "request_too_large", None),
        (429, RETRY, error_body("rate_limit_error"), "rate_limit_error", None),
        (429, {}, error_body("rate_limit_error"), "rate_limit_error", ACCOUNT),
        (429, {}, b"<html>", None, None),
        (500, {}, error_body("api_error"), "api_error", None),
        (529, {}, error_body("overloaded_error"), "overloaded_error", None),
        (413, {}, b"", None, None),
        (500, {}, b'{"error": "text"}', None, None),
        (500, {}, b"[]", None, None),
    ],
)
def test_what_an_error_body_says(http, headers, body, code, kind):
    reading = read_error(http, headers, body)
    assert (reading.code, reading.kind) == (code, kind)


JSON = json_with(
    "type message error content text input stop_reason usage input_tokens stop_details "
    "explanation id model",
    "succeeded errored canceled expired text tool_use refusal",
)


@given(JSON)
def test_any_json_beside_a_custom_id_is_decoded_to_some_outcome(result):
    assert_has_an_outcome(decode_result(line(result)))
