import json
import re
from enum import Enum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from extraction_pipeline.schemas.document_type import DocumentType
from extraction_pipeline.schemas.registry import document_type_names, find_document_type
from extraction_pipeline.schemas.validation import (
    LONGEST_ANSWER,
    InvalidAnswer,
    InvalidReason,
    Problem,
    ValidAnswer,
    validate_answer,
)
from extraction_pipeline_tests.schemas.records import ANSWERS, discharge_answer, protocol_answer

DISCHARGE = find_document_type("discharge_summary")


def valid(text: str) -> dict[str, Any]:
    answer = validate_answer(DISCHARGE, text)
    assert isinstance(answer, ValidAnswer), answer
    return answer.record


def invalid(text: str) -> InvalidAnswer:
    answer = validate_answer(DISCHARGE, text)
    assert isinstance(answer, InvalidAnswer)
    return answer


@pytest.mark.parametrize("name", document_type_names())
def test_a_good_answer_is_kept_as_it_is(name):
    answer = validate_answer(find_document_type(name), json.dumps(ANSWERS[name]()))
    assert answer == ValidAnswer(ANSWERS[name]())


@pytest.mark.parametrize("text", ["", " \n\t", "\ufeff", "```json\n```", "```\n\n```"])
def test_nothing_is_empty(text):
    assert invalid(text) == InvalidAnswer(InvalidReason.EMPTY, ())


@pytest.mark.parametrize(
    "text",
    [
        "I cannot help with that.",
        '{"a": ',
        '{"diagnoses": [{"name": "Heart fail',
        "{} Let me know if you need more!",
        "Here it is: {}",
        "{}{}",
        "```json\n{}\n``` done",
        '{"a": NaN}',
        '{"a": -Infinity}',
        "{'a': 1}",
        "null extra",
        "9" * 5000,
    ],
)
def test_prose_half_json_and_a_word_beside_the_object_are_not_json(text):
    assert invalid(text).reason is InvalidReason.NOT_JSON


@pytest.mark.parametrize(
    ("text", "kind"), [("[]", "list"), ('"x"', "str"), ("null", "NoneType"), ("1", "int")]
)
def test_other_json_is_not_an_object(text, kind):
    assert invalid(text) == InvalidAnswer(InvalidReason.NOT_AN_OBJECT, (Problem("", kind),))


@pytest.mark.parametrize(
    "fence", ["```json\n{}\n```", "```\n{}\n```", "\ufeff```JSON \r\n{}```", " {} "]
)
def test_a_fence_around_the_whole_is_taken_off(fence):
    body = json.dumps(discharge_answer())
    assert valid(fence.replace("{}", body)) == discharge_answer()


def test_a_key_that_is_left_out_is_an_error_not_a_null():
    answer = discharge_answer()
    del answer["medications"]
    assert invalid(json.dumps(answer)) == InvalidAnswer(
        InvalidReason.SCHEMA, (Problem("medications", "missing"),)
    )


def test_problems_name_places_and_kinds_and_no_values():
    answer = discharge_answer()
    answer["diagnoses"][0]["name"] = " "
    answer["medications"][0]["status"] = "Jane Roe takes it"
    answer["Jane Roe, born 1950"] = "secret"
    answer["admission_date"]["Jane Roe"] = 1
    found = invalid(json.dumps(answer))
    assert found.reason is InvalidReason.SCHEMA
    assert set(found.problems) == {
        Problem("diagnoses.0.name", "blank"),
        Problem("medications.0.status", "enum"),
        Problem("admission_date.*", "extra_forbidden"),
        Problem("*", "extra_forbidden"),
    }
    assert "Roe" not in repr(found)


def test_a_record_is_not_shown_by_repr():
    assert "Furosemide" not in repr(validate_answer(DISCHARGE, json.dumps(discharge_answer())))


def test_repeated_keys_are_refused_since_one_of_them_would_be_lost():
    text = json.dumps(discharge_answer())[:-1] + ', "medications": null}'
    assert invalid(text).problems == (Problem("", "duplicate_key"),)


def test_nothing_is_coerced():
    answer = discharge_answer()
    answer["disposition"] = 5
    answer["diagnoses"] = {}
    answer["procedures"] = "none"
    assert set(invalid(json.dumps(answer)).problems) == {
        Problem("disposition", "string_type"),
        Problem("diagnoses", "list_type"),
        Problem("procedures", "list_type"),
    }


def test_absent_none_and_blank_stay_apart():
    answer = discharge_answer()
    answer |= {"allergies": [], "procedures": None, "follow_up": "  ", "disposition": None}
    record = valid(json.dumps(answer))
    assert record["allergies"] == []
    assert record["procedures"] is None
    assert record["follow_up"] == ""
    assert record["disposition"] is None


