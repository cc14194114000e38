"""One published record beside its source: every value with the words that support it."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from extraction_pipeline.schemas.document_type import DocumentType

WIDTH = 50


@dataclass(frozen=True)
class RecordLine:
    """One value of a record, and the document's words for it, if it quotes any."""

    field: str
    value: str
    words: str


def in_schema_order(kind: DocumentType, body: Mapping[str, Any]) -> dict[str, Any]:
    """The record with its fields in the order of the schema, which `jsonb` does not keep."""
    return kind.model.model_validate(body).model_dump(mode="json")


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


def render_record(body: Mapping[str, Any], most: int) -> str:
    """Two columns for a terminal: value on the left, the document's words on the right; after
    `most` values the rest is only counted."""
    lines: list[str] = []
    values = list(record_lines(body))
    for line in values[:most]:
        left = textwrap.wrap(f"{line.field}: {line.value}", WIDTH, subsequent_indent="    ")
        right = textwrap.wrap(f"“{line.words}”", WIDTH) if line.words else []
        for row in range(max(len(left), len(right))):
            cells = (left[row] if row < len(left) else "", right[row] if row < len(right) else "")
            lines.append(f"  {cells[0]:<{WIDTH}}  {cells[1]}".rstrip())
    if len(values) > most:
        lines.append(f"  … and {len(values) - most} more values")
    return "\n".join(lines)
