"""What a request line holds, as JSON Schema, found by writing two lines that differ in everything.

What is equal in both is a constant of the code; what differs comes from the request. So the schema
cannot say anything else than the code does.
"""

import json
from collections.abc import Callable
from typing import Any

from extraction_pipeline.providers.base import ModelRequest

_OF_TYPE = "the schema of the document type"
_OF_VERSION = "the parameters of the extraction version"
_PARAMETER = "temperature"
_FIELD = "probe_field_a"


def _probe(letter: str, number: int) -> ModelRequest:
    return ModelRequest(
        custom_id=f"probe-id-{letter}",
        model=f"probe-model-{letter}",
        instructions=f"Probe instructions {letter}.",
        document=f"Probe document {letter}.",
        schema_name=f"probe_schema_{letter}",
        json_schema={
            "type": "object",
            "properties": {f"probe_field_{letter}": {"type": "string"}},
            "required": [f"probe_field_{letter}"],
            "additionalProperties": False,
        },
        max_output_tokens=1_000 + number,
        parameters={_PARAMETER: number / 8},
    )


_ONE, _OTHER = _probe("a", 1), _probe("b", 2)
_TEXTS = {
    "the id of the request": _ONE.custom_id,
    "the model": _ONE.model,
    "the instructions": _ONE.instructions,
    "the text of the document": _ONE.document,
    "the name of the document type": _ONE.schema_name,
}


def request_schema(encode: Callable[[ModelRequest], bytes]) -> dict[str, Any]:
    """The JSON Schema of the lines that `encode` writes. Pure and deterministic."""
    return _compared(json.loads(encode(_ONE)), json.loads(encode(_OTHER)))


def _compared(one: Any, other: Any) -> dict[str, Any]:
    match one, other:
        case dict(), dict():
            return _object(one, other)
        case list(), list():
            return _array(one, other)
        case _ if one == other:
            return {"const": one}
        case str(), str():
            held = [what for what, text in _TEXTS.items() if text in one]
            return {"type": "string", "description": " and ".join(held) or _OF_TYPE}
    return {"type": "integer", "description": "the limit of the answer, in tokens"}


def _object(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    shared = [name for name in one if name in other and name != _PARAMETER]
    more: object = False
    if _PARAMETER in one:
        more = {"description": _OF_VERSION}
    elif one.keys() != other.keys() or _FIELD in one.get("properties", {}):
        more = {"description": _OF_TYPE}
    return {
        "type": "object",
        "properties": {name: _compared(one[name], other[name]) for name in shared},
        "required": shared,
        "additionalProperties": more,
    }


def _array(one: list[Any], other: list[Any]) -> dict[str, Any]:
    if one == other:
        return {"const": one}
    if all(isinstance(each, str) for each in one):
        return {"type": "array", "items": {"type": "string"}, "description": _OF_TYPE}
    items = [_compared(*pair) for pair in zip(one, other, strict=True)]
    return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
