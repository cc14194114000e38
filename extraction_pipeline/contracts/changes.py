"""What changed between two JSON documents, a line for each place: pure."""

import json
from collections.abc import Iterator
from typing import Any

_LONGEST = 80
_ABSENT = object()


def changes(before: str, after: str) -> list[str]:
    """The places in which two JSON documents differ, as `path: old → new`."""
    return list(_changes("", json.loads(before), json.loads(after)))


def _changes(path: str, before: Any, after: Any) -> Iterator[str]:
    if before == after:
        return
    match before, after:
        case dict(), dict():
            names = [*before, *(name for name in after if name not in before)]
            for name in names:
                inner = f"{path}.{name}" if path else str(name)
                yield from _changes(inner, before.get(name, _ABSENT), after.get(name, _ABSENT))
        case list(), list() if len(before) == len(after):
            for number, pair in enumerate(zip(before, after, strict=True)):
                yield from _changes(f"{path}[{number}]", *pair)
        case list(), list():
            yield from (f"{path}: {_shown(one)} is gone" for one in before if one not in after)
            yield from (f"{path}: {_shown(one)} is new" for one in after if one not in before)
        case _ if before is _ABSENT:
            yield f"{path}: {_shown(after)} is new"
        case _ if after is _ABSENT:
            yield f"{path}: {_shown(before)} is gone"
        case _:
            yield f"{path}: {_shown(before)} → {_shown(after)}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
