"""What a line of an OpenAI result file is read as."""

import json
from typing import Any

import pytest
from hypothesis import given

from extraction_pipeline.providers.base import UndecodableResult
from extraction_pipeline.providers.openai_translation import decode_result
from extraction_pipeline_tests.providers.any_json import assert_has_an_outcome, json_with


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


JSON = json_with(
    "response error body choices message content status_code usage finish_reason refusal "
    "code prompt_tokens text model"
)


@given(JSON, JSON)
def test_any_json_around_a_custom_id_is_decoded_to_some_outcome(response, error):
    assert_has_an_outcome(decode_result(result(response, error)))


@given(JSON, JSON)
def test_a_plain_line_is_read_as_one_that_is_written_with_escapes(response, error):
    line = json.dumps({"custom_id": "a-1", "response": response, "error": error, "Z": "Z"})
    assert decode_result(line.encode()) == decode_result(line.replace("Z", "\\u005a").encode())
