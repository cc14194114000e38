"""Reads PDF with pypdf: the text of each page, with what was typed and ticked on it.

A page whose text cannot be had fails the document: a part is never taken for the whole. Pages
without any text (scans) are counted, and a document of nothing else is `no_text`.
"""

import logging
import re
from io import BytesIO

from pypdf import PageObject, PasswordType, PdfReader
from pypdf.errors import LimitReachedError

from extraction_pipeline.documents.readable import (
    Extracted,
    NotReadable,
    Reading,
    UnreadableReason,
)
from extraction_pipeline.documents.readers.pdf_entries import entries_on
from extraction_pipeline.documents.readers.pdf_lines import PageLines

# pypdf warns about what it repairs, and may quote the document in doing so.
logging.getLogger("pypdf").setLevel(logging.CRITICAL + 1)

_END_MARK = b"%%EOF"
_BLANK_LINES = re.compile(r"\n{3,}")
_XFA_PLACEHOLDER = "If this message is not eventually replaced"
"""Adobe's page for a form whose content is XML that only Adobe Reader shows."""


def read_pdf(content: bytes, reading: Reading) -> Extracted:
    """The text of a PDF, its number of pages, and how many of them have none."""
    end = content.rfind(_END_MARK)
    if end < 0 or b" obj" in content[end:]:
        # A file that was changed has several ends, one behind the other. Cut after the first one
        # it would be read as it was before the change.
        raise NotReadable(
            UnreadableReason.TRUNCATED_OR_CORRUPT, "the PDF is cut short: nothing marks its end"
        )
    try:
        return _read(PdfReader(BytesIO(content)), reading)
    except LimitReachedError:
        raise NotReadable(
            UnreadableReason.TOO_LARGE, "the PDF goes beyond what its reader allows"
        ) from None


def _read(reader: PdfReader, reading: Reading) -> Extracted:
    if reader.is_encrypted and reader.decrypt("") is PasswordType.NOT_DECRYPTED:
        raise NotReadable(UnreadableReason.PASSWORD_PROTECTED, "the PDF needs a password")
    pages = list(reader.pages)
    declared = _declared_pages(reader)
    if declared is not None and declared > len(pages):
        raise NotReadable(
            UnreadableReason.TRUNCATED_OR_CORRUPT,
            f"the PDF says that it has {declared} pages, but only {len(pages)} were found",
        )
    texts: list[str] = []
    characters = 0
    for number, page in enumerate(pages, start=1):
        reading.check_time(f"page {number} of {len(pages)}")
        texts.append(_page_text(page))
        characters += len(texts[-1])
        if characters > reading.limits.characters:
            raise NotReadable(
                UnreadableReason.TOO_LARGE,
                f"the first {number} of {len(pages)} pages have {characters:,} characters; "
                f"the limit is {reading.limits.characters:,}",
            )
    without_text = sum(not text for text in texts)
    if without_text == len(texts):
        raise NotReadable(
            UnreadableReason.NO_TEXT, f"no page of the PDF ({len(pages)}) has text; it needs OCR"
        )
    if len(texts) == 1 and _XFA_PLACEHOLDER in " ".join(texts[0].split()):
        raise NotReadable(
            UnreadableReason.UNSUPPORTED_KIND,
            "the PDF is an XFA form; print it to a PDF to make its content readable",
        )
    return Extracted(
        "\n\n".join(text for text in texts if text),
        pages=len(pages),
        pages_without_text=without_text,
    )


def _declared_pages(reader: PdfReader) -> int | None:
    tree = reader.root_object.get("/Pages")
    count = tree.get_object().get("/Count") if tree is not None else None
    count = count.get_object() if count is not None else None
    return int(count) if isinstance(count, int) else None


def _page_text(page: PageObject) -> str:
    lines = PageLines()
    plain = page.extract_text(visitor_text=lines.add)
    text = lines.text(plain, list(entries_on(page)))
    text = "\n".join(line.rstrip() for line in text.splitlines()).strip()
    # Pages are drawn with any number of empty lines.
    return _BLANK_LINES.sub("\n\n", text)
