"""From a model's answer to a record, or to the reasons why it is none. Pure.

An answer is exactly one JSON object. A code fence around the whole of it is tolerated, since
models without schema enforcement add one and it takes nothing away; a word before or after the
object is not, because then nobody knows which part was meant. Repeated keys, `NaN` and infinite
numbers are refused rather than read in one of several ways.

What is stored has to fit PostgreSQL's `jsonb`: NUL is removed, and a lone surrogate (half of a
character) becomes U+FFFD. Nothing else of the text is changed, except that models derived from
`Record` strip white space at the edges and drop exact repetitions from lists that are sets.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NoReturn

from pydantic import BaseModel, ValidationError

from extraction_pipeline.schemas.document_type import DocumentType

LONGEST_ANSWER = 16 * 1024 * 1024
"""Characters. No batch model writes as much; more is not looked at."""

DEEPEST_ANSWER = 100
"""Levels of objects and lists."""

_MOST_PROBLEMS = 50
_OPENING_FENCE = re.compile(r"```[A-Za-z0-9_+-]{0,20}[ \t]*\r?\n")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_SMALL = 10**15
"""Numbers below it are read alike by all parsers."""
_BYTE_ORDER_MARK = "\ufeff"


class InvalidReason(StrEnum):
    """Why an answer is not a record."""

    EMPTY = "empty"
    NOT_JSON = "not_json"
    NOT_AN_OBJECT = "not_an_object"
    SCHEMA = "schema"


@dataclass(frozen=True)
class Problem:
    """One problem of an answer, free of its values.

    `path` is the place as `medications.0.name`, with `*` for a key that the schema does not know
    (such a key is the model's text). `kind` is pydantic's error type, or one of `json_invalid`,
    `duplicate_key`, `too_long`, `too_deep`.
    """

    path: str
    kind: str


@dataclass(frozen=True)
class ValidAnswer:
    """A validated and normalized record: plain JSON values that `jsonb` takes as they are."""

    record: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class InvalidAnswer:
    """An answer that is no record. At most 50 problems are listed; all of it is safe to log."""

    reason: InvalidReason
    problems: tuple[Problem, ...]


class _Unreadable(Exception):
    """JSON that this module refuses although a parser could read it."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def validate_answer(document_type: DocumentType, text: str) -> ValidAnswer | InvalidAnswer:
    """Parse, validate and normalize `text`, the model's answer. Never raises for any text."""
    body = _without_fence(text.strip().removeprefix(_BYTE_ORDER_MARK).strip())
    if not body:
        return InvalidAnswer(InvalidReason.EMPTY, ())
    try:
        value = _parse(body)
        if not isinstance(value, dict):
            return InvalidAnswer(InvalidReason.NOT_AN_OBJECT, (Problem("", type(value).__name__),))
        storable = body if _is_storable(body, value) else json.dumps(_storable(value, 0))
    except _Unreadable as refusal:
        return InvalidAnswer(InvalidReason.NOT_JSON, (Problem("", refusal.kind),))
    try:
        record = document_type.model.model_validate_json(storable, strict=True)
    except ValidationError as error:
        return InvalidAnswer(InvalidReason.SCHEMA, _problems(error, document_type))
    return ValidAnswer(_plain(record))


def _plain(record: BaseModel) -> dict[str, Any]:
    return record.model_dump(mode="json", by_alias=True)


def _without_fence(text: str) -> str:
    opening = _OPENING_FENCE.match(text)
    if opening and text.endswith("```") and len(text) >= opening.end() + 3:
        return text[opening.end() : -3].strip()
    return text


def _parse(text: str) -> Any:
    if len(text) > LONGEST_ANSWER:
        raise _Unreadable("too_long")
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except RecursionError:
        raise _Unreadable("too_deep") from None
    except ValueError:
        # The parser's own message quotes the position only, but its exception holds the answer.
        raise _Unreadable("json_invalid") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _Unreadable("duplicate_key")
    return made


def _refuse_constant(_name: str) -> NoReturn:
    raise _Unreadable("json_invalid")


def _is_storable(body: str, value: dict[str, Any]) -> bool:
    """Whether a JSON text and its `value` hold nothing that `_storable` changes or refuses, nor a
    number that some parser may read otherwise. It may say no where that is not so."""
    if "\\u" in body or "\x00" in body:
        return False
    if not body.isascii() and _UNSTORABLE.search(body) is not None:
        return False
    level: list[Any] = [value]
    for _ in range(DEEPEST_ANSWER):
        deeper: list[Any] = []
        for one in level:
            for inner in one.values() if isinstance(one, dict) else one:
                if isinstance(inner, dict | list):
                    deeper.append(inner)
                elif isinstance(inner, float | int) and not -_SMALL < inner < _SMALL:
                    return False
        if not deeper:
            return True
        level = deeper
    return False


def _storable(value: Any, depth: int) -> Any:
    if depth > DEEPEST_ANSWER:
        raise _Unreadable("too_deep")
    if isinstance(value, str):
        return _storable_text(value)
    if isinstance(value, dict):
        # Keys stay as they are: a cleaned one could fall together with a field's name.
        return {key: _storable(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_storable(inner, depth + 1) for inner in value]
    return value


def _storable_text(text: str) -> str:
    return _UNSTORABLE.sub(lambda match: "" if match[0] == "\x00" else "\ufffd", text)


def _problems(error: ValidationError, document_type: DocumentType) -> tuple[Problem, ...]:
    known = frozenset(_property_names(document_type.json_schema))
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return tuple(
        Problem(".".join(_step(step, known) for step in detail["loc"]), detail["type"])
        for detail in details[:_MOST_PROBLEMS]
    )


def _step(step: int | str, known: frozenset[str]) -> str:
    return str(step) if isinstance(step, int) or step in known else "*"


def _property_names(schema: Mapping[str, Any]) -> Iterator[str]:
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            properties = node.get("properties")
            if isinstance(properties, Mapping):
                yield from properties
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
