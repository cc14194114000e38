"""Infrai's wire format, as pure functions: states, items, ids that are echoed, errors."""

import json
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
from extraction_pipeline.providers.infrai_translation import (
    ECHO,
    decode_result,
    encode_request,
    job_status,
    read_error,
    request_id_within,
    status_within,
)
from extraction_pipeline.providers.infrai_wire import WireJob, read_data, read_items
from extraction_pipeline_tests.providers.any_json import assert_has_an_outcome, json_with
from extraction_pipeline_tests.providers.sample_request import (
    CUSTOM_ID,
    SCHEMA,
    sample_request,
)

CALL = CallRecord(200, None)
SERVED = (ResultReference(ResultKind.OUTPUT, "b1"),)


def envelope(data: Any = None, **fields: Any) -> bytes:
    body = {"ok": True, "data": data, "error": None, "metadata": {"request_id": "0192-r"}}
    return json.dumps(body | fields).encode()


def status(**fields: Any) -> JobStatus:
    return job_status("b1", read_data(envelope(fields), WireJob), CALL)


@pytest.mark.parametrize("spelling", ["state", "status"])
@pytest.mark.parametrize(
    ("state", "counts", "phase", "results"),
    [
        ("queued", {}, JobPhase.PENDING, ()),
        ("processing", {}, JobPhase.PENDING, ()),
        ("cancelling", {}, JobPhase.PENDING, ()),
        ("something new", {"completed_count": 3}, JobPhase.PENDING, ()),
        ("completed", {}, JobPhase.ENDED, SERVED),
        ("complete", {}, JobPhase.ENDED, SERVED),
        ("COMPLETED", {}, JobPhase.ENDED, SERVED),
        ("completed", {"completed_count": 0, "failed_count": 3}, JobPhase.ENDED, SERVED),
        ("completed_with_errors", {}, JobPhase.ENDED, SERVED),
        ("failed", {}, JobPhase.FAILED, ()),
        ("failed", {"completed_count": 0}, JobPhase.FAILED, ()),
        ("failed", {"completed_count": 1}, JobPhase.ENDED, SERVED),
        ("cancelled", {"completed_count": 1}, JobPhase.CANCELLED, SERVED),
        ("canceled", {"completed": 0}, JobPhase.CANCELLED, ()),
        ("cancelled", {}, JobPhase.CANCELLED, SERVED),
        ("expired", {"completed_count": 0}, JobPhase.EXPIRED, ()),
        ("timed_out", {"completed_count": 2}, JobPhase.EXPIRED, SERVED),
    ],
)
def test_states_in_every_spelling(spelling, state, counts, phase, results):
    reading = status(**{spelling: state}, **counts)
    assert (reading.phase, reading.provider_state, reading.results) == (phase, state, results)
    assert (reading.failure_kind is not None) == (phase is JobPhase.FAILED)
    assert reading.job_id == "b1"


def test_counts_in_every_spelling():
    one = status(state="x", total_count=3, completed_count=2, failed_count=1)
    other = status(state="x", total="3", completed=2, failed=1)
    assert one.counts == other.counts == RequestCounts(3, 2, 1)
    assert status(state="x", total_count=-1, completed_count=None).counts == RequestCounts()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "INSUFFICIENT_CREDIT"}, FailureKind.ACCOUNT),
        ({"code": "VALIDATION_ERROR"}, FailureKind.REJECTED),
        ({"code": "VALIDATION_ERROR", "retryable": True}, FailureKind.TRANSPORT),
        ({"code": "RATE_LIMITED"}, FailureKind.TRANSPORT),
        ({"code": "SOMETHING"}, FailureKind.TRANSPORT),
        ({"message": "m"}, FailureKind.MODEL),
        (None, FailureKind.MODEL),
        ("text", FailureKind.MODEL),
    ],
)
def test_why_a_batch_failed(error, kind):
    assert status(state="failed", error=error).failure_kind is kind


@pytest.mark.parametrize("body", [b"", b"<html>", b"null", b"{}", envelope({}), envelope([])])
def test_what_is_no_batch_is_not_read_as_one(body):
    with pytest.raises(ValueError, match=r"."):
        read_data(body, WireJob)


