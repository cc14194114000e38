"""Reads DOCX: headers, then paragraphs and tables in order, then notes and footers.

python-docx opens the package. Its own iteration passes over content controls, text boxes and
tracked insertions, in which clinical templates keep what was filled in, so the text is taken from
the XML that it parsed. Deleted text and reviewers' comments are not part of the document.
"""

import zipfile
from collections.abc import Iterator
from io import BytesIO

import docx
from lxml import etree

from extraction_pipeline.documents.readable import (
    Extracted,
    NotReadable,
    Reading,
    ReadLimits,
    UnreadableReason,
)
from extraction_pipeline.documents.readers.docx_paragraphs import (
    ParagraphStyles,
    W,
    is_on,
    table_rows,
    value_of,
    vertical_merges,
)
from extraction_pipeline.documents.readers.text_blocks import TextBlocks
from extraction_pipeline.documents.readers.xml_tree import (
    NotWellFormed,
    check_elements,
    parse_xml,
)

_SKIPPED = frozenset(
    [
        *(f"{W}{name}" for name in ("del", "moveFrom", "instrText", "pPr", "rPr", "tblPr")),
        # The same drawing again, for programs older than the first form.
        "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
    ]
)
_PIECE_BYTES = 1 << 20
_TICK_BOXES = {"F0FE": "[x]", "F0FD": "[x]", "F052": "[x]", "F0A8": "[ ]", "F06F": "[ ]"}
"""Characters of the Wingdings fonts that forms use as tick boxes."""


def read_docx(content: bytes, reading: Reading) -> Extracted:
    """The text of a DOCX file. Raises NotReadable."""
    _check_package(content, reading)
    document = docx.Document(BytesIO(content))
    reading.check_time("opening the DOCX file")
    styles = ParagraphStyles.of(document)
    parts: dict[str, list[str]] = {"header": [], "footer": [], "footnotes": [], "endnotes": []}
    for relation in document.part.rels.values():
        kind = relation.reltype.rpartition("/")[2]
        if kind not in parts or relation.is_external:
            continue
        for root in _roots(relation.target_part.blob, kind, reading.limits):
            text = _written(root, styles, reading)
            if text and text not in parts[kind]:
                parts[kind].append(text)
    body = _written(document.element.body, styles, reading)
    pieces = [
        *parts["header"],
        body,
        *parts["footnotes"],
        *parts["endnotes"],
        *parts["footer"],
    ]
    return Extracted("\n\n".join(piece for piece in pieces if piece))


def _check_package(content: bytes, reading: Reading) -> None:
    try:
        with zipfile.ZipFile(BytesIO(content)) as package:
            members = package.infolist()
            _check_members(members, reading)
            opened = sum(_elements(package, member) for member in members)
    except zipfile.BadZipFile:
        members = []
    if not members:
        raise NotReadable(
            UnreadableReason.TRUNCATED_OR_CORRUPT, "the DOCX file is cut short or damaged"
        )
    check_elements(opened, reading.limits)


def _check_members(members: list[zipfile.ZipInfo], reading: Reading) -> None:
    if any(member.flag_bits & 1 for member in members):
        raise NotReadable(UnreadableReason.PASSWORD_PROTECTED, "the DOCX file needs a password")
    # zipfile never unpacks more of a member than is declared here.
    unpacked = sum(member.file_size for member in members)
    if unpacked > reading.limits.unpacked_bytes:
        raise NotReadable(
            UnreadableReason.TOO_LARGE, f"the DOCX file unpacks to {unpacked // 2**20} MB"
        )


