"""Files that the tests of the readers make for themselves."""

from collections.abc import Sequence
from io import BytesIO

import docx
from fpdf import FPDF
from pypdf import PdfWriter

from extraction_pipeline.documents.reading import (
    ReadableText,
    Unreadable,
    UnreadableReason,
    read_document,
)


def read(content: bytes, name: str = "note") -> ReadableText:
    """Read bytes that must be readable."""
    result = read_document(content, name)
    assert isinstance(result, ReadableText), result
    return result


def refused(content: bytes, name: str = "note") -> Unreadable:
    """Read bytes that must not be readable."""
    result = read_document(content, name)
    assert isinstance(result, Unreadable), result.kind
    return result


def reason(content: bytes, name: str = "note") -> UnreadableReason:
    """Why bytes are not readable."""
    return refused(content, name).reason


def pdf_of_pages(pages: Sequence[str]) -> bytes:
    """A PDF with a text on each page; "" makes a page that holds only a drawing."""
    pdf = FPDF()
    pdf.set_font("Helvetica", size=11)
    for text in pages:
        pdf.add_page()
        if text:
            pdf.multi_cell(0, 6, text)
        else:
            pdf.rect(20, 20, 100, 100, style="F")
    return bytes(pdf.output())


def encrypted(pdf: bytes, *, user: str, owner: str) -> bytes:
    """The PDF behind a password."""
    writer = PdfWriter(clone_from=BytesIO(pdf))
    writer.encrypt(user, owner, algorithm="AES-256")
    return written(writer)


def written(writer: PdfWriter) -> bytes:
    """The bytes of a pypdf writer."""
    stream = BytesIO()
    writer.write(stream)
    return stream.getvalue()


def raw_pdf(page_content: str) -> bytes:
    """A PDF of one page with exactly this content stream; font /F1 is Helvetica."""
    stream = page_content.encode("latin-1")
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    output = bytearray(b"%PDF-1.7\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(output))
        output += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(output)
    output += b"xref\n0 6\n0000000000 65535 f \n"
    output += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    output += b"trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % table
    return bytes(output)


def saved(document: "docx.document.Document") -> bytes:
    """The bytes of a python-docx document."""
    stream = BytesIO()
    document.save(stream)
    return stream.getvalue()
