"""Reading a large JSON object whose bulk is one array: item by item, never whole in memory."""

import codecs
import json
import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, BinaryIO, NoReturn

PIECE = 256 * 1024
"""Bytes that are read at once, at least."""
LONGEST_SCALAR = 32
"""Characters, at least as many as of any literal, number part or escape. An error this near to the
end of what was read may only mean that more has to be read."""

_SPACE = re.compile(r"[ \t\n\r]*")


class MalformedJson(ValueError):
    """The content is not what it should be. The message quotes nothing of it."""


class JsonItems:
    """The items of one array of a JSON object, in the order of the file.

    `path` leads to the array: for every level the names that its key may have. What stands beside
    the array is in `rest` when the iteration is at its end, and `found` says whether the array was
    there. Iterating raises `MalformedJson`.
    """

    def __init__(self, file: BinaryIO, path: Sequence[AbstractSet[str]]) -> None:
        self.rest: dict[str, Any] = {}
        self.found = False
        self._text = _Text(file)
        self._path = path

    def __iter__(self) -> Iterator[Any]:
        yield from self._object(self.rest, 0)
        self._text.expect_end()

    def _object(self, into: dict[str, Any], level: int) -> Iterator[Any]:
        text = self._text
        text.take("{")
        if text.peek() == "}":
            text.take("}")
            return
        while True:
            key = text.value()
            if not isinstance(key, str):
                raise MalformedJson("A key of the body is not a text.")
            text.take(":")
            on_path = level < len(self._path) and key in self._path[level]
            is_last = level + 1 == len(self._path)
            if on_path and is_last and text.peek() == "[":
                if self.found:
                    raise MalformedJson(f"The body has {key} twice.")
                self.found = True
                yield from self._array()
            elif on_path and not is_last and text.peek() == "{":
                nested: dict[str, Any] = {}
                into[key] = nested
                yield from self._object(nested, level + 1)
            else:
                into[key] = text.value()
            if text.take(",}") == "}":
                return

    def _array(self) -> Iterator[Any]:
        text = self._text
        text.take("[")
        if text.peek() == "]":
            text.take("]")
            return
        while True:
            yield text.value()
            if text.take(",]") == "]":
                return


class _Text:
    """A window on the file's text, that grows to what has to be looked at in one piece."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        self._ended = False

    def peek(self) -> str:
        """The next character that is not a space."""
        found = self._next()
        if not found:
            raise MalformedJson("The body ends too early.")
        return found

    def take(self, expected: str) -> str:
        """Pass over the next character, which has to be one of these."""
        found = self.peek()
        if found not in expected:
            raise MalformedJson("The body is not well-formed JSON, or not a JSON object.")
        self._at += 1
        return found

    def value(self) -> Any:
        """The next value."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                unfinished = (
                    error.msg.startswith("Unterminated string")
                    or error.pos > len(self._text) - LONGEST_SCALAR
                )
                if unfinished and self._read_on():
                    continue
                raise MalformedJson("The body is not well-formed JSON.") from None
            except MalformedJson:
                raise
            except RecursionError:
                raise MalformedJson("The body is nested too deeply.") from None
            except ValueError:
                # Python's own limit on the digits of a number.
                raise MalformedJson("The body holds a number that is too long.") from None
            # A number near the end of the window may go on behind it, as `1` does in `1e+5`.
            if end > len(self._text) - len("e+5") and self._read_on():
                continue
            self._at = end
            return value

    def expect_end(self) -> None:
        """Nothing but spaces may be left."""
        if self._next():
            raise MalformedJson("Something follows the body's JSON.")

    def _next(self) -> str:
        """The next character that is not a space; empty at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read_on():
                return ""

    def _read_on(self) -> bool:
        """Read as much again as is in the window; whether there was anything."""
        if self._ended:
            return False
        raw = self._file.read(max(PIECE, len(self._text) - self._at))
        self._ended = not raw
        try:
            more = self._decoder.decode(raw, final=self._ended)
        except UnicodeDecodeError:
            raise MalformedJson("The body is not UTF-8.") from None
        if self._ended:
            return False
        self._text = self._text[self._at :] + more
        self._at = 0
        return True


def _refuse(constant: str) -> NoReturn:
    raise MalformedJson("The body holds NaN or Infinity, which JSON does not have.")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
