"""Make those sample documents that a text editor cannot: PDF, DOCX, odd encodings, broken files.

Their words lie in `sources/`, in a few marks: `# title`, `## heading`, `- item`, `1. item`,
`| cell | cell |`; any other line is a paragraph. The results are committed under
`extraction_pipeline/samples/`; run this again after a source was edited:

    python -m extraction_pipeline_tests.samples.make_binary_samples

All outputs but the encrypted PDF (its keys are random) are the same bytes each time, as long as the
libraries that write PDF, DOCX and PNG are.
"""

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import click
import docx
from fpdf import FPDF
from fpdf.enums import EncryptionMethod, XPos, YPos
from PIL import Image, ImageDraw, ImageFont

SOURCES = Path(__file__).parent / "sources"
SAMPLES = Path(__file__).parents[2] / "extraction_pipeline" / "samples"
MADE_AT = datetime(2025, 7, 15, 9, 0, tzinfo=UTC)
"""The date that PDF and DOCX files carry as their time of creation."""
PASSWORD = "fictional"
"""Opens the encrypted sample; it is here so that the sample can be checked."""


class Mark(StrEnum):
    """What a line of a source is."""

    TITLE = "title"
    HEADING = "heading"
    ITEM = "item"
    ROW = "row"
    PARAGRAPH = "paragraph"


@dataclass(frozen=True)
class Line:
    """One marked line; `cells` holds a row's cells and one text otherwise."""

    mark: Mark
    cells: tuple[str, ...]

    @property
    def text(self) -> str:
        """The words of a line that is no row."""
        return self.cells[0]


def read_lines(text: str) -> Iterator[Line]:
    """Split a source into marked lines; blank ones only separate."""
    for raw in text.splitlines():
        line = raw.strip()
        if not line:
            continue
        if line.startswith("## "):
            yield Line(Mark.HEADING, (line[3:],))
        elif line.startswith("# "):
            yield Line(Mark.TITLE, (line[2:],))
        elif line.startswith("|"):
            yield Line(Mark.ROW, tuple(cell.strip() for cell in line.strip("|").split("|")))
        elif line.startswith("- ") or re.match(r"\d+\. ", line):
            yield Line(Mark.ITEM, (line,))
        else:
            yield Line(Mark.PARAGRAPH, (line,))


def group_rows(lines: Iterator[Line]) -> Iterator[Line | list[tuple[str, ...]]]:
    """Gather neighbouring rows into one table; the first of them is its header."""
    table: list[tuple[str, ...]] = []
    for line in lines:
        if line.mark is Mark.ROW:
            table.append(line.cells)
            continue
        if table:
            yield table
            table = []
        yield line
    if table:
        yield table


class PrintedPage(FPDF):
    """Letter paper with a page number, as a hospital system prints it."""

    def footer(self) -> None:
        """Write the page number."""
        self.set_y(-15)
        self.set_font("Helvetica", size=8)
        self.cell(0, 8, f"Page {self.page_no()} of {{nb}}", align="C")


def typeset(text: str) -> FPDF:
    """Set a source on pages. Only Latin-1 characters: the fonts are the PDF core ones."""
    pdf = PrintedPage(format="letter")
    pdf.set_creation_date(MADE_AT)
    pdf.set_producer("Fictional sample document")
    pdf.set_auto_page_break(True, margin=20)
    pdf.set_margins(20, 18)
    pdf.add_page()
    for block in group_rows(read_lines(text)):
        if isinstance(block, list):
            pdf.set_font("Helvetica", size=9)
            with pdf.table(line_height=5, text_align="LEFT") as table:
                for cells in block:
                    table.row(cells)
            pdf.ln(2)
            continue
        size, style, before = {
            Mark.TITLE: (15, "B", 0),
            Mark.HEADING: (11, "B", 3),
        }.get(block.mark, (10, "", 0))
        pdf.ln(before)
        pdf.set_font("Helvetica", style=style, size=size)
        pdf.multi_cell(0, size / 2, block.text, new_x=XPos.LMARGIN, new_y=YPos.NEXT, align="L")
        if block.mark in (Mark.TITLE, Mark.PARAGRAPH):
            pdf.ln(1)
    return pdf


def as_pdf(text: str) -> bytes:
    """A PDF with a text layer."""
    return bytes(typeset(text).output())


def as_encrypted_pdf(text: str) -> bytes:
    """A PDF that opens with `PASSWORD` only."""
    pdf = typeset(text)
    pdf.set_encryption(
        owner_password=PASSWORD + "-owner",
        user_password=PASSWORD,
        encryption_method=EncryptionMethod.AES_256,
    )
    return bytes(pdf.output())