def _elements(package: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """About how many elements a part has, counted without keeping it."""
    if not member.filename.endswith((".xml", ".rels")):
        return 0
    count = 0
    with package.open(member) as part:
        while piece := part.read(_PIECE_BYTES):
            count += piece.count(b"<") - piece.count(b"</")
    return count


def _roots(part: bytes, kind: str, limits: ReadLimits) -> Iterator[etree._Element]:
    """The elements of a part that hold a text of their own: itself, or each of its notes."""
    try:
        root = parse_xml(part.decode("utf-8-sig", "replace"), limits)
    except NotWellFormed:
        raise NotReadable(
            UnreadableReason.TRUNCATED_OR_CORRUPT, f"the {kind} of the DOCX file are damaged"
        ) from None
    if kind in {"header", "footer"}:
        yield root
    else:
        # Notes with a type are the separator lines.
        yield from (note for note in root if note.get(f"{W}type") is None)


def _written(root: etree._Element, styles: ParagraphStyles, reading: Reading) -> str:
    blocks = TextBlocks()
    writer = _Writer(blocks, styles)
    if root.tag in {f"{W}footnote", f"{W}endnote"}:
        blocks.inline(f"[{root.get(f'{W}id')}] ")
    walker = etree.iterwalk(root, events=("start", "end"))
    for count, (event, element) in enumerate(walker):
        if count % 10_000 == 9_999:
            reading.check_time("DOCX")
        if event == "end":
            if element.tag not in _SKIPPED:
                writer.end(element)
        elif element.tag in _SKIPPED or _is_deleted_row(element):
            walker.skip_subtree()
        else:
            writer.start(element)
    # Two runs that are struck out and touch are one.
    return blocks.text().replace("~~~~", "")


def _is_deleted_row(element: etree._Element) -> bool:
    return element.tag == f"{W}tr" and element.find(f"{W}trPr/{W}del") is not None


class _Writer:
    """Writes the elements of WordprocessingML (ECMA-376 part 1, section 17) as text."""

    def __init__(self, blocks: TextBlocks, styles: ParagraphStyles) -> None:
        self._blocks = blocks
        self._styles = styles
        self._merges: dict[etree._Element, int] = {}
        """Table cells that are merged downwards, with their rows; 0 for the cells they cover."""
        self._superscript = False

    def start(self, element: etree._Element) -> None:
        blocks = self._blocks
        match element.tag.removeprefix(W):
            case "p":
                self._start_paragraph(element)
            case "r":
                if _struck_out(element):
                    blocks.inline("~~")
                position = element.find(f"{W}rPr/{W}vertAlign")
                self._superscript = position is not None and value_of(position) == "superscript"
            case "t":
                text = element.text or ""
                # 10 to the power of 9 must not become 109.
                if self._superscript and text[:1].isdigit() and blocks.last_character.isdigit():
                    blocks.inline("^")
                blocks.inline(text)
            case "tab" | "ptab":
                blocks.inline(" ")
            case "br" | "cr":
                blocks.end_line()
            case "noBreakHyphen":
                blocks.inline("-")
            case "sym":
                blocks.inline(_TICK_BOXES.get((element.get(f"{W}char") or "").upper(), ""))
            case "checkBox":
                blocks.inline("[x] " if _is_checked(element) else "[ ] ")
            case "footnoteReference" | "endnoteReference":
                blocks.inline(f"[{element.get(f'{W}id')}]")
            case "tbl":
                blocks.gap()
                blocks.start_table()
                self._merges.update(vertical_merges(list(table_rows(element))))
            case "tr":
                blocks.start_row()
            case "tc":
                span = element.find(f"{W}tcPr/{W}gridSpan")
                rows = self._merges.get(element, 1)
                if rows > 0:
                    columns = value_of(span) if span is not None else "1"
                    blocks.start_cell(columns=int(columns) if columns.isdigit() else 1, rows=rows)
            case _:
                pass

    def end(self, element: etree._Element) -> None:
        blocks = self._blocks
        match element.tag.removeprefix(W):
            case "p":
                self._end_paragraph(element)
            case "r":
                if _struck_out(element):
                    blocks.inline("~~")
                self._superscript = False
            case "tbl":
                blocks.end_table()
                blocks.gap()
            case "tr":
                if not _is_deleted_row(element):
                    blocks.end_row()
            case "tc":
                if self._merges.get(element, 1) > 0:
                    blocks.end_cell()
            case _:
                pass

    def _start_paragraph(self, element: etree._Element) -> None:
        if self._styles.is_heading(element):
            self._blocks.gap()
        else:
            self._blocks.end_line()
        marker = self._styles.list_marker(element)
        if marker is not None:
            self._blocks.start_item(marker)

    def _end_paragraph(self, element: etree._Element) -> None:
        if self._styles.list_level(element) is not None:
            self._blocks.end_item()
        elif self._styles.is_heading(element):
            self._blocks.gap()
        else:
            self._blocks.end_line()


def _struck_out(run: etree._Element) -> bool:
    properties = run.find(f"{W}rPr")
    return properties is not None and (is_on(properties, "strike") or is_on(properties, "dstrike"))


def _is_checked(box: etree._Element) -> bool:
    # `default` counts until somebody has clicked.
    return is_on(box, "checked" if box.find(f"{W}checked") is not None else "default")
