"""What an extraction version means, in a form that can be compared, stored and shown.

The fingerprint is recorded when a version is first used; a version that means something else later
is refused, and `changed_parts` says what changed. How often an extraction is attempted is a policy
and no part of the recipe.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what a model is asked about a document."""

    instructions: str = field(repr=False)
    schema_name: str
    schema_version: str
    json_schema: Mapping[str, Any] = field(repr=False)
    provider: str
    model: str
    parameters: Mapping[str, Any]
    max_output_tokens: int


def recipe_document(recipe: Recipe) -> dict[str, JsonValue]:
    """The recipe as plain JSON, for storing and for showing; later changes do not reach it."""
    plain: dict[str, JsonValue] = json.loads(
        _canonical(
            {
                "instructions": recipe.instructions,
                "json_schema": recipe.json_schema,
                "max_output_tokens": recipe.max_output_tokens,
                "model": recipe.model,
                "parameters": recipe.parameters,
                "provider": str(recipe.provider),
                "schema_name": recipe.schema_name,
                "schema_version": recipe.schema_version,
            }
        )
    )
    return plain


def fingerprint(recipe: Recipe) -> str:
    """SHA-256 of the recipe's canonical JSON, 64 hex characters.

    The order of keys does not matter, and `0` and `0.0` are one number. Raises `ValueError` for a
    parameter that JSON cannot hold.
    """
    return hashlib.sha256(_canonical(recipe_document(recipe)).encode()).hexdigest()


def changed_parts(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of what differs between two recipe documents, such as `model` and
    `parameters.temperature`, sorted; empty exactly where the fingerprints are equal."""
    changed: list[str] = []
    for part in sorted(old.keys() | new.keys()):
        before, after = old.get(part), new.get(part)
        if _same(old, new, part):
            continue
        if part == "parameters" and isinstance(before, Mapping) and isinstance(after, Mapping):
            changed += [
                f"{part}.{name}"
                for name in sorted(before.keys() | after.keys())
                if not _same(before, after, name)
            ]
        else:
            changed.append(part)
    return tuple(changed)


def _same(old: Mapping[str, Any], new: Mapping[str, Any], key: str) -> bool:
    if key not in old or key not in new:
        return False
    return _canonical(old[key]) == _canonical(new[key])


def _canonical(value: Any) -> str:
    """Sorted keys, no spaces, ASCII, whole numbers without a fraction."""
    return json.dumps(_whole_numbers(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _whole_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole_numbers(item) for item in value]
    return value
