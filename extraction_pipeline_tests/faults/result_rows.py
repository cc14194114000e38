"""Changes to a result file in OpenAI's form, for `Proxy.plan_results`. All are deterministic.

Each takes rows by their place in the file. A file that has no such row stays as it is.
"""

import json
from collections.abc import Callable
from typing import Any

Change = Callable[[bytes], bytes]


def _rows(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.split(b"\n") if line]


def _content(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _on_rows(change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Change:
    return lambda content: _content(change(_rows(content)))


reversed_rows = _on_rows(lambda rows: rows[::-1])


def without(*places: int) -> Change:
    """Leave rows out."""
    return _on_rows(lambda rows: [row for at, row in enumerate(rows) if at not in places])


def repeated(place: int) -> Change:
    """Give one row again, at the end."""
    return _on_rows(lambda rows: rows + rows[place : place + 1])


def failed_first(content: bytes) -> bytes:
    """Put before all rows one of each that says that its request failed."""
    rows = _rows(content)
    error = {"code": "server_error", "message": "Try again."}
    failed = [{"custom_id": row["custom_id"], "response": None, "error": error} for row in rows]
    return _content(failed + rows)


def foreign(place: int, custom_id: str = "somebody-elses") -> Change:
    """Add a row with the answer of another one and an id that is not ours."""
    return _on_rows(
        lambda rows: rows + [row | {"custom_id": custom_id} for row in rows[place : place + 1]]
    )


def undecodable(place: int) -> Change:
    """Put a line that is no JSON where a row was."""

    def change(content: bytes) -> bytes:
        lines = content.splitlines(keepends=True)
        lines[place : place + 1] = [b'{"custom_id": "cut in the mid\n'] * (place < len(lines))
        return b"".join(lines)

    return change


def cut(content: bytes) -> bytes:
    """End in the middle of the last line."""
    return content[: -len(content.splitlines(keepends=True)[-1]) // 2]


def said(
    place: int, text: str | None, *, finish: str = "stop", refusal: str | None = None
) -> Change:
    """Let the model have said something else in one row."""

    def change(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for row in rows[place : place + 1]:
            if row["response"]:
                choice = row["response"]["body"]["choices"][0]
                choice["message"] |= {"content": text, "refusal": refusal}
                choice["finish_reason"] = finish
        return rows

    return _on_rows(change)


def envelope(place: int, **values: object) -> Change:
    """Change fields of one row's `response`, such as `request_id`."""

    def change(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for row in rows[place : place + 1]:
            row["response"] = {**(row["response"] or {}), **values}
        return rows

    return _on_rows(change)


def both(first: Change, second: Change) -> Change:
    """One change, then another."""
    return lambda content: second(first(content))
