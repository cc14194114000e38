"""Lays out paragraphs, lists and tables as plain text: what the readers of markup write into.

A heading or paragraph is a line with a blank line around it, an item a line that begins with "- "
or its number, a table row a line whose cells stand between " | ". A cell that spans rows is
repeated in each (unless it is long), so that every row can be understood by itself.
"""

import re
from dataclasses import dataclass, field

# HTML's white space; a no-break space is a character of the text and stays.
_WHITE_SPACE = re.compile(r"[ \t\r\n\f]+")
_MOST_COLUMNS = 20
_MOST_ROWS = 200
"""Declared spans beyond these are not believed."""
_LONGEST_REPEATED = 300
"""Characters up to which a cell that spans rows is repeated in each."""
_DEEPEST_INDENT = 40


@dataclass
class _Spanning:
    rows_left: int
    text: str


@dataclass
class _Table:
    spanning: dict[int, _Spanning] = field(default_factory=dict)
    """By column: cells of earlier rows that reach into the next ones."""
    cells: list[str] | None = None
    """The row being written, None between rows."""
    cell_parts: list[str] | None = None
    """The cell being written, None between cells."""
    cell_columns: int = 1
    cell_rows: int = 1


class TextBlocks:
    """Collects inline text into lines, and lines into one text."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._inline: list[str] = []
        self._blank_line_wanted = False
        self._indents: list[str] = []
        self._marker = ""
        self._tables: list[_Table] = []

    def text(self) -> str:
        """Everything written so far."""
        self.end_line()
        return "\n".join(self._lines)

    def inline(self, text: str) -> None:
        """Add to the current line; white space is collapsed when the line ends."""
        if text:
            self._inline.append(text)

    @property
    def last_character(self) -> str:
        """The last character of the current line, "" at its beginning."""
        return self._inline[-1][-1:] if self._inline else ""

    def end_line(self) -> None:
        """End the current line; nothing happens if it is empty."""
        line = _WHITE_SPACE.sub(" ", "".join(self._inline)).strip()
        self._inline.clear()
        if line:
            self._write(line)

    def verbatim(self, text: str) -> None:
        """Add lines whose white space counts."""
        self.end_line()
        for line in text.splitlines():
            self._write(line.rstrip())

    def gap(self) -> None:
        """End the line and leave a blank one before whatever comes next."""
        self.end_line()
        if not self._cell_open():
            self._blank_line_wanted = True

    def start_item(self, marker: str) -> None:
        """Begin a list item: its first line gets the marker, the others stand under it."""
        self.end_line()
        self._marker = marker
        self._indents.append(" " * len(marker))

    def end_item(self) -> None:
        """End the item begun last."""
        self.end_line()
        self._marker = ""
        if self._indents:
            self._indents.pop()

    def start_table(self) -> None:
        """Begin a table. Inside a cell of another one, the outer row is written out first."""
        self.end_line()
        if self._tables:
            outer = self._tables[-1]
            if outer.cell_parts:
                outer.cells = [*(outer.cells or []), " ".join(outer.cell_parts)]
                outer.cell_parts = []
            self._write_row(outer.cells or [])
            outer.cells = []
        self._tables.append(_Table())

    def end_table(self) -> None:
        """End the table begun last."""
        self.end_row()
        if self._tables:
            self._tables.pop()

    def start_row(self) -> None:
        """Begin a row of the current table."""
        self.end_row()
        if self._tables:
            self._tables[-1].cells = []

    def start_cell(self, *, columns: int = 1, rows: int = 1) -> None:
        """Begin a cell that covers so many columns and rows."""
        self.end_cell()
        if not self._tables:
            return
        table = self._tables[-1]
        if table.cells is None:
            table.cells = []
        self._fill_spanned(table, table.cells)
        table.cell_parts = []
        table.cell_columns = min(max(columns, 1), _MOST_COLUMNS)
        table.cell_rows = min(max(rows, 1), _MOST_ROWS)

    def end_cell(self) -> None:
        """End the current cell."""
        self.end_line()
        if not self._tables:
            return
        table = self._tables[-1]
        if table.cell_parts is None or table.cells is None:
            return
        text = " ".join(table.cell_parts)
        if table.cell_rows > 1:
            table.spanning[len(table.cells)] = _Spanning(
                table.cell_rows - 1, text if len(text) <= _LONGEST_REPEATED else ""
            )
        table.cells.append(text)
        table.cells.extend([""] * (table.cell_columns - 1))
        table.cell_parts = None

    def end_row(self) -> None:
        """End the current row and write it as one line."""
        self.end_cell()
        if not self._tables:
            return
        table = self._tables[-1]
        if table.cells is not None:
            self._fill_spanned(table, table.cells)
            self._write_row(table.cells)
            table.cells = None

    def _fill_spanned(self, table: _Table, cells: list[str]) -> None:
        while (spanning := table.spanning.get(len(cells))) is not None:
            spanning.rows_left -= 1
            if spanning.rows_left == 0:
                del table.spanning[len(cells)]
            cells.append(spanning.text)

    def _write_row(self, cells: list[str]) -> None:
        if any(cells):
            # The table's own cells are closed here, so that the line goes to the text
            # (or, for a table within a cell, into a line of its own all the same).
            self._append(" | ".join(cells).rstrip())

    def _cell_open(self) -> bool:
        return bool(self._tables) and self._tables[-1].cell_parts is not None

    def _write(self, line: str) -> None:
        if self._tables and self._tables[-1].cell_parts is not None:
            if line:
                self._tables[-1].cell_parts.append(line)
            return
        self._append(line)

    def _append(self, line: str) -> None:
        if self._blank_line_wanted and self._lines:
            self._lines.append("")
        self._blank_line_wanted = False
        if self._marker:
            prefix = "".join(self._indents[:-1])[:_DEEPEST_INDENT] + self._marker
            self._marker = ""
        else:
            prefix = "".join(self._indents)[:_DEEPEST_INDENT]
        self._lines.append(prefix + line if line else "")
