"""The name of a JSON Schema that came without one.

OpenAI's wire format names the schema of an answer; Anthropic's and Gemini's do not. The rules go
by the name, so it is found again: by the schema's title, or by the properties it asks for.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from extraction_pipeline.batch_server.baseline import schema_names
from extraction_pipeline.schemas.registry import find_document_type

NAMELESS = "response"
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")


def schema_name(json_schema: Mapping[str, Any]) -> str:
    """A name of `[a-z0-9_]`, at most 64 characters: that of the rules that fit, if any do."""
    title = json_schema.get("title")
    named = _snake_case(title)[:64] if isinstance(title, str) else ""
    if named in schema_names():
        return named
    properties = json_schema.get("properties")
    if isinstance(properties, Mapping):
        for name, known in _properties_by_name().items():
            if known <= properties.keys():
                return name
    return named or NAMELESS


def _snake_case(title: str) -> str:
    return "_".join(_WORD_START.sub(" ", title).lower().split())


@cache
def _properties_by_name() -> dict[str, frozenset[str]]:
    return {
        name: frozenset(find_document_type(name).json_schema["properties"])
        for name in schema_names()
    }
