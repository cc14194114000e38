"""The check of an input file, and the order of results."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extraction_pipeline.batch_server.openai.input_lines import MOST_FAULTS, check_input
from extraction_pipeline.batch_server.progress import shuffled
from extraction_pipeline.batch_server.records import InputReport, LinePlace
from extraction_pipeline_tests.batch_server.client import jsonl, line

ENDPOINT = "/v1/chat/completions"


def check(content: bytes, most: int = 100) -> tuple[InputReport, list[LinePlace]]:
    places: list[LinePlace] = []
    return check_input(io.BytesIO(content), ENDPOINT, most, places.append), places


def test_places_lead_back_to_the_lines():
    lines = [line("a", "x\u2028y\r"), line("b", "漢"), line("c")]
    content = b"\n" + jsonl(lines[:2]) + b"  \r\n" + jsonl(lines[2:]).rstrip(b"\n")
    report, places = check(content)
    assert (report.total, report.model, report.faults) == (3, "rules-baseline", [])
    assert [place.position for place in places] == [0, 1, 2]
    found = [json.loads(content[place.offset :][: place.length]) for place in places]
    assert found == lines
    assert [place.custom_id for place in places] == ["a", "b", "c"]


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in line("b").items() if key != name}


FAULTS = [
    (b"{", "invalid_json_line", None),
    (b'{"custom_id": NaN}', "invalid_json_line", None),
    (b'"\xff"', "invalid_json_line", None),
    (b"[]", "invalid_value", None),
    (without("custom_id"), "missing_required_parameter", "custom_id"),
    (without("method"), "missing_required_parameter", "method"),
    (without("url"), "missing_required_parameter", "url"),
    (without("body"), "missing_required_parameter", "body"),
    (line("") | {}, "invalid_value", "custom_id"),
    (line("b") | {"custom_id": 7}, "invalid_value", "custom_id"),
    (line("b") | {"body": []}, "invalid_value", "body"),
    (line("b") | {"method": "GET"}, "invalid_method", "method"),
    (line("b") | {"url": "/v1/embeddings"}, "invalid_url", "url"),
    (line("b") | {"body": {}}, "missing_required_parameter", "body.model"),
    (line("b", model=7), "missing_required_parameter", "body.model"),
    (line("b", model="other"), "mismatched_model", "body.model"),
    (line("a"), "duplicate_custom_id", "custom_id"),
]


@pytest.mark.parametrize(("bad", "code", "param"), FAULTS)
def test_a_fault_is_told_with_its_line(bad, code, param):
    raw = bad if isinstance(bad, bytes) else json.dumps(bad).encode()
    report, _ = check(jsonl([line("a")]) + raw + b"\n" + jsonl([line("z")]))
    assert [(fault.code, fault.param, fault.line) for fault in report.faults] == [(code, param, 2)]


def test_faults_do_not_quote_a_request():
    bad = line("Jane Doe") | {"method": "Jane Doe", "url": "Jane Doe"}
    report, _ = check(jsonl([line("a"), bad, bad | {"custom_id": ["Jane Doe"]}]))
    assert len(report.faults) == 3
    assert "Jane" not in str(report.faults)


def test_limits():
    assert check(jsonl(line(str(n)) for n in range(3)), most=3)[0].faults == []
    report, places = check(jsonl(line(str(n)) for n in range(5)), most=3)
    assert [fault.code for fault in report.faults] == ["too_many_tasks"]
    assert len(places) == 3
    assert [fault.code for fault in check(b"\n \n")[0].faults] == ["empty_file"]
    assert len(check(b"{\n" * 1000, most=2000)[0].faults) == MOST_FAULTS


@given(st.lists(st.integers(), unique=True), st.text())
def test_the_order_of_results_is_another_one_and_always_the_same(positions, seed):
    mixed = shuffled(positions, seed)
    assert sorted(mixed) == sorted(positions)
    assert mixed == shuffled(positions, seed)
    assert len(positions) < 2 or mixed != positions
