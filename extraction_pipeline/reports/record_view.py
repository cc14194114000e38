"""One published record beside its source: every value with the words that support it."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH = 50


@dataclass(frozen=True)
class RecordLine:
    """One value of a record, and the document's words for it, if it quotes any."""

    field: str
    value: str
    words: str


def record_lines(body: Mapping[str, Any]) -> Iterator[RecordLine]:
    """The record's values in the order of the schema; what the document does not state is left
    out."""
    for name, value in body.items():
        if value is None:
            continue
        if isinstance(value, Sequence) and not isinstance(value, str):
            if not value:
                yield RecordLine(name, "(stated: none)", "")
            for item in value:
                yield _line(name, item)
        else:
            yield _line(name, value)


def _line(name: str, value: Any) -> RecordLine:
    if not isinstance(value, Mapping):
        return RecordLine(name, str(value), "")
    stated = [
        str(part) if not isinstance(part, list) else ", ".join(map(str, part))
        for key, part in value.items()
        if key not in ("evidence", "iso") and part not in (None, [], "not_stated")
    ]
    if value.get("iso"):
        stated.append(f"({value['iso']})")
    return RecordLine(name, " ".join(stated), " … ".join(value.get("evidence", ())))


def render_record(body: Mapping[str, Any]) -> str:
    """Two columns for a terminal: value on the left, the document's words on the right."""
    lines: list[str] = []
    for line in record_lines(body):
        left = textwrap.wrap(f"{line.field}: {line.value}", WIDTH, subsequent_indent="    ")
        right = textwrap.wrap(f"“{line.words}”", WIDTH) if line.words else []
        for row in range(max(len(left), len(right))):
            cells = (left[row] if row < len(left) else "", right[row] if row < len(right) else "")
            lines.append(f"  {cells[0]:<{WIDTH}}  {cells[1]}".rstrip())
    return "\n".join(lines)
