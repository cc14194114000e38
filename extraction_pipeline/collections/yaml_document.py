"""YAML as a collection or price list may use it: plain data, with the line of every key.

A part of YAML is enough for them and the rest is refused: anchors and aliases (with them a
small file can grow without bound), tags, several documents in a file, keys that are not text, and
numbers or characters that JSON or the database cannot hold. Keys are taken as they are written, so
that a version called `1.0` or `on` keeps its name.
"""

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import yaml
from pydantic import JsonValue

from extraction_pipeline.collections.defect import Defect

Location: TypeAlias = tuple[str | int, ...]
"""The keys and list indices that lead from the top of a document to a value."""

_LARGEST_TEXT = 262_144
"""Characters; a collection with long instructions needs a tenth of it."""
MOST_BYTES = 4 * _LARGEST_TEXT
"""What that many characters take at most in UTF-8; no larger file need be read."""
_DEEPEST = 20
_LARGEST_INTEGER = 2**53 - 1
"""The largest integer that every reader of JSON keeps exactly (RFC 8259, section 6)."""
_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True)
class YamlDocument:
    """A document's data (`None` where it could not be parsed), its lines and its defects."""

    data: JsonValue
    lines: Mapping[Location, int]
    defects: tuple[Defect, ...]

    def known(self, location: Sequence[str | int]) -> Location:
        """The part of `location` that the file has. Elements that it lacks are passed over, such
        as the kind of a union, which pydantic puts between two keys."""
        found: Location = ()
        for element in location:
            if (*found, element) in self.lines:
                found = (*found, element)
        return found

    def line(self, location: Sequence[str | int]) -> int:
        """The line of `location`, or of its nearest ancestor that the file has."""
        return self.lines.get(self.known(location), 1)

    def value(self, location: Sequence[str | int]) -> JsonValue:
        """The value at the part of `location` that the file has."""
        value = self.data
        for element in self.known(location):
            if isinstance(value, dict):
                value = value[str(element)]
            elif isinstance(value, list):
                value = value[int(element)]
        return value


def parse_yaml(text: str) -> YamlDocument:
    """Read one YAML document. Never raises: what is wrong is in `defects`."""
    if len(text) > _LARGEST_TEXT:
        message = f"The file is longer than {_LARGEST_TEXT:,} characters."
        return _unparsed(Defect(1, message, "Such a file is short; is it the right one?"))
    try:
        refused = _refused_construct(text)
        if refused is not None:
            return _unparsed(refused)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # PyYAML lets the latter two through for an escape such as "\UFFFFFFFF".
        return _unparsed(_syntax_defect(text, error))
    if node is None:
        return _unparsed(Defect(1, "The file is empty.", "Write its keys in it, or remove it."))
    reading = _Reading()
    data = reading.value(node, ())
    return YamlDocument(data, reading.lines, tuple(reading.defects))


def forbidden_characters(text: str) -> str:
    """Those of `text` that may not be in a configuration: control characters but for line feed and
    tab (PostgreSQL refuses NUL, terminals obey some) and halves of surrogate pairs."""
    return "".join(
        character
        for character in text
        if unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t"
    )


def _unparsed(defect: Defect) -> YamlDocument:
    return YamlDocument(None, {}, (defect,))


def _refused_construct(text: str) -> Defect | None:
    """The first use of what a collection may not use. Reads events, which needs no recursion, so
    that what follows may recurse without fear."""
    depth = documents = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                return Defect(
                    line,
                    "A second document begins here.",
                    "Give each document a file of its own.",
                )
        if isinstance(event, yaml.AliasEvent) or (
            isinstance(event, yaml.NodeEvent) and event.anchor is not None
        ):
            return Defect(
                line, "Anchors and aliases (& and *) are not allowed.", "Write the value out."
            )
        if (
            isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
            and event.tag is not None
        ):
            return Defect(line, "Tags (!) are not allowed.", "Write a plain value.")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                return Defect(line, f"Nested more than {_DEEPEST} deep.", "Flatten it.")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return None


def _syntax_defect(text: str, error: Exception) -> Defect:
    remedy = "Check indentation, colons and quotes here and in the line before."
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        problem = error.problem or "cannot be read"
        if "'\\t'" in problem:
            remedy = "Indent with spaces, not with tabs."
        return Defect(mark.line + 1 if mark else 1, f"Not valid YAML: {problem}.", remedy)
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return Defect(line, "The file holds a control character.", "Remove it.")
    return Defect(1, "Not valid YAML.", remedy)


class _Reading:
    """One walk over a composed document, gathering values, lines and defects."""

    def __init__(self) -> None:
        self.lines: dict[Location, int] = {}
        self.defects: list[Defect] = []

    def value(self, node: yaml.Node, location: Location) -> JsonValue:
        self.lines.setdefault(location, _line(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, location)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        return [self.value(item, (*location, n)) for n, item in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, location: Location) -> JsonValue:
        mapping: dict[str, JsonValue] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._report(key_node, "A key is not text.", "Write it as a plain word.")
                continue
            key = self._text(key_node)
            if key in mapping:
                first = self.lines[(*location, key)]
                self._report(
                    key_node,
                    f"The key {key!r} is there twice.",
                    f"Keep this or that in line {first}.",
                )
                continue
            self.lines[(*location, key)] = _line(key_node)
            mapping[key] = self.value(value_node, (*location, key))
        return mapping

    def _scalar(self, node: yaml.ScalarNode) -> JsonValue:
        if node.tag == _TAG + "null":
            return None
        if node.tag == _TAG + "bool":
            return bool(_PLAIN.construct_yaml_bool(node))
        if node.tag not in (_TAG + "int", _TAG + "float"):
            return self._text(node)
        number = _number(node)
        if number is None:
            remedy = "Write another, or put it in quotes."
            self._report(node, "Not a number that JSON can hold.", remedy)
        return number

    def _text(self, node: yaml.ScalarNode) -> str:
        text = str(node.value)
        forbidden = forbidden_characters(text)
        if forbidden:
            message = f"The character U+{ord(forbidden[0]):04X} is not allowed."
            self._report(node, message, "Remove it or its escape.")
        return "".join(character for character in text if character not in forbidden)

    def _report(self, node: yaml.Node, message: str, remedy: str) -> None:
        self.defects.append(Defect(_line(node), message, remedy))


def _number(node: yaml.ScalarNode) -> int | float | None:
    """The number, or `None` for one that JSON cannot hold or that only looks like one (`0b_`)."""
    try:
        if node.tag == _TAG + "int":
            whole = int(_PLAIN.construct_yaml_int(node))
            return whole if abs(whole) <= _LARGEST_INTEGER else None
        real = float(_PLAIN.construct_yaml_float(node))
        return real if math.isfinite(real) else None
    except (ValueError, OverflowError):
        return None


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


_PLAIN = yaml.constructor.SafeConstructor()
