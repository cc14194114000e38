"""What one request to Gemini asks for, as the chat completion that is answered."""

import re
from typing import Any

import pytest

from extraction_pipeline.batch_server.core_lines import Refusal
from extraction_pipeline.batch_server.gemini.translation import inline_request
from extraction_pipeline_tests.batch_server.client import NOTE_SCHEMA

PLAIN: dict[str, Any] = {"contents": [{"parts": [{"text": "x"}]}]}


def translated(request: dict[str, Any]) -> Any:
    return inline_request({"request": request}, "m")[0].asked


@pytest.mark.parametrize("spelling", ["camel", "snake"])
def test_a_request_as_a_chat_completion(spelling):
    request: dict[str, Any] = {
        "contents": [
            {"parts": [{"text": "a"}, {"text": "b"}]},
            {"role": "model", "parts": [{"text": "c"}]},
        ],
        "systemInstruction": {"parts": [{"text": "s"}]},
        "safetySettings": [{"category": "x"}],
        "generationConfig": {
            "temperature": 0,
            "topP": 0.5,
            "topK": 3,
            "maxOutputTokens": 9,
            "stopSequences": ["END"],
            "candidateCount": 1,
            "responseMimeType": "application/json",
            "thinkingConfig": {"thinkingBudget": 0},
        },
    }
    if spelling == "snake":
        request = _snake(request)
    assert translated(request) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "a\nb"},
            {"role": "assistant", "content": "c"},
        ],
        "max_completion_tokens": 9,
        "temperature": 0,
        "top_p": 0.5,
        "top_k": 3,
        "stop": ["END"],
        "response_format": {"type": "json_object"},
    }


def _snake(value: Any) -> Any:
    if isinstance(value, dict):
        return {re.sub(r"[A-Z]", r"_\g<0>", name).lower(): _snake(v) for name, v in value.items()}
    return [_snake(each) for each in value] if isinstance(value, list) else value


OPENAPI_SCHEMA = {
    "type": "OBJECT",
    "title": "Note",
    "properties": {
        "type": {"type": "STRING", "nullable": True, "description": "The kind."},
        "items": {"type": "ARRAY", "items": {"type": "OBJECT", "nullable": True}, "minItems": "1"},
        "either": {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}], "nullable": True},
        "name": {"type": "STRING", "enum": ["A", "B"], "format": "enum"},
    },
    "required": ["type", "items", "either", "name"],
    "propertyOrdering": ["type", "items", "either", "name"],
}
JSON_SCHEMA = {
    "type": "object",
    "title": "Note",
    "properties": {
        "type": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "The kind."},
        "items": {
            "type": "array",
            "items": {"anyOf": [{"type": "object"}, {"type": "null"}]},
            "minItems": 1,
        },
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
        "name": {"type": "string", "enum": ["A", "B"], "format": "enum"},
    },
    "required": ["type", "items", "either", "name"],
}


@pytest.mark.parametrize(
    ("config", "schema"),
    [
        ({"responseSchema": OPENAPI_SCHEMA}, JSON_SCHEMA),
        ({"responseJsonSchema": JSON_SCHEMA}, JSON_SCHEMA),
        ({"responseSchema": NOTE_SCHEMA}, NOTE_SCHEMA),
    ],
    ids=["openapi", "json", "json in the other's place"],
)
def test_both_fields_for_a_schema_are_taken(config, schema):
    asked = translated({**PLAIN, "generationConfig": config})
    assert asked["response_format"]["json_schema"]["schema"] == schema


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"contents": []},
        {"contents": [{"parts": []}]},
        {"contents": [{"parts": [{"inlineData": {}}]}]},
        {"contents": [{"role": "tool", "parts": [{"text": "x"}]}]},
        {**PLAIN, "tools": []},
        {**PLAIN, "generationConfig": {"candidateCount": 2}},
        {**PLAIN, "generationConfig": {"maxOutputTokens": 0}},
    ],
    ids=str,
)
def test_what_cannot_be_served_is_refused_request_by_request(request_):
    assert isinstance(translated(request_), Refusal)
