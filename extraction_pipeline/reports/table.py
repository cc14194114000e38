"""Plain text tables for a terminal."""

from collections.abc import Sequence

Cell = str | int | float | None


def render_table(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """A table with aligned columns, numbers to the right; `(none)` where there are no rows."""
    if not rows:
        return "(none)"
    shown = [[_text(cell) for cell in row] for row in rows]
    widths = [
        max(len(line[column]) for line in [list(header), *shown]) for column in range(len(header))
    ]
    right = [
        all(isinstance(row[column], int | float) for row in rows) for column in range(len(header))
    ]

    def line(cells: Sequence[str]) -> str:
        return "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(cells, widths, right, strict=True)
        ).rstrip()

    return "\n".join([line(header), line(["-" * width for width in widths]), *map(line, shown)])


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
