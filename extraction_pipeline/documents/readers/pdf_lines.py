"""Puts the words of a PDF page back on their lines, and the entries of a form behind their labels.

Programs that place every word by itself (Google Docs, among others) move up and down between two
words, which pypdf takes for a line end: it gives one word a line. Words that stand on one
baseline are joined here. The order of the content stream is kept, because it is what keeps the
columns of a page apart.
"""

import math
from dataclasses import dataclass
from typing import Any

from extraction_pipeline.documents.readers.pdf_entries import MARK, UNTICKED, Entry

_NEAR = 10.0
"""Points between an entry's baseline and that of the line it belongs to."""
_ON_ONE_LINE = 3.0
"""Points by which the baselines of words on one line may differ."""
_MOST_COMPARISONS = 5_000_000

_UNKNOWN = math.nan


@dataclass(frozen=True)
class _Piece:
    """A run of text without a line end, or line ends alone, with the baseline it stands on.

    A position that is not known is not a number, so that no comparison with it holds.
    """

    text: str
    x: float = _UNKNOWN
    y: float = _UNKNOWN
    height: float = 0.0


class PageLines:
    """Collects the runs of a page from pypdf, then gives its text."""

    def __init__(self) -> None:
        self._runs: list[str] = []
        self._pieces: list[_Piece] = []

    def add(
        self, text: str, matrix: list[float], text_matrix: list[float], _font: Any, size: float
    ) -> None:
        """pypdf's `visitor_text`: the next run, with both matrices and the size of its font."""
        if not text:
            return
        self._runs.append(text)
        a, b, c, d, e, f = matrix
        x, y = text_matrix[4], text_matrix[5]
        scale = math.hypot(
            text_matrix[2] * a + text_matrix[3] * c, text_matrix[2] * b + text_matrix[3] * d
        )
        first, *others = text.split("\n")
        if first:
            self._pieces.append(_Piece(first, x * a + y * c + e, x * b + y * d + f, size * scale))
        for other in others:
            self._pieces.append(_Piece("\n"))
            if other:
                # Only where a run begins is known, not where its second line does.
                self._pieces.append(_Piece(other))

    def text(self, plain: str, entries: list[Entry]) -> str:
        """The text of the page. `plain` is pypdf's own, which must have the same characters."""
        pieces = self._pieces if "".join(self._runs) == plain else [_Piece(plain)]
        placed: dict[int, list[Entry]] = {}
        left_over: list[Entry] = []
        for entry in entries:
            index = _place_for(entry, pieces, len(entries))
            if index is None:
                left_over.append(entry)
            else:
                placed.setdefault(index, []).append(entry)
        lines = [_joined(pieces, placed)]
        for entry in left_over:
            if entry.text not in {MARK, UNTICKED}:
                lines.append(f"{entry.label}: {entry.text}" if entry.label else entry.text)
        return "\n".join(lines)


def _place_for(entry: Entry, pieces: list[_Piece], entries: int) -> int | None:
    """Before which piece an entry belongs, None if no line is near it."""
    if entries * len(pieces) > _MOST_COMPARISONS:
        return None
    near = [index for index, piece in enumerate(pieces) if abs(piece.y - entry.y) < _NEAR]
    # A label stands to the left of what is entered; a box may stand first on its line.
    candidates = [index for index in near if pieces[index].x <= entry.x + 2.0] or near
    if not candidates:
        return None
    y = pieces[min(candidates, key=lambda index: abs(pieces[index].y - entry.y))].y
    line = [index for index in candidates if abs(pieces[index].y - y) < _ON_ONE_LINE]
    if pieces[line[0]].x <= entry.x + 2.0:
        return max(line, key=lambda index: (pieces[index].x, index)) + 1
    return min(line, key=lambda index: pieces[index].x)


def _joined(pieces: list[_Piece], placed: dict[int, list[Entry]]) -> str:
    parts: list[str] = []
    last: _Piece | None = None
    line_ends = 0
    for index, piece in enumerate([*pieces, _Piece("")]):
        entered = sorted(placed.get(index, []), key=lambda entry: entry.x)
        if piece.text == "\n":
            parts.extend(f" {entry.text} " for entry in entered)
            line_ends += 1
            continue
        if line_ends and last is not None and _same_line(last, piece):
            joint = "" if parts[-1].endswith(" ") or piece.text.startswith(" ") else " "
            parts.append(joint)
        else:
            parts.append("\n" * line_ends)
        line_ends = 0
        parts.extend(f" {entry.text} " for entry in entered)
        parts.append(piece.text)
        last = piece
    return "".join(parts)


def _same_line(left: _Piece, right: _Piece) -> bool:
    return right.x > left.x and abs(right.y - left.y) < 0.2 * max(right.height, 1.0)
