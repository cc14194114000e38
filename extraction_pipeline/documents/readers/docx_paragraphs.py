"""What a DOCX says about its paragraphs and tables: headings, list numbers, merged cells.

Word keeps the number of a list item nowhere; it is counted from the list's definition in
`numbering.xml` (ECMA-376 part 1, section 17.9). Counted here are decimal lists; letters and roman
numbers are shown as decimals.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from lxml import etree

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"

_WRAPPERS = frozenset(f"{W}{name}" for name in ("sdt", "sdtContent", "customXml", "smartTag"))
_DEEPEST_LEVEL = 8


@dataclass
class ParagraphStyles:
    """Answers what a paragraph is, and counts list items on the way through a document."""

    headings: frozenset[str]
    """Ids of the styles that are headings. Ids are translated, the names behind them are not."""
    list_levels: dict[str, tuple[str, int]]
    """By id of a style: the list and level that the style brings along."""
    bullets: frozenset[tuple[str, int]]
    """Lists and levels that have a bullet, or nothing, instead of a number."""
    counts: dict[tuple[str, int], int] = field(default_factory=dict)

    @classmethod
    def of(cls, document: Any) -> Self:
        """The styles and lists of an open python-docx document."""
        headings: set[str] = set()
        list_levels: dict[str, tuple[str, int]] = {}
        for style in document.styles.element.iterfind(f"{W}style"):
            style_id = style.get(f"{W}styleId") or ""
            name = _value_below(style, "name").lower()
            if name in {"title", "subtitle"} or name.startswith("heading"):
                headings.add(style_id)
            place = _list_place(style)
            if place is not None:
                list_levels[style_id] = place
        bullets: set[tuple[str, int]] = set()
        for relation in document.part.rels.values():
            if relation.reltype.endswith("/numbering") and not relation.is_external:
                bullets.update(_bullets(relation.target_part.element))
        return cls(frozenset(headings), list_levels, frozenset(bullets))

    def is_heading(self, paragraph: etree._Element) -> bool:
        """Whether a paragraph has a heading's style."""
        return _style_of(paragraph) in self.headings

    def list_level(self, paragraph: etree._Element) -> tuple[str, int] | None:
        """The list and level of a paragraph, None if it is no list item."""
        place = _list_place(paragraph) or self.list_levels.get(_style_of(paragraph))
        # List 0 takes a paragraph out of the list that its style names.
        if place is None or place[0] == "0" or self.is_heading(paragraph):
            return None
        return place

    def list_marker(self, paragraph: etree._Element) -> str | None:
        """What stands before a list item, with its indentation; counts the item."""
        place = self.list_level(paragraph)
        if place is None:
            return None
        list_id, level = place
        indent = "  " * level
        if place in self.bullets:
            return f"{indent}- "
        for deeper in range(level + 1, _DEEPEST_LEVEL + 1):
            self.counts.pop((list_id, deeper), None)
        self.counts[place] = self.counts.get(place, 0) + 1
        return f"{indent}{self.counts[place]}. "


def table_rows(table: etree._Element) -> Iterator[etree._Element]:
    """The rows of a table, those in content controls too, but not those of tables inside it."""
    yield from _unwrapped(table, f"{W}tr")


def vertical_merges(rows: list[etree._Element]) -> dict[etree._Element, int]:
    """For cells that take part in a vertical merge: the rows they cover, 0 if they are covered."""
    merges: dict[etree._Element, int] = {}
    open_cells: dict[int, etree._Element] = {}
    for row in rows:
        column = 0
        for cell in _unwrapped(row, f"{W}tc"):
            merge = cell.find(f"{W}tcPr/{W}vMerge")
            if merge is None:
                open_cells.pop(column, None)
            elif value_of(merge) != "restart" and column in open_cells:
                merges[open_cells[column]] += 1
                merges[cell] = 0
            else:
                open_cells[column] = cell
                merges[cell] = 1
            span = _value_below(cell.find(f"{W}tcPr"), "gridSpan")
            column += int(span) if span.isdigit() else 1
    return merges


def is_on(properties: etree._Element, name: str) -> bool:
    """Whether a property that can only be on or off is there and on."""
    element = properties.find(f"{W}{name}")
    return element is not None and value_of(element) not in {"0", "false", "off"}


def value_of(element: etree._Element) -> str:
    """The `w:val` of an element, "" without one."""
    return element.get(f"{W}val") or ""


def _unwrapped(parent: etree._Element, tag: str) -> Iterator[etree._Element]:
    pending = list(reversed(parent))
    while pending:
        element = pending.pop()
        if element.tag == tag:
            yield element
        elif element.tag in _WRAPPERS:
            pending.extend(reversed(element))


def _style_of(paragraph: etree._Element) -> str:
    return _value_below(paragraph.find(f"{W}pPr"), "pStyle")


def _list_place(owner: etree._Element) -> tuple[str, int] | None:
    numbering = owner.find(f"{W}pPr/{W}numPr")
    list_id = _value_below(numbering, "numId")
    if not list_id:
        return None
    level = _value_below(numbering, "ilvl")
    return list_id, min(int(level), _DEEPEST_LEVEL) if level.isdigit() else 0


def _bullets(numbering: etree._Element) -> Iterator[tuple[str, int]]:
    formats: dict[tuple[str, int], str] = {}
    for abstract in numbering.iterfind(f"{W}abstractNum"):
        for level in abstract.iterfind(f"{W}lvl"):
            place = level.get(f"{W}ilvl") or ""
            if place.isdigit():
                key = (abstract.get(f"{W}abstractNumId") or "", int(place))
                formats[key] = _value_below(level, "numFmt")
    for instance in numbering.iterfind(f"{W}num"):
        abstract_id = _value_below(instance, "abstractNumId")
        for (owner, level_number), number_format in formats.items():
            if owner == abstract_id and number_format in {"bullet", "none", ""}:
                yield instance.get(f"{W}numId") or "", level_number


def _value_below(element: etree._Element | None, name: str) -> str:
    child = element.find(f"{W}{name}") if element is not None else None
    return value_of(child) if child is not None else ""
