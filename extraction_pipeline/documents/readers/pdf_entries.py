"""What people entered on a PDF page: form fields, text typed onto it, ticks drawn over a box.

None of it is in the page's own text: a form filled in without a form program ("free text"
annotations) or with one (fields) keeps its entries in annotations (ISO 32000-2, section 12.5).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pypdf import PageObject

_LARGEST_TICK = 30.0
"""Side in points (1/72 inch) up to which a drawn mark counts as a tick rather than a picture."""
_ONE_LINE = 24.0
"""Height in points up to which an entry is one line of text."""
MARK = "[mark]"
"""Stands for a tick that was drawn; whether it means yes is for the reader of the form."""
UNTICKED = "[ ]"
_DRAWN = frozenset(["/Stamp", "/Ink", "/Line", "/PolyLine", "/Polygon"])


@dataclass(frozen=True)
class Entry:
    """Something entered on a page, and where: left edge and baseline, in points."""

    text: str
    label: str
    """The field's own name, "" if it has none."""
    x: float
    y: float


def entries_on(page: PageObject) -> Iterator[Entry]:
    """The entries of a page in the order of the file."""
    annotations = page.get("/Annots")
    annotations = annotations.get_object() if annotations is not None else None
    for reference in annotations or []:
        annotation = reference.get_object()
        if annotation is None:
            continue
        kind = annotation.get("/Subtype")
        left, bottom, right, top = _box(annotation)
        if kind == "/FreeText":
            text, label = str(annotation.get("/Contents") or ""), ""
        elif kind == "/Widget":
            text, label = _field_value(annotation), _field_label(annotation)
        elif kind in _DRAWN and max(right - left, top - bottom) <= _LARGEST_TICK:
            text, label = MARK, ""
            left = (left + right) / 2
        else:
            continue
        text = " ".join(text.split())
        if text:
            height = top - bottom
            baseline = bottom + 0.28 * height if height <= _ONE_LINE else top - 11.0
            yield Entry(text, label, left, baseline)


def _box(annotation: Any) -> tuple[float, float, float, float]:
    box = annotation.get("/Rect")
    numbers = [float(number) for number in box.get_object()] if box is not None else []
    if len(numbers) != 4:
        return 0.0, 0.0, 0.0, 0.0
    x1, y1, x2, y2 = numbers
    return min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)


def _field_value(field: Any) -> str:
    kind = _inherited(field, "/FT")
    if kind == "/Btn":
        state = field.get("/AS")
        if state is None:
            # A push button.
            return ""
        return UNTICKED if state == "/Off" else "[x]"
    return _as_text(_inherited(field, "/V")) if kind in {"/Tx", "/Ch"} else ""


def _field_label(field: Any) -> str:
    label = _inherited(field, "/TU") or _inherited(field, "/T") or ""
    return " ".join(str(label).split())


def _inherited(field: Any, key: str) -> Any:
    # A field's parts inherit from the field; in a damaged file the parents may form a ring.
    for _ in range(32):
        if key in field:
            return field[key]
        parent = field.get("/Parent")
        if parent is None:
            return None
        field = parent.get_object()
    return None


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(str(item.get_object()) for item in value)
    get_data: Callable[[], bytes] | None = getattr(value, "get_data", None)
    if get_data is not None:
        return get_data().decode("utf-8", "replace")
    return str(value)
