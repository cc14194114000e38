"""Walking a strict JSON Schema field by field, for the checks and conversions of each provider."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from extraction_pipeline.errors import ConfigurationError

_DEFINITION = "#/$defs/"


@dataclass(frozen=True)
class SchemaNode:
    """One place in a schema: its field as a path of names, and how many objects and lists it is
    deep (the root object is level 1)."""

    field: str
    level: int
    schema: Mapping[str, Any]


def schema_nodes(provider: str, schema_name: str, root: Mapping[str, Any]) -> Iterator[SchemaNode]:
    """Every place of a schema, from the root inwards, references followed at each use.

    Raises `ConfigurationError` for a schema that contains itself.
    """
    definitions = root.get("$defs", {})

    def walk(
        schema: Mapping[str, Any], path: tuple[str, ...], level: int, within: tuple[str, ...]
    ) -> Iterator[SchemaNode]:
        if "$ref" in schema:
            name = definition_name(schema)
            if name in within or name not in definitions:
                reason = "contains itself" if name in within else f"refers to {name!r}, not defined"
                raise unfit_schema(provider, schema_name, _name(path), reason)
            within = (*within, name)
            schema = definitions[name]
        level += schema.get("type") in ("object", "array")
        yield SchemaNode(_name(path), level, schema)
        for name, inner in schema.get("properties", {}).items():
            yield from walk(inner, (*path, name), level, within)
        if isinstance(schema.get("items"), Mapping):
            yield from walk(schema["items"], path, level, within)
        for option in schema.get("anyOf", []):
            yield from walk(option, path, level, within)

    return walk(root, (), 0, ())


def definition_name(reference: Mapping[str, Any]) -> str:
    """The name behind a `$ref`."""
    return str(reference["$ref"]).removeprefix(_DEFINITION)


def require_closed_object(provider: str, schema_name: str, node: SchemaNode) -> None:
    """Refuse an object that is open or leaves a property optional. Raises `ConfigurationError`."""
    if node.schema.get("type") != "object":
        return
    properties = node.schema.get("properties")
    if not properties or node.schema.get("additionalProperties") is not False:
        raise unfit_schema(provider, schema_name, node.field, "is an object whose keys are open")
    optional = sorted(properties.keys() - set(node.schema.get("required", ())))
    if optional:
        field = ".".join(part for part in (node.field, optional[0]) if part)
        raise unfit_schema(provider, schema_name, field, "is not among the required ones")


def unfit_schema(
    provider: str, schema_name: str, field: str, reason: str, remedy: str | None = None
) -> ConfigurationError:
    """The error for a schema that a provider does not take."""
    return ConfigurationError(
        f"The schema {schema_name} cannot be sent to {provider}: {field or 'its root'} {reason}.",
        remedy=remedy or "Change the document type, or extract it with another provider.",
    )


def _name(path: tuple[str, ...]) -> str:
    return ".".join(path)
