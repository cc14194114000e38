"""What a strict JSON Schema says of the columns that its records have. Pure.

The schema is the one that a version recorded at its first use, so that records of an older schema
are shown in its words. The database keeps the order of lists and not of keys, so the order of
fields is that of `required`, which names them all.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

_SCALARS: dict[str, pa.DataType] = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
}

Schema = Mapping[str, Any]


def record_columns(root: Schema) -> dict[str, pa.DataType]:
    """The fields of a record with their Arrow types, in the order of the schema; text where a
    field is an object, a list, or of several types."""
    return {name: _column(root, root["properties"][name]) for name in root["required"]}


def in_order(root: Schema, record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with the keys of all its objects in the order of the schema."""
    ordered: dict[str, Any] = _ordered(root, root, record)
    return ordered


def _column(root: Schema, node: Schema) -> pa.DataType:
    kinds = {option.get("type") for option in _options(root, node)} - {"null"}
    (kind,) = kinds if len(kinds) == 1 else {"object"}
    return _SCALARS.get(str(kind), pa.string())


def _options(root: Schema, node: Schema) -> Sequence[Schema]:
    """What a value may be: the node itself, what it refers to, or its alternatives."""
    if "$ref" in node:
        return [root["$defs"][node["$ref"].rsplit("/", 1)[-1]]]
    if "anyOf" in node:
        return [found for option in node["anyOf"] for found in _options(root, option)]
    return [node]


def _ordered(root: Schema, node: Schema, value: Any) -> Any:
    options = _options(root, node)
    if isinstance(value, Mapping):
        for option in options:
            known = option.get("properties", {})
            if known and value.keys() <= known.keys():
                return {
                    name: _ordered(root, known[name], value[name])
                    for name in option["required"]
                    if name in value
                }
    if isinstance(value, list):
        items: Schema = next((option["items"] for option in options if "items" in option), {})
        return [_ordered(root, items, item) for item in value]
    return value
