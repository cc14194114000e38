"""The emptiest answer that a JSON Schema allows: what an honest reader says who knows no rules."""

from collections.abc import Mapping
from typing import Any

_NEUTRAL_MEMBERS = ("not_stated", "unknown", "unspecified", "none", "other")
_DEEPEST_SCHEMA = 40


def empty_instance(json_schema: Mapping[str, Any]) -> object:
    """A value that `json_schema` accepts and that states nothing.

    `null` where it is allowed, else an empty list or text, zero, or false; of an enum the member
    that says "not stated", else the first. Objects are filled property by property.

    Raises `ValueError` for a schema that is not one of the strict kind: without a type, with
    references that lead nowhere or around in a circle, or nested beyond 40 levels.
    """
    definitions = json_schema.get("$defs")
    return _empty(json_schema, definitions if isinstance(definitions, Mapping) else {}, 0)


def _empty(node: object, definitions: Mapping[str, Any], depth: int) -> object:
    if not isinstance(node, Mapping) or depth > _DEEPEST_SCHEMA:
        raise ValueError("the JSON Schema is not of the strict kind")
    reference = node.get("$ref")
    if isinstance(reference, str):
        return _empty(definitions.get(reference.removeprefix("#/$defs/")), definitions, depth + 1)
    options = node.get("anyOf")
    if isinstance(options, list) and options:
        null = {"type": "null"}
        return None if null in options else _empty(options[0], definitions, depth + 1)
    members = node.get("enum")
    if isinstance(members, list) and members:
        return next((name for name in (None, *_NEUTRAL_MEMBERS) if name in members), members[0])
    properties = node.get("properties")
    if isinstance(properties, Mapping):
        return {name: _empty(inner, definitions, depth + 1) for name, inner in properties.items()}
    return _empty_of_type(node.get("type"))


def _empty_of_type(kind: object) -> object:
    if isinstance(kind, list):
        return None if "null" in kind or not kind else _empty_of_type(kind[0])
    match kind:
        case "null":
            return None
        case "object":
            return {}
        case "array":
            return []
        case "string":
            return ""
        case "integer" | "number":
            return 0
        case "boolean":
            return False
    raise ValueError("the JSON Schema is not of the strict kind")