ITEM = {"custom_id": CUSTOM_ID, "ok": True}


@pytest.mark.parametrize(
    "data",
    [{"items": [ITEM, 7]}, {"results": [ITEM, 7]}, {"responses": [ITEM, 7]}, [ITEM, 7]],
)
def test_items_are_read_as_they_are_wherever_they_lie(data):
    assert read_items(envelope(data)) == [ITEM, 7]
    assert read_items(json.dumps(data).encode()) == [ITEM, 7]


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        {"items": {}},
        "text",
        {"items": [ITEM], "has_more": True},
        {"items": [ITEM], "next_cursor": "c"},
    ],
)
def test_what_is_not_the_whole_of_the_results_is_not_taken_for_it(data):
    with pytest.raises(ValueError, match="results"):
        read_items(envelope(data))


def chat(content: Any, finish: str | None = "stop", **fields: Any) -> dict[str, Any]:
    return {
        "content": content,
        "finish_reason": finish,
        "usage": {"prompt_tokens": 11, "completion_tokens": 5},
        "model": "some-model-1",
        "id": "chat-1",
    } | fields


def completion(content: Any, finish: str | None = "stop", **message: Any) -> dict[str, Any]:
    return {
        "id": "chat-1",
        "model": "some-model-1",
        "choices": [
            {
                "finish_reason": finish,
                "message": {"role": "assistant", "content": content} | message,
            }
        ],
        "usage": {"input_tokens": 11, "output_tokens": 5},
    }


def item(**fields: Any) -> bytes:
    return json.dumps({"custom_id": CUSTOM_ID, "ok": True} | fields).encode()


SHAPES = [
    ("flat", item(result=chat("{}")), "completed", "{}"),
    ("completion", item(result=completion("{}")), "completed", "{}"),
    ("in an envelope", item(result={"ok": True, "data": chat("{}")}), "completed", "{}"),
    ("in an HTTP answer", item(response={"status_code": 200, "body": completion("{}")}),
     "completed", "{}"),
    ("under data", item(data=chat("{}")), "completed", "{}"),
    ("under body", item(body=completion("{}")), "completed", "{}"),
    ("just text", item(result="{}"), "completed", "{}"),
    ("no ok", json.dumps({"custom_id": CUSTOM_ID, "result": chat("{}")}).encode(),
     "completed", "{}"),
    ("status completed", item(status="completed", result=chat("{}")), "completed", "{}"),
    ("error null", item(result=chat("{}"), error=None), "completed", "{}"),
    ("error empty", item(result=chat("{}"), error={}), "completed", "{}"),
    ("length", item(result=chat('{"ti', "length")), "truncated", '{"ti'),
    ("length in a completion", item(result=completion(None, "length")), "truncated", None),
    ("filter", item(result=chat(None, "content_filter")), "blocked", None),
    ("refusal", item(result=completion(None, refusal="No.")), "refused", "No."),
    ("refusal as finish", item(result=chat("No.", "refusal")), "refused", "No."),
    ("error as finish", item(result=chat("{", "error")), "errored", "{"),
    ("empty", item(result=chat("")), "empty", ""),
    ("no content", item(result=chat(None)), "empty", None),
    ("no result", item(), "empty", None),
    ("result a number", item(result=7), "empty", None),
    ("no message", item(result={"choices": [{"finish_reason": "stop"}]}), "empty", None),
    ("not ok", item(ok=False), "errored", None),
    ("not ok beside a result", item(ok=False, result=chat("{}")), "errored", None),
    ("status failed", item(status="failed"), "errored", None),
    ("credit", item(ok=False, error={"code": "INSUFFICIENT_CREDIT"}), "account", None),
    ("invalid", item(ok=False, error={"code": "VALIDATION_ERROR"}), "rejected", None),
    ("invalid and retryable", item(ok=False, error={"code": "VALIDATION_ERROR",
     "retryable": True}), "errored", None),
    ("rate", item(ok=False, error={"code": "RATE_LIMITED"}), "errored", None),
    ("unknown code", item(ok=False, error={"code": "WHATEVER"}), "errored", None),
    ("unknown code with 400", item(ok=False, status_code=400, error={"code": "X"}),
     "rejected", None),
    ("401 alone", item(status_code=401), "account", None),
    ("500 alone", item(status_code=500), "errored", None),
    ("timeout", item(ok=False, error={"code": "BATCH_TIMEOUT"}), "expired", None),
    ("state expired", item(state="expired", ok=False), "expired", None),
    ("state cancelled", item(state="cancelled", ok=False), "cancelled", None),
    ("code cancelled", item(ok=False, error={"code": "CANCELLED"}), "cancelled", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "outcome", "said"), [s[1:] for s in SHAPES], ids=[s[0] for s in SHAPES]
)
def test_item_shapes(line, outcome, said):
    decoded = decode_result(line)
    assert (decoded.custom_id, decoded.outcome, decoded.text) == (CUSTOM_ID, outcome, said)


