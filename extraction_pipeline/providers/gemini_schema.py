"""From a strict JSON Schema to the subset of OpenAPI that Gemini's `response_schema` takes.

Gemini knows no definitions and no closed objects: references are written out, and
`additionalProperties: false`, which is how Gemini takes every object anyway, is left out. A choice
with null becomes `nullable`. The order of properties is told apart, since Gemini would sort them.
"""

from collections.abc import Mapping
from typing import Any

from extraction_pipeline.providers.schema_nodes import (
    definition_name,
    require_closed_object,
    schema_nodes,
    unfit_schema,
)

PROVIDER = "Gemini"
MOST_LEVELS = 5
"""Objects and lists within each other. Google names no number; users report that four levels pass
and six are refused ("exceeds the maximum allowed nesting depth")."""

_TYPES = {
    "object": "OBJECT",
    "array": "ARRAY",
    "string": "STRING",
    "integer": "INTEGER",
    "number": "NUMBER",
    "boolean": "BOOLEAN",
}
_KEYWORDS = frozenset(
    {
        *("type", "properties", "required", "additionalProperties", "items"),
        *("anyOf", "enum", "description", "$ref", "$defs"),
    }
)
_NULL = {"type": "null"}


def check_depth(schema_name: str, json_schema: Mapping[str, Any]) -> None:
    """Refuse what Gemini takes in neither of its two forms. Raises `ConfigurationError`."""
    for node in schema_nodes(PROVIDER, schema_name, json_schema):
        require_closed_object(PROVIDER, schema_name, node)
        if node.level > MOST_LEVELS:
            reason = f"lies more than {MOST_LEVELS} objects and lists deep"
            raise unfit_schema(PROVIDER, schema_name, node.field, reason)


def gemini_schema(schema_name: str, json_schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema in Gemini's form, with the names of the wire (`any_of`, `property_ordering`).

    Raises `ConfigurationError` with the name of the field for what the subset cannot express.
    """
    check_depth(schema_name, json_schema)
    return _Conversion(schema_name, json_schema.get("$defs", {})).of(json_schema, ())


class _Conversion:
    def __init__(self, schema_name: str, definitions: Mapping[str, Any]) -> None:
        self._schema_name = schema_name
        self._definitions = definitions

    def of(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
        if "$ref" in schema:
            schema = self._definitions[definition_name(schema)]
        unknown = sorted(schema.keys() - _KEYWORDS)
        if unknown:
            raise self._unfit(path, f"uses {', '.join(unknown)}, which Gemini does not know")
        if isinstance(schema.get("type"), list):
            schema = _as_choice(schema)
        converted = self._choice(schema, path) if "anyOf" in schema else self._plain(schema, path)
        if "description" in schema:
            converted["description"] = schema["description"]
        return converted

    def _choice(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
        options = [self.of(option, path) for option in schema["anyOf"] if option != _NULL]
        if not options:
            raise self._unfit(path, "can only be null")
        choice = options[0] if len(options) == 1 else {"any_of": options}
        return choice | ({"nullable": True} if len(options) < len(schema["anyOf"]) else {})

    def _plain(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
        kind = schema.get("type")
        if kind not in _TYPES:
            raise self._unfit(path, "has no type that Gemini knows")
        converted: dict[str, Any] = {"type": _TYPES[kind]}
        if kind == "object":
            properties = schema["properties"]
            converted |= {
                "properties": {
                    name: self.of(inner, (*path, name)) for name, inner in properties.items()
                },
                "required": list(schema["required"]),
                "property_ordering": list(properties),
            }
        if kind == "array":
            converted["items"] = self.of(schema["items"], path)
        if "enum" in schema:
            if kind != "string" or "" in schema["enum"]:
                raise self._unfit(path, "lists values that are no texts, or empty")
            converted |= {"format": "enum", "enum": list(schema["enum"])}
        return converted

    def _unfit(self, path: tuple[str, ...], reason: str) -> Exception:
        return unfit_schema(
            PROVIDER,
            self._schema_name,
            ".".join(path),
            reason,
            "Change the document type, or set EXTRACTION_GEMINI_SCHEMA_FIELD=response_json_schema.",
        )


def _as_choice(schema: Mapping[str, Any]) -> dict[str, Any]:
    """`type: [string, null]` as the choice that it stands for."""
    said = {name: schema[name] for name in ("description",) if name in schema}
    rest = {name: value for name, value in schema.items() if name not in ("type", "description")}
    options = [_NULL if kind == "null" else {**rest, "type": kind} for kind in schema["type"]]
    return {"anyOf": options, **said}
