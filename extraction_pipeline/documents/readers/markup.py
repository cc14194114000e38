"""Writes the text of HTML, and of the narrative blocks of C-CDA, in the order of the document.

The two share their vocabulary for what matters (tables, breaks, sub- and superscript), and their
other names do not collide, so one walk serves both. It is a loop over events, not a recursion, so
that deep nesting costs no stack.
"""

from collections.abc import Callable

from lxml import etree

from extraction_pipeline.documents.readers.text_blocks import TextBlocks

_SKIPPED = frozenset(
    [
        *("head", "script", "style", "template", "noscript", "svg", "math", "iframe"),
        *("object", "canvas", "audio", "video", "renderMultiMedia"),
    ]
)
_WITH_GAP = frozenset(
    [
        *("p", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "hr", "article"),
        *("section", "header", "footer", "main", "nav", "aside", "form", "fieldset"),
        *("figure", "address", "paragraph"),
    ]
)
_OWN_LINE = frozenset(
    [
        *("div", "dt", "dd", "caption", "legend", "figcaption", "summary", "details"),
        *("option", "center", "footnote", "body"),
    ]
)
_LISTS = frozenset(["ul", "ol", "menu", "list"])
_ITEMS = frozenset(["li", "item"])
_CELLS = frozenset(["td", "th"])
_STRUCK_OUT = frozenset(["s", "strike", "del"])


def write_markup(
    root: etree._Element, blocks: TextBlocks, check_time: Callable[[str], None]
) -> None:
    """Write all text below `root`. Text that is struck out stands between "~~"."""
    writer = _Writer(blocks)
    walker = etree.iterwalk(root, events=("start", "end"))
    for count, (event, element) in enumerate(walker):
        if count % 10_000 == 9_999:
            check_time("markup")
        name = local_name(element)
        skipped = name in _SKIPPED or element.get("revised") == "delete"
        if event == "start":
            if skipped:
                walker.skip_subtree()
            else:
                writer.start(name, element)
            continue
        if not skipped:
            writer.end(name)
        if element is not root:
            writer.characters(element.tail)
    blocks.gap()


def text_within(element: etree._Element) -> str:
    """All text within an element, with single spaces."""
    return " ".join(" ".join(str(piece) for piece in element.itertext()).split())


def local_name(element: etree._Element) -> str:
    """The name of an element without its namespace, "" for what is no element."""
    tag = element.tag
    if not isinstance(tag, str):
        return ""
    return tag.rpartition("}")[2]


class _Writer:
    def __init__(self, blocks: TextBlocks) -> None:
        self._blocks = blocks
        self._numbers: list[int | None] = []
        """For each open list the number of its last item, None where it has no numbers."""
        self._preformatted = 0

    def characters(self, text: str | None) -> None:
        if not text:
            return
        if self._preformatted and "\n" in text:
            self._blocks.verbatim(text)
        else:
            self._blocks.inline(text)

    def start(self, name: str, element: etree._Element) -> None:
        blocks = self._blocks
        if name in _WITH_GAP:
            blocks.gap()
        elif name in _OWN_LINE or name == "br":
            blocks.end_line()
        elif name in _LISTS:
            blocks.end_line()
            ordered = name == "ol" or element.get("listType") == "ordered"
            self._numbers.append(0 if ordered else None)
        elif name in _ITEMS:
            blocks.start_item(self._next_marker())
        elif name == "table":
            blocks.gap()
            blocks.start_table()
        elif name == "tr":
            blocks.start_row()
        elif name in _CELLS:
            blocks.start_cell(
                columns=_number(element.get("colspan")), rows=_number(element.get("rowspan"))
            )
        elif name == "sup" and blocks.last_character.isdigit():
            # 10<sup>9</sup> must not become 109.
            if (element.text or "").lstrip()[:1].isdigit():
                blocks.inline("^")
        elif name in _STRUCK_OUT:
            blocks.inline("~~")
        elif name == "input":
            blocks.inline(_entered(element))
        if name == "pre":
            self._preformatted += 1
        self.characters(element.text)

    def end(self, name: str) -> None:
        blocks = self._blocks
        if name == "pre":
            self._preformatted -= 1
        if name in _WITH_GAP:
            blocks.gap()
        elif name in _OWN_LINE:
            blocks.end_line()
        elif name in _LISTS:
            if self._numbers:
                self._numbers.pop()
            if not self._numbers:
                blocks.gap()
        elif name in _ITEMS:
            blocks.end_item()
        elif name == "table":
            blocks.end_table()
            blocks.gap()
        elif name == "tr":
            blocks.end_row()
        elif name in _CELLS:
            blocks.end_cell()
        elif name in _STRUCK_OUT:
            blocks.inline("~~")

    def _next_marker(self) -> str:
        last = self._numbers[-1] if self._numbers else None
        if last is None:
            return "- "
        self._numbers[-1] = last + 1
        return f"{last + 1}. "


def _number(value: str | None) -> int:
    return int(value) if value is not None and value.isascii() and value.isdigit() else 1


def _entered(element: etree._Element) -> str:
    """What was filled into a form field of a saved page."""
    kind = (element.get("type") or "text").lower()
    if kind in {"checkbox", "radio"}:
        return " [x] " if element.get("checked") is not None else " [ ] "
    if kind in {"hidden", "submit", "button", "reset", "image", "password", "file"}:
        return ""
    return f" {element.get('value') or ''} "