@pytest.mark.parametrize("result", [chat("{}"), completion("{}")])
def test_what_an_item_tells_of_itself(result):
    decoded = decode_result(item(result=result))
    assert (decoded.request_id, decoded.model) == ("chat-1", "some-model-1")
    assert (decoded.usage.input_tokens, decoded.usage.output_tokens) == (11, 5)
    failed = decode_result(item(ok=False, error={"code": "X", "message": "Jane Doe"}))
    assert (failed.error_code, failed.error_message) == ("X", "Jane Doe")
    assert "Jane Doe" not in repr(failed)


def echo(custom_id: str = CUSTOM_ID, **fields: Any) -> str:
    return json.dumps({ECHO: custom_id, "title": None} | fields)


NAMED_BY = {
    "item": {"custom_id": CUSTOM_ID, "result": chat("{}")},
    "item's metadata": {"metadata": {"custom_id": CUSTOM_ID}, "result": chat("{}")},
    "request": {"request": {"custom_id": CUSTOM_ID}, "result": chat("{}")},
    "request's metadata": {"request": {"metadata": {"custom_id": CUSTOM_ID}}, "result": chat("{}")},
    "body's metadata": {"body": {"metadata": {"custom_id": CUSTOM_ID}}, "result": chat("{}")},
    "answer's metadata": {"result": chat("{}", metadata={"custom_id": CUSTOM_ID})},
    "answer itself": {"index": 4, "result": chat(echo())},
    "answer and item": {"custom_id": CUSTOM_ID, "result": completion(echo())},
    "item, answer cut": {"custom_id": CUSTOM_ID, "result": chat(echo()[:-5], "length")},
    "item, answer without it": {"custom_id": CUSTOM_ID, "result": chat('{"title": null}')},
    "item, echo no id": {"custom_id": CUSTOM_ID, "result": chat(echo("the document's"))},
    "item, echo a number": {"custom_id": CUSTOM_ID, "result": chat(json.dumps({ECHO: 7}))},
}


@pytest.mark.parametrize("named", NAMED_BY.values(), ids=NAMED_BY)
def test_an_item_is_joined_by_an_echoed_id_wherever_it_is(named):
    assert decode_result(json.dumps(named).encode()).custom_id == CUSTOM_ID


OTHER = CUSTOM_ID[:-1] + "0"
NAMELESS = {
    "only a position": {"index": 0, "ok": True, "result": chat("{}")},
    "a failure at a position": {"index": 0, "ok": False, "error": {"code": "X"}},
    "an answer cut": {"index": 0, "result": chat(echo()[:-5], "length")},
    "ids that disagree": {"custom_id": OTHER, "result": chat(echo())},
    "echoes that disagree": {"custom_id": CUSTOM_ID, "metadata": {"custom_id": OTHER}},
    "a blank id": {"custom_id": "", "result": chat("{}")},
}


