"""Answers with other words in them, in each wire format: pure functions."""

from collections.abc import Callable, Collection
from typing import Any

import orjson

from extraction_pipeline.batch_server.dialects import Dialect
from extraction_pipeline.batch_server.faults.plan import (
    CountsSaid,
    ListLags,
    ResultsPlace,
    StateSaid,
)
from extraction_pipeline.batch_server.result_lines import write_json

Rewrite = ListLags | StateSaid | CountsSaid | ResultsPlace
_Fields = dict[str, Any]

_COUNTS = {
    Dialect.OPENAI: ("request_counts",),
    Dialect.ANTHROPIC: ("request_counts",),
    Dialect.GEMINI: ("metadata", "batchStats"),
}
_INFRAI_COUNTS = ("total_count", "completed_count", "failed_count")
_STATES = {
    Dialect.OPENAI: ("status",),
    Dialect.ANTHROPIC: ("processing_status",),
    Dialect.GEMINI: ("metadata", "state"),
    Dialect.INFRAI: ("data", "status"),
}
_LISTS = ("data", "operations", "files")


def cut_at(body: bytes, at: str) -> bytes:
    """The body up to a bit before its end: in the middle of its last line, or before it."""
    lines = body.splitlines(keepends=True)
    if not lines:
        return body
    whole = b"".join(lines[:-1])
    if at == "line_end" and whole:
        return whole
    return whole + lines[-1][: len(lines[-1]) // 2]


def garbled(body: bytes, line: int) -> bytes:
    """The body with one line, if it has that many, whose second half is lost."""
    lines = body.splitlines(keepends=True)
    if line < len(lines):
        content = lines[line].rstrip(b"\n")
        kept = content[: len(content) // 2]
        ending = lines[line][len(content) :]
        lines[line] = kept.ljust(len(content), b" ") + ending
    return b"".join(lines)


def rewritten(body: bytes, dialect: Dialect, fault: Rewrite, young: Collection[str]) -> bytes:
    """The body of a good answer as the fault wants it. `young` are ids that lists do not show."""
    content = orjson.loads(body)
    match fault:
        case ListLags():
            _hide(content, young)
        case StateSaid():
            _set(content, _STATES[dialect], fault.word)
        case CountsSaid():
            _recount(content, dialect, fault.what)
        case ResultsPlace():
            _misplace(content, dialect, fault.what)
    return write_json(content)


def _hide(content: _Fields, young: Collection[str]) -> None:
    for name in _LISTS:
        if isinstance(content.get(name), list):
            content[name] = [one for one in content[name] if _id(one) not in young]
            if content[name] and "last_id" in content:
                content["first_id"], content["last_id"] = (
                    content[name][0]["id"],
                    content[name][-1]["id"],
                )


def _id(one: _Fields) -> str:
    return str(one.get("id") or one.get("name", "")).rpartition("/")[2]


def _set(content: _Fields, path: tuple[str, ...], value: object) -> None:
    *above, last = path
    for name in above:
        content = content.get(name) or {}
    content[last] = value


def _recount(content: _Fields, dialect: Dialect, what: str) -> None:
    if dialect is Dialect.INFRAI:
        _recount_fields(content["data"], _INFRAI_COUNTS, what)
        return
    *above, last = _COUNTS[dialect]
    for name in above:
        content = content[name]
    counts = content.get(last, {})
    if what == "missing":
        content.pop(last, None)
    elif what == "null":
        content[last] = None
    else:
        _recount_fields(counts, tuple(counts), what)


def _recount_fields(counts: _Fields, names: tuple[str, ...], what: str) -> None:
    changes: dict[str, Callable[[Any], Any]] = {
        "null": lambda _: None,
        "zero": lambda value: type(value)(0),
        "other_type": lambda value: int(value) if isinstance(value, str) else str(value),
        "too_many": lambda value: type(value)(int(value) + 7),
    }
    for name in names:
        if what == "missing":
            counts.pop(name, None)
        else:
            counts[name] = changes[what](counts[name])


def _misplace(content: _Fields, dialect: Dialect, what: str) -> None:
    match dialect:
        case Dialect.OPENAI:
            _lose(content, "output_file_id", what, "")
        case Dialect.ANTHROPIC:
            _lose(content, "results_url", what, "")
        case Dialect.GEMINI:
            _lose(content, "response", what, {})
            _lose(content["metadata"], "output", what, {})
        case Dialect.INFRAI:
            return


def _lose(fields: _Fields, name: str, what: str, empty: object) -> None:
    if what == "missing":
        fields.pop(name, None)
    elif fields.get(name):
        fields[name] = None if what == "null" else empty
