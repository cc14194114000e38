"""What reading a document gives: a text, or a named reason why there is none.

These are the words that the readers share. The front door is `reading.read_document`.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class DocumentKind(StrEnum):
    """What a document turned out to be, by its content first and its name second."""

    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    PDF = "pdf"
    DOCX = "docx"
    RTF = "rtf"
    CCDA = "ccda"
    XML = "xml"
    FHIR = "fhir"
    """FHIR JSON: a resource, or a bundle of them."""
    JSON = "json"
    HL7V2 = "hl7v2"


class UnreadableReason(StrEnum):
    """Why a document has no text to send. Each is an end state that a person can act on."""

    EMPTY = "empty"
    """The file has no bytes."""
    BLANK = "blank"
    """The file holds nothing but white space or control characters."""
    NO_TEXT = "no_text"
    """The file has content, but none of it is text: a scan, or pictures only. It needs OCR."""
    PASSWORD_PROTECTED = "password_protected"
    TRUNCATED_OR_CORRUPT = "truncated_or_corrupt"
    """The file is cut short or damaged. What could be rescued of it is not taken for the whole."""
    UNSUPPORTED_KIND = "unsupported_kind"
    UNDECODABLE = "undecodable"
    """The file is text, but no encoding could be told with confidence."""
    REFERENCE_ONLY = "reference_only"
    """The file only names another file that holds the text."""
    TOO_LARGE = "too_large"
    TOOK_TOO_LONG = "took_too_long"


@dataclass(frozen=True)
class ReadLimits:
    """How much one document may take. The limits are per document, never per run."""

    bytes: int = 64 * 1024 * 1024
    """Size of the file."""
    unpacked_bytes: int = 256 * 1024 * 1024
    """Size of what a compressed file (DOCX) says it unpacks to."""
    elements: int = 2_000_000
    """Elements of XML or HTML. The longest guidelines have some 300,000; each takes up to 500 bytes
    of memory."""
    memory_bytes: int = 1536 * 1024 * 1024
    """What a process that reads documents may have, its code included; see `reader_process`."""
    characters: int = 2_000_000
    """Length of the text, in code points. The longest guidelines have about 600,000."""
    seconds: float = 120.0
    """Reading time, checked between pages and between larger steps, and kept from outside where a
    process of its own reads the document."""
    depth: int = 3
    """How many documents may lie within one another (FHIR, in it a C-CDA, in it a PDF)."""


@dataclass(frozen=True)
class ReadableText:
    """The text of a document, fit to be stored in PostgreSQL and sent as JSON."""

    text: str
    kind: DocumentKind
    encoding: str | None
    """Python's name of the encoding the bytes had, where the kind is one of plain bytes."""
    pages: int | None
    pages_without_text: int | None
    """How many of the pages gave no text at all, most often because they are scans."""


@dataclass(frozen=True)
class Unreadable:
    """A document without text to send. `detail` is a sentence and never holds document text."""

    reason: UnreadableReason
    kind: DocumentKind | None
    detail: str


class NotReadable(Exception):
    """Raised by a reader to end with a reason; `read_document` turns it into `Unreadable`."""

    def __init__(self, reason: UnreadableReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True)
class Extracted:
    """What a reader hands back, before the front door cleans and checks the text."""

    text: str
    encoding: str | None = None
    pages: int | None = None
    pages_without_text: int | None = None


@dataclass(frozen=True)
class Reading:
    """What every reader gets: its limits, its deadline, and a way to read a document inside."""

    limits: ReadLimits
    deadline: float
    """A moment of `time.monotonic()`."""
    read_inside: Callable[[bytes, str], Extracted]
    """Reads bytes that lie within this document; raises NotReadable."""

    def check_time(self, where: str) -> None:
        """Raise NotReadable once the time of this document is used up."""
        if time.monotonic() > self.deadline:
            raise NotReadable(
                UnreadableReason.TOOK_TOO_LONG,
                f"reading took longer than {self.limits.seconds:g} seconds ({where})",
            )