@pytest.mark.parametrize("nameless", NAMELESS.values(), ids=NAMELESS)
def test_an_item_without_one_id_names_nothing(nameless):
    with pytest.raises(UndecodableResult, match="no request, or two"):
        decode_result(json.dumps(nameless).encode())


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"7", b"\xff", item()[:-3]])
def test_what_is_no_item_is_undecodable(line):
    with pytest.raises(UndecodableResult, match="cannot be read"):
        decode_result(line)


def test_the_echo_is_asked_for_and_taken_out_again():
    line = json.loads(encode_request(sample_request(), "ai.chat"))
    schema = line["body"]["response_format"]["json_schema"]["schema"]
    assert schema["required"] == [ECHO, *SCHEMA["required"]]
    assert CUSTOM_ID in line["body"]["messages"][0]["content"]
    assert CUSTOM_ID not in line["body"]["messages"][1]["content"]
    decoded = decode_result(item(result=chat(echo(title="é"))))
    assert json.loads(decoded.text or "") == {"title": "é"}


def test_the_request_is_canonical_json():
    line = encode_request(sample_request(parameters={"z": 1, "a": {"y": 1, "b": 2}}), "ai.chat")
    value = json.loads(line)
    again = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert line.decode() == again


@pytest.mark.parametrize(
    ("http", "body", "meant"),
    [
        (200, envelope({}), 200),
        (200, envelope({}, ok=False, error={"code": "INSUFFICIENT_CREDIT"}), 402),
        (200, envelope({}, ok=False, error={"code": "insufficient_credit"}), 402),
        (200, envelope({}, ok=False, error={"code": "IDEMPOTENCY_CONFLICT"}), 409),
        (200, envelope({}, ok=False, error={"code": "NOT_FOUND"}), 404),
        (200, envelope({}, ok=False, error={"code": "WHO_KNOWS"}), 500),
        (200, envelope({}, ok=False), 500),
        (200, b'{"batch_id": "b1"}', 200),
        (200, b"<html>", 200),
        (404, envelope({}, ok=False, error={"code": "INSUFFICIENT_CREDIT"}), 404),
    ],
)
def test_the_status_that_an_answer_means(http, body, meant):
    assert status_within(http, body) == meant


@pytest.mark.parametrize(
    ("http", "error", "code", "kind", "wish"),
    [
        (402, {"code": "INSUFFICIENT_CREDIT"}, "INSUFFICIENT_CREDIT", "account", None),
        (400, {"code": "INSUFFICIENT_CREDIT"}, "INSUFFICIENT_CREDIT", "account", None),
        (401, {"code": "X"}, "X", "account", None),
        (400, {"code": "VALIDATION_ERROR"}, "VALIDATION_ERROR", "rejected", None),
        (400, {"code": "X", "retryable": True}, "X", "transport", None),
        (402, {"code": "X", "retryable": True}, "X", "account", None),
        (429, {"code": "RATE_LIMITED", "retry_after": 7}, "RATE_LIMITED", "transport", 7.0),
        (429, {"code": "RATE_LIMITED", "retry_after": -7}, "RATE_LIMITED", "transport", None),
        (500, {"type": "internal"}, "internal", "transport", None),
        (409, {"code": "IDEMPOTENCY_CONFLICT"}, "IDEMPOTENCY_CONFLICT", "transport", None),
    ],
)
def test_what_an_error_says(http, error, code, kind, wish):
    reading = read_error(http, {}, envelope(None, ok=False, error=error))
    assert (reading.code, reading.kind, reading.retry_after) == (code, kind, wish)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", envelope(None), b'{"ok": false}'])
def test_a_body_without_an_error_says_nothing(body):
    reading = read_error(500, {}, body)
    assert (reading.code, reading.kind) == (None, None)


def test_the_request_id_is_in_the_envelope():
    assert request_id_within(envelope({})) == "0192-r"
    assert request_id_within(envelope({}, metadata=None)) is None
    assert request_id_within(b"<html>") is None


JSON = json_with(
    "ok result error data body content choices message finish_reason code usage "
    "prompt_tokens status status_code metadata model refusal"
)


@given(JSON, JSON)
def test_any_json_beside_an_id_is_decoded_to_some_outcome(result, error):
    assert_has_an_outcome(decode_result(item(result=result, error=error)))
