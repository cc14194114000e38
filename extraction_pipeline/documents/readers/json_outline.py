"""Reads JSON as an outline: one "name: value" a line, indented, in the order of the document.

An outline says the same as the JSON in about half the characters, and a string keeps its line
breaks and accents, so that words quoted from it are found again. Numbers keep their digits (0.50
stays 0.50). The walk is a loop with its own stack, so that deep nesting costs no recursion.
"""

import json
from collections.abc import Callable

from extraction_pipeline.documents.readable import NotReadable, UnreadableReason
from extraction_pipeline.documents.readers.attachment import looks_encoded

JsonValue = dict[str, "JsonValue"] | list["JsonValue"] | str | bool | None
"""Parsed JSON. Numbers are strings, as they were written."""

ReadString = Callable[[str, str, dict[str, JsonValue]], str | None]
"""Called with name, string and the object around it: the text to show instead, None for itself."""

_DEEPEST_INDENT = 80


def parse_json(text: str, most_characters: int) -> JsonValue:
    """The parsed text. Raises NotReadable if its outline would be longer than allowed.

    Raises ValueError if it is not JSON, RecursionError if nested too deeply.
    """
    # A comma parts two values, which take a character each, or is a character itself.
    if text.count(",") > most_characters:
        raise _too_long(most_characters)
    parsed: JsonValue = json.loads(
        text,
        # A line separator inside a string is a line feed by now, which JSON itself forbids.
        strict=False,
        parse_int=str,
        parse_float=str,
        parse_constant=str,
    )
    return parsed


def outline(value: JsonValue, read_string: ReadString, most_characters: int) -> str:
    """The outline of a parsed JSON text. Raises NotReadable if it is longer than allowed."""
    lines: list[str] = []
    characters = checked = 0
    # What begins the first line of a value, what begins its other lines, its name, the value, and
    # the object it lies in.
    Pending = tuple[str, str, str, JsonValue, dict[str, JsonValue]]
    pending: list[Pending] = [("", "", "", value, {})]
    while pending:
        # Indentation can make a small hostile file long, so the length is watched on the way.
        characters += sum(map(len, lines[checked:]))
        checked = len(lines)
        if characters > most_characters:
            raise _too_long(most_characters)
        first, rest, name, value, parent = pending.pop()
        if isinstance(value, (dict, list)) and value:
            if name:
                lines.append(f"{first}{name}:")
                first = rest = (rest + "  ")[:_DEEPEST_INDENT]
            children: list[Pending] = []
            if isinstance(value, dict):
                for key, child in value.items():
                    children.append((rest if children else first, rest, key, child, value))
            else:
                inner = (rest + "  ")[:_DEEPEST_INDENT]
                for child in value:
                    start = (rest if children else first) + "- "
                    children.append((start[-_DEEPEST_INDENT:], inner, "", child, {}))
            pending.extend(reversed(children))
            continue
        shown = _scalar(value, name, parent, read_string)
        if "\n" in shown:
            first_line, *others = shown.split("\n")
            if name:
                lines.append(f"{first}{name}:")
                first = f"{rest}  "
            lines.append(first + first_line)
            lines.extend(f"{rest}  {line}".rstrip() for line in others)
        else:
            lines.append(f"{first}{name}: {shown}" if name else first + shown)
    return "\n".join(lines)


def _too_long(most_characters: int) -> NotReadable:
    return NotReadable(
        UnreadableReason.TOO_LARGE,
        f"the text has more than {most_characters:,} characters, which is the limit",
    )


def _scalar(
    value: JsonValue, name: str, parent: dict[str, JsonValue], read_string: ReadString
) -> str:
    if isinstance(value, str):
        shown = read_string(name, value, parent)
        if shown is not None:
            return shown.strip("\n")
        if looks_encoded(value):
            return f"[{len(value)} characters of encoded content, not read]"
        return value.replace("\r\n", "\n").strip("\n")
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "{}" if isinstance(value, dict) else "[]"
