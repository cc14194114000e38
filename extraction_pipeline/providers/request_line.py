"""One request as one line of a payload, in bytes that are always the same."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.providers.base import ModelRequest

_LINE_SEPARATORS = {
    character.encode(): f"\\u{ord(character):04x}".encode() for character in "\u0085\u2028\u2029"
}


def encoded_line(line: Mapping[str, Any], custom_id: str) -> bytes:
    """`line` as JSON without a newline in it.

    The Unicode line separators are escaped: they are legal inside a JSON string, but some readers
    of JSON lines end a line there. Raises `ConfigurationError` for what JSON cannot hold.
    """
    encoded = _encoded(line, custom_id, 0)
    if encoded.isascii():
        return encoded
    for separator, escaped in _LINE_SEPARATORS.items():
        encoded = encoded.replace(separator, escaped)
    return encoded


def canonical_line(line: Mapping[str, Any], custom_id: str) -> bytes:
    """`line` as canonical JSON: keys sorted, no spaces, nothing escaped that need not be.

    Raises as `encoded_line` does.
    """
    return _encoded(line, custom_id, orjson.OPT_SORT_KEYS)


def _encoded(line: Mapping[str, Any], custom_id: str, option: int) -> bytes:
    try:
        return orjson.dumps(line, option=option)
    except TypeError:
        problem = ConfigurationError(
            f"Request {custom_id} cannot be written as JSON in UTF-8.",
            remedy="Its text, schema or parameters hold a value that JSON or Unicode lacks.",
        )
    raise problem  # here, so that the cause, which quotes the text, does not hang on it


def checked_parameters(request: ModelRequest, reserved: Iterable[str]) -> dict[str, Any]:
    """The request's parameters, sorted. Raises `ConfigurationError` for those in `reserved`, which
    the pipeline sets itself."""
    taken = sorted(set(reserved) & request.parameters.keys())
    if taken:
        raise ConfigurationError(
            f"The parameters of model {request.model} set {', '.join(taken)}.",
            remedy="Take it out: the pipeline sets it from the extraction version itself.",
        )
    return dict(sorted(request.parameters.items()))