def test_edges_are_stripped_and_exact_repetitions_collapse_in_sets_only():
    answer = discharge_answer()
    answer["disposition"] = "\n Home  with services "
    answer["diagnoses"] *= 3
    answer["diagnoses"].append({"name": " Heart failure ", "evidence": []})
    record = valid(json.dumps(answer))
    assert record["disposition"] == "Home  with services"
    assert record["diagnoses"] == [
        discharge_answer()["diagnoses"][0],
        {"name": "Heart failure", "evidence": []},
    ]
    protocol = validate_answer(find_document_type("care_protocol"), json.dumps(protocol_answer()))
    assert isinstance(protocol, ValidAnswer)
    assert len(protocol.record["steps"]) == 3


def test_text_that_jsonb_refuses_is_made_storable():
    answer = discharge_answer()
    answer["disposition"] = "Ho\x00me \ud83d now \U0001f600 \u2028"
    record = valid(json.dumps(answer))
    assert record["disposition"] == "Home \ufffd now \U0001f600"
    assert "\\u0000" not in json.dumps(record)
    json.dumps(record, ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize("key", ["medications\x00", "\ud800"])
def test_a_key_is_never_cleaned_into_a_field(key):
    answer = discharge_answer() | {key: []}
    assert invalid(json.dumps(answer)).reason is InvalidReason.SCHEMA


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        '{"a":' * 150 + "1" + "}" * 150,
        '{"a": [' + "[" * 101 + "]" * 101 + "]}",
    ],
)
def test_deep_answers_end_as_not_json(text):
    answer = invalid(text)
    assert answer.reason is InvalidReason.NOT_JSON
    assert answer.problems[0].kind in ("too_deep", "json_invalid")


def test_a_very_long_answer_is_not_looked_at():
    assert invalid("{" + " " * LONGEST_ANSWER + "}").problems == (Problem("", "too_long"),)


def test_the_list_of_problems_is_bounded():
    answer = discharge_answer()
    answer["diagnoses"] = [{}] * 10_000
    assert len(invalid(json.dumps(answer)).problems) == 50


class Side(Enum):
    LEFT = "left"


class Scan(BaseModel):
    side: Side
    slices: int
    dose: float = Field(alias="doseMilligray")


SCAN = DocumentType(name="scan", model=Scan, schema_version="scan/1", instructions="Read the scan.")


def test_types_of_users_are_validated_as_strictly():
    good = '{"side": "left", "slices": 3, "doseMilligray": 2}'
    assert validate_answer(SCAN, good) == ValidAnswer(
        {"side": "left", "slices": 3, "doseMilligray": 2.0}
    )
    bad = validate_answer(SCAN, '{"side": "left", "slices": "3", "doseMilligray": "2"}')
    assert isinstance(bad, InvalidAnswer)
    assert {problem.path for problem in bad.problems} == {"slices", "doseMilligray"}


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=150, deadline=None)
@given(st.text() | json_values.map(json.dumps))
def test_no_text_raises(text):
    assert isinstance(validate_answer(DISCHARGE, text), InvalidAnswer)


texts = st.text(alphabet=st.characters(), max_size=30)


@settings(max_examples=150, deadline=None)
@given(texts, texts.filter(lambda text: text.strip().strip("\x00").strip()), texts)
def test_whatever_the_text_a_valid_record_is_stable_and_storable(disposition, name, quote):
    answer = discharge_answer()
    answer["disposition"] = disposition
    answer["diagnoses"] = [{"name": name, "evidence": [quote]}]
    once = valid(json.dumps(answer))
    assert valid(json.dumps(once)) == once
    assert "\x00" not in once["disposition"]
    json.dumps(once, ensure_ascii=False).encode("utf-8")


def escaped(text: str) -> str:
    """The same JSON with every capital written as an escape, which takes the thorough way."""
    return re.sub("[A-Z]", lambda match: f"\\u{ord(match[0]):04x}", text)


@settings(max_examples=100, deadline=None)
@given(texts, json_values, st.sampled_from(sorted(discharge_answer())))
def test_a_plain_answer_is_read_as_one_that_is_written_with_escapes(name, value, field):
    answer = discharge_answer()
    answer["diagnoses"] = [{"name": f"A{name}", "evidence": [name]}]
    for one in (answer, answer | {field: value}):
        text = json.dumps(one, ensure_ascii=False)
        assert validate_answer(DISCHARGE, text) == validate_answer(DISCHARGE, escaped(text))


@pytest.mark.parametrize("levels", [98, 99, 100, 101, 102])
@pytest.mark.parametrize("inside", ["", "1"])
def test_a_plain_answer_may_be_as_deep_as_one_with_escapes(levels, inside):
    text = '{"A": ' + "[" * levels + inside + "]" * levels + "}"
    assert validate_answer(DISCHARGE, text) == validate_answer(DISCHARGE, escaped(text))
