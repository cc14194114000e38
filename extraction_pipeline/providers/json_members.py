"""The members of a JSON object, each with the exact text of its value."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(parse_int=float)  # Python refuses to read integers of 4,300 digits


@dataclass(frozen=True)
class JsonMember:
    """A value, and how it is written. Whole numbers are read as floats."""

    value: Any = field(repr=False)
    text: str = field(repr=False)


def json_members(line: bytes) -> dict[str, JsonMember]:
    """The members of the one object in `line`. What is within a value stays as it is written.

    Raises `ValueError`, without a quote, for anything else, and for a name that stands twice: which
    of the two is meant nobody knows.
    """
    try:
        return _read(line.decode("utf-8-sig"))
    except (ValueError, IndexError, RecursionError):
        pass
    raise ValueError("it is not one JSON object with each name once")


def _read(text: str) -> dict[str, JsonMember]:
    members: dict[str, JsonMember] = {}
    at = _after("{", text, 0)
    closed = text[at] == "}"
    while not closed:
        name, at = _DECODER.raw_decode(text, at)
        if not isinstance(name, str) or name in members:
            raise ValueError
        start = _after(":", text, at)
        value, end = _DECODER.raw_decode(text, start)
        members[name] = JsonMember(value, text[start:end])
        at = _skip(text, end)
        closed = text[at] == "}"
        if not closed:
            at = _after(",", text, at)
    if _skip(text, at + 1) != len(text):
        raise ValueError
    return members


def _after(mark: str, text: str, at: int) -> int:
    """Where the next token begins behind this mark, which must stand at `at` or after blanks."""
    at = _skip(text, at)
    if text[at] != mark:
        raise ValueError
    return _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None  # it matches nothing as well
    return match.end()
