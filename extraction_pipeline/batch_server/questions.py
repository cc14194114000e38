"""Which requests ask a model the same: the measure of what was paid for twice. Pure functions."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from extraction_pipeline.batch_server.result_lines import write_json

SHORTEST_ID = 16
"""Characters. Shorter ids may be words of the document as well."""


def question_digest(body: Mapping[str, Any], custom_id: str) -> bytes:
    """A digest of what a request asks for: its body, model and all.

    The request's own id, which some clients repeat in the prompt, makes it no other question.
    """
    content = write_json(body)
    for text in _texts(_echo(custom_id)):
        if len(text) >= SHORTEST_ID:
            content = content.replace(orjson.dumps(text)[1:-1], b"")
    return hashlib.sha256(content).digest()


def _echo(custom_id: str) -> object:
    """The id, or what wire formats without ids of their own keep in its place: JSON."""
    try:
        return orjson.loads(custom_id)
    except orjson.JSONDecodeError:
        return custom_id


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
