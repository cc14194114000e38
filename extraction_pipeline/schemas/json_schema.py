"""A strict JSON Schema from a pydantic model, in the subset that batch providers accept.

The subset (OpenAI "structured outputs" with `strict`, also within what Anthropic and Gemini
document): every object is closed and lists all its properties as required, a value that may be
absent is `anyOf` with `null`, and only `type`, `properties`, `required`, `additionalProperties`,
`items`, `anyOf`, `enum`, `description`, `$ref` and `$defs` occur. Constraints such as `minLength`
are not sent; the model still enforces them on the answer. Descriptions come from fields alone,
so that editing a docstring does not change what is sent.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema

from extraction_pipeline.errors import ConfigurationError

JsonSchema = dict[str, Any]

_DEFINITION = "#/$defs/"
_SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})


def strict_json_schema(model: type[BaseModel]) -> JsonSchema:
    """The schema of `model`. Deterministic: properties keep the order of the fields.

    Raises `ConfigurationError`, with the field's name, for what the subset cannot express:
    recursion, objects with free keys, `Any`, tuples, and a root that is not an object.
    """
    try:
        source = model.model_json_schema(mode="validation")
    except PydanticInvalidForJsonSchema as error:
        raise ConfigurationError(
            f"The model {model.__name__} has a field without a JSON Schema.",
            remedy="Use text, numbers, booleans, enums, lists and models.",
        ) from error
    return _Translation(model.__name__, source.get("$defs", {})).of_root(source)


class _Translation:
    """One model's translation; collects the definitions that the result refers to."""

    def __init__(self, model_name: str, definitions: Mapping[str, Mapping[str, Any]]) -> None:
        self._model_name = model_name
        self._sources = definitions
        self._translated: dict[str, JsonSchema] = {}
        self._open: list[str] = []

    def of_root(self, source: Mapping[str, Any]) -> JsonSchema:
        node = source
        if "$ref" in source:
            node = self._sources[_definition_name(source)]
        if "properties" not in node:
            raise self._refusal(self._model_name, "is not an object with named fields")
        if "$ref" in source:
            self._open.append(_definition_name(source))
        schema = self._object(node, ())
        if self._translated:
            schema["$defs"] = {name: self._translated[name] for name in sorted(self._translated)}
        return schema

    def _node(self, node: Mapping[str, Any], path: tuple[str, ...]) -> JsonSchema:
        schema = self._shape(node, path)
        if "description" in node:
            if "$ref" in schema:
                # A `$ref` must stand alone, so the described one is written out in its place.
                schema = dict(self._translated[_definition_name(schema)])
            schema["description"] = node["description"]
        return schema

    def _shape(self, node: Mapping[str, Any], path: tuple[str, ...]) -> JsonSchema:
        if "$ref" in node:
            return self._reference(node, path)
        for keyword in ("anyOf", "oneOf"):
            if keyword in node:
                return {"anyOf": [self._node(option, path) for option in node[keyword]]}
        if "enum" in node or "const" in node:
            return _enumeration(node.get("enum", [node.get("const")]))
        kind = node.get("type")
        if kind == "object":
            return self._object(node, path)
        if kind == "array":
            if "prefixItems" in node or not isinstance(node.get("items"), Mapping):
                raise self._refusal(".".join(path), "is a tuple, or a list of anything")
            return {"type": "array", "items": self._node(node["items"], path)}
        if kind in _SCALARS:
            return {"type": kind}
        raise self._refusal(".".join(path), "has no fixed type")

    def _object(self, node: Mapping[str, Any], path: tuple[str, ...]) -> JsonSchema:
        properties = node.get("properties")
        free_keys = "patternProperties" in node or node.get("additionalProperties") not in (
            None,
            False,
        )
        if not properties or free_keys:
            raise self._refusal(
                ".".join(path) or self._model_name, "is an object whose keys are not fixed"
            )
        return {
            "type": "object",
            "properties": {
                name: self._node(inner, (*path, name)) for name, inner in properties.items()
            },
            "required": list(properties),
            "additionalProperties": False,
        }

    def _reference(self, node: Mapping[str, Any], path: tuple[str, ...]) -> JsonSchema:
        name = _definition_name(node)
        if name in self._open:
            raise self._refusal(".".join(path), f"contains itself (through {name})")
        source = self._sources[name]
        if source.get("type") != "object":
            self._open.append(name)
            inline = self._shape(source, path)
            self._open.pop()
            return inline
        if name not in self._translated:
            self._open.append(name)
            self._translated[name] = self._object(source, path)
            self._open.pop()
        return {"$ref": _DEFINITION + name}

    def _refusal(self, field: str, reason: str) -> ConfigurationError:
        return ConfigurationError(
            f"The model {self._model_name} cannot be sent as a strict JSON Schema: "
            f"{field} {reason}.",
            remedy="Give every object a model with named fields, and every field one type "
            "or that type and None.",
        )


def _definition_name(node: Mapping[str, Any]) -> str:
    return str(node["$ref"]).removeprefix(_DEFINITION)


def _enumeration(values: list[Any]) -> JsonSchema:
    by_kind: dict[str, list[Any]] = {}
    for value in values:
        by_kind.setdefault(_json_type(value), []).append(value)
    options: list[JsonSchema] = [
        {"type": kind} if kind == "null" else {"type": kind, "enum": members}
        for kind, members in by_kind.items()
    ]
    return options[0] if len(options) == 1 else {"anyOf": options}


def _json_type(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    return "null" if value is None else "string"
