"""Gemini's `responseSchema`, a subset of OpenAPI's schemas, as JSON Schema."""

from collections.abc import Mapping
from typing import Any

_DROPPED = frozenset({"nullable", "propertyOrdering", "property_ordering", "example"})
_BY_NAME = frozenset({"properties", "$defs", "defs"})
_LISTS = frozenset({"anyOf", "any_of"})
_RENAMED = {
    "any_of": "anyOf",
    "additional_properties": "additionalProperties",
    "min_items": "minItems",
    "max_items": "maxItems",
    "ref": "$ref",
    "defs": "$defs",
}


def json_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same in JSON Schema: small type names, and `null` as a type in place of `nullable`.

    Names of properties are left as they are. What is not a schema is passed on, for the answerer
    to judge.
    """
    translated = {
        _RENAMED.get(name, name): _value(name, value)
        for name, value in schema.items()
        if name not in _DROPPED
    }
    if schema.get("nullable") is not True:
        return translated
    if "anyOf" in translated:
        return {**translated, "anyOf": [*translated["anyOf"], {"type": "null"}]}
    description = translated.pop("description", None)
    optional: dict[str, Any] = {"anyOf": [translated, {"type": "null"}]}
    return optional if description is None else {**optional, "description": description}


def _value(name: str, value: Any) -> Any:
    if name == "type" and isinstance(value, str):
        return value.lower()
    if name in _BY_NAME and isinstance(value, Mapping):
        return {inner: _schema(each) for inner, each in value.items()}
    if name in _LISTS and isinstance(value, list):
        return [_schema(each) for each in value]
    if name in ("items", "additionalProperties", "additional_properties"):
        return _schema(value)
    if name in ("minItems", "maxItems", "min_items", "max_items") and isinstance(value, str):
        return int(value) if value.isdecimal() else value
    return value


def _schema(value: Any) -> Any:
    return json_schema(value) if isinstance(value, Mapping) else value