def as_truncated_pdf(text: str) -> bytes:
    """The first 60 percent of a PDF: its catalog and its cross-references are gone."""
    whole = as_pdf(text)
    return whole[: len(whole) * 6 // 10]


def photograph(text: str) -> Image.Image:
    """A page as a black and white picture, a little askew, as a fax or a scanner gives it."""
    page = Image.new("L", (1000, 760), color=255)
    font = ImageFont.load_default(size=26)
    ImageDraw.Draw(page).multiline_text((70, 50), text, fill=0, font=font, spacing=10)
    return page.rotate(0.6, fillcolor=255, resample=Image.Resampling.BICUBIC).convert("1")


def as_scan(text: str) -> bytes:
    """A PDF whose only page is a picture, with no text layer."""
    pdf = FPDF(format="letter")
    pdf.set_creation_date(MADE_AT)
    pdf.add_page()
    pdf.image(photograph(text), x=15, y=20, w=180)
    return bytes(pdf.output())


def as_png(text: str) -> bytes:
    """A PNG picture of the words."""
    buffer = io.BytesIO()
    photograph(text).save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def as_docx(text: str) -> bytes:
    """A Word document with headings, list styles and a table."""
    document = docx.Document()
    document.core_properties.author = "Fictional sample document"
    document.core_properties.created = document.core_properties.modified = MADE_AT
    for block in group_rows(read_lines(text)):
        if isinstance(block, list):
            table = document.add_table(rows=0, cols=len(block[0]), style="Table Grid")
            for cells in block:
                for cell, words in zip(table.add_row().cells, cells, strict=True):
                    cell.text = words
        elif block.mark is Mark.ITEM:
            bullet, words = block.text.split(" ", 1)
            style = "List Bullet" if bullet == "-" else "List Number"
            document.add_paragraph(words, style=style)
        elif block.mark is Mark.PARAGRAPH:
            document.add_paragraph(block.text)
        else:
            document.add_heading(block.text, level=0 if block.mark is Mark.TITLE else 2)
    buffer = io.BytesIO()
    document.save(buffer)
    return with_fixed_times(buffer.getvalue())


def with_fixed_times(archive: bytes) -> bytes:
    """The same zip archive with every member dated `MADE_AT`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            member = zipfile.ZipInfo(name, date_time=MADE_AT.timetuple()[:6])
            member.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(member, old.read(name))
    return buffer.getvalue()


def as_windows_1252(text: str) -> bytes:
    """Smart quotes, dashes and degree signs as one byte each, with CRLF line ends."""
    return text.replace("\n", "\r\n").encode("cp1252")


def as_utf16(text: str) -> bytes:
    """UTF-16, little-endian, with a byte order mark, as Windows' "Unicode" text."""
    return b"\xff\xfe" + text.replace("\n", "\r\n").encode("utf-16-le")


def as_utf8_with_mark(text: str) -> bytes:
    """UTF-8 with a byte order mark."""
    return text.encode("utf-8-sig")


def with_mixed_line_ends(text: str) -> bytes:
    """CRLF, LF and CR in turn, as a text gets that went through three systems."""
    ends = ("\r\n", "\n", "\r\n", "\r")
    lines = text.splitlines()
    return "".join(line + ends[n % 4] for n, line in enumerate(lines)).encode()


@dataclass(frozen=True)
class BinarySample:
    """One sample: where it lies, the source of its words, and what makes it of them."""

    path: str
    source: str
    build: Callable[[str], bytes]
    reproducible: bool = True

    def content(self) -> bytes:
        """The bytes of the sample."""
        return self.build((SOURCES / self.source).read_text(encoding="utf-8"))


BINARY_SAMPLES = (
    BinarySample(
        "discharge_summaries/ds-03-hip-fracture.txt", "ds-03-hip-fracture.txt", as_windows_1252
    ),
    BinarySample("discharge_summaries/ds-05-stroke.pdf", "ds-05-stroke.md", as_pdf),
    BinarySample(
        "discharge_summaries/ds-07-gastrointestinal-bleed.docx",
        "ds-07-gastrointestinal-bleed.md",
        as_docx,
    ),
    BinarySample(
        "discharge_summaries/ds-09-urosepsis.txt", "ds-09-urosepsis.txt", with_mixed_line_ends
    ),
    BinarySample(
        "discharge_summaries/ds-11-myocardial-infarction.txt",
        "ds-11-myocardial-infarction.txt",
        as_utf16,
    ),
    BinarySample("discharge_summaries/ds-16-scanned.pdf", "ds-16-scanned.txt", as_scan),
    BinarySample(
        "discharge_summaries/ds-17-protected.pdf",
        "ds-17-protected.md",
        as_encrypted_pdf,
        reproducible=False,
    ),
    BinarySample("care_protocols/cp-03-hypoglycemia.docx", "cp-03-hypoglycemia.md", as_docx),
    BinarySample(
        "care_protocols/cp-04-thromboprophylaxis.pdf", "cp-04-thromboprophylaxis.md", as_pdf
    ),
    BinarySample(
        "care_protocols/cp-10-febrile-neutropenia.pdf", "cp-10-febrile-neutropenia.md", as_pdf
    ),
    BinarySample("care_protocols/cp-13-truncated.pdf", "cp-13-transfusion.md", as_truncated_pdf),
    BinarySample(
        "payer_notes/pn-05-infliximab-step-therapy.pdf", "pn-05-infliximab-step-therapy.md", as_pdf
    ),
    BinarySample(
        "payer_notes/pn-06-home-oxygen-policy.docx", "pn-06-home-oxygen-policy.md", as_docx
    ),
    BinarySample(
        "payer_notes/pn-10-inpatient-rehabilitation-partial.txt",
        "pn-10-inpatient-rehabilitation-partial.txt",
        as_utf8_with_mark,
    ),
    BinarySample(
        "payer_notes/pn-11-denosumab-more-information.docx",
        "pn-11-denosumab-more-information.md",
        as_docx,
    ),
    BinarySample("payer_notes/pn-13-fax.txt", "pn-13-fax.txt", as_png),
)


@click.command(help=__doc__.splitlines()[0] if __doc__ else None)
def main() -> None:
    """Write every sample whose bytes changed; the encrypted one only where it is missing."""
    for sample in BINARY_SAMPLES:
        target = SAMPLES / sample.path
        if not sample.reproducible and target.exists():
            continue
        content = sample.content()
        if not target.exists() or target.read_bytes() != content:
            target.write_bytes(content)
            click.echo(f"{sample.path}: {len(content):,} bytes")


if __name__ == "__main__":
    main()
