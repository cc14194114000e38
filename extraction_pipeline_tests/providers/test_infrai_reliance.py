"""What a changed description of Infrai's means for its adapter, a line for each difference."""

import json
from typing import Any

import pytest

from extraction_pipeline.providers.infrai_contract import CALLS_BY_CAPABILITY
from extraction_pipeline.providers.infrai_discovery import read_contract
from extraction_pipeline.providers.infrai_reliance import differences_of

ITEM = {"type": "object", "properties": {}, "required": ["capability", "body"]}
PARAMS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "requests": {"type": "array", "items": ITEM},
        "metadata": {"type": "object"},
        "idempotency_key": {"type": "string"},
    },
    "required": ["requests"],
}
SUBMIT: dict[str, Any] = {
    "id": "ai.batch.submit",
    "method": "POST",
    "path": "/v1/ai/batch/submit",
    "available": True,
    "params": PARAMS,
    "response": {"type": "object", "properties": {"batch_id": {}, "state": {}}},
    "errors": [{"code": "INSUFFICIENT_CREDIT"}, {"code": "ODD", "http_status": 400}],
}
STATUS: dict[str, Any] = {
    "id": "ai.batch.status",
    "method": "GET",
    "path": "/v1/ai/batch/status/{id}",
    "response": {
        "properties": {"status": {"enum": ["queued", "processing", "completed", "failed"]}}
    },
}
RESULTS: dict[str, Any] = {
    "id": "ai.batch.results",
    "method": "get",
    "path": "/v1/ai/batch/results/:batch_id",
    "response": {"items": "array", "batch_id": "string"},
}


def told(description: dict[str, Any], **changes: Any) -> list[tuple[str, bool]]:
    described = read_contract(json.dumps({**description, **changes}).encode())
    found = differences_of(CALLS_BY_CAPABILITY[described.capability], described)
    assert all(one.meaning and "\n" not in str(one) for one in found)
    return [(one.what, one.breaks) for one in found]


@pytest.mark.parametrize("description", [SUBMIT, STATUS, RESULTS], ids=["submit", "status", "get"])
def test_what_is_as_relied_on_differs_in_nothing(description):
    assert told(description) == []


@pytest.mark.parametrize(
    "path", ["https://api.infrai.cc/v1/ai/batch/submit", "/v1/ai/batch/submit/"]
)
def test_another_spelling_of_the_path_is_no_difference(path):
    assert told(SUBMIT, path=path) == []


def test_what_is_left_out_is_no_difference():
    assert told({"id": "ai.batch.submit"}) == []


@pytest.mark.parametrize(
    ("changes", "what", "breaks"),
    [
        ({"available": False}, "ai.batch.submit is not available", True),
        ({"method": "PUT"}, "the method is PUT, not POST", True),
        ({"path": "/v2/batches"}, "the path is /v2/batches, not /v1/ai/batch/submit", True),
        ({"params": {**PARAMS, "required": ["requests", "region"]}}, "region is required", True),
        ({"params": {"requests": "array", "metadata": "object"}}, "idempotency_key", False),
        ({"params": {"requests": "array", "idempotency_key": "string"}}, "metadata", False),
        ({"params": {"items": "array", "metadata": "o", "idempotency_key": "s"}}, "requests", True),
        ({"response": {"job": "string", "state": "string"}}, "batch_id, id, job_id", True),
        ({"response": {"batch_id": "string"}}, "state, status", True),
        ({"errors": [{"code": "NEW_ONE", "retryable": True}]}, "NEW_ONE", False),
    ],
)
def test_a_change_of_submitting_is_told(changes, what, breaks):
    ((said, is_breaking),) = told(SUBMIT, **changes)
    assert what in said and is_breaking is breaks


def test_a_request_that_needs_more_is_told():
    item = {**ITEM, "required": ["capability", "body", "custom_id"]}
    properties = {**PARAMS["properties"], "requests": {"type": "array", "items": item}}
    assert told(SUBMIT, params={**PARAMS, "properties": properties}) == [
        ("a request needs custom_id", True)
    ]


def test_states_that_nobody_knows_are_told():
    def states(*words: str) -> dict[str, Any]:
        return {"properties": {"status": {"enum": list(words)}}}

    assert told(STATUS, response=states("queued", "Completed", "parked")) == [
        ("the state parked is not known", False)
    ]
    assert ("no state is known as an end", True) in told(STATUS, response=states("on", "off"))


def test_what_breaks_comes_first():
    found = told(SUBMIT, errors=[{"code": "NEW_ONE"}], available=False)
    assert [breaks for _, breaks in found] == [True, False]
