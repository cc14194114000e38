"""The result lines of a service without an API."""

import json
from typing import Any

import pytest

from extraction_pipeline.providers.base import AnswerOutcome, UndecodableResult
from extraction_pipeline.providers.outside_translation import decode_result

HASH = "0a" * 32


def decode(**members: Any):
    return decode_result(json.dumps(members).encode())


def test_a_record_is_taken_as_it_is_written():
    line = b'{"record": {"title":  "A", "title": "B", "dose": 1.0}, "document_hash": "%s"}'
    result = decode_result(line % HASH.upper().encode())
    assert (result.custom_id, result.document_hash) == (None, HASH)
    assert result.outcome is AnswerOutcome.COMPLETED
    assert result.text == '{"title":  "A", "title": "B", "dose": 1.0}'
    assert result.usage.input_tokens is None and result.usage.output_tokens is None


@pytest.mark.parametrize(
    ("members", "outcome", "code"),
    [
        ({"error": "illegible"}, AnswerOutcome.ERRORED, "illegible"),
        ({"error": "refused"}, AnswerOutcome.REFUSED, "refused"),
        ({"error": "rejected"}, AnswerOutcome.REJECTED, "rejected"),
        ({"error": "Jane Doe's page is torn"}, AnswerOutcome.ERRORED, None),
        ({"error": "Jane-Doe"}, AnswerOutcome.ERRORED, None),
        ({"error": {"message": "torn"}}, AnswerOutcome.ERRORED, None),
        ({"error": "x", "record": {}}, AnswerOutcome.ERRORED, "record_and_error"),
        ({"error": None, "record": {}}, AnswerOutcome.COMPLETED, None),
        ({"record": None}, AnswerOutcome.EMPTY, None),
        ({}, AnswerOutcome.EMPTY, None),
    ],
)
def test_what_is_no_record_has_a_kind_and_at_most_a_code(members, outcome, code):
    result = decode(document_hash=HASH, **members)
    assert (result.outcome, result.error_code, result.error_message) == (outcome, code, None)
    assert (result.text is None) == (outcome is not AnswerOutcome.COMPLETED)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"custom_id": "a-1"}, ("a-1", None)),
        ({"custom_id": "a-1", "document_hash": HASH}, ("a-1", HASH)),
        ({"custom_id": None, "document_hash": HASH}, (None, HASH)),
        ({"custom_id": "", "document_hash": f" {HASH} "}, (None, HASH)),
    ],
)
def test_a_line_names_its_document_in_either_way(names, expected):
    result = decode(record={}, **names)
    assert (result.custom_id, result.document_hash) == expected


@pytest.mark.parametrize(
    "names",
    [
        {},
        {"custom_id": ""},
        {"custom_id": 7, "document_hash": HASH},
        {"document_hash": "Jane.txt"},
        {"document_hash": 7},
        {"document_hash": HASH + "\0", "custom_id": "a-1"},
    ],
)
def test_a_line_that_names_nothing_is_of_no_form_and_not_quoted(names):
    with pytest.raises(UndecodableResult) as caught:
        decode(record={"name": "Jane"}, **names)
    assert "Jane" not in str(caught.value)
    assert caught.value.__context__ is None or "Jane" not in str(caught.value.__context__)
