"""The front door of the readers: bytes and a name in, a text or a reason out.

    read_document(content, name) -> ReadableText | Unreadable

Nothing escapes it but what the process itself is told (an interrupt): the content may come from
anyone, and one bad file must not end a run over ten thousand. It reads nothing but its arguments.
A scan calls it through `reader_process`, which also bounds memory and time.
"""

import time
import traceback

from lxml import etree

from extraction_pipeline.documents.readable import (
    DocumentKind,
    Extracted,
    NotReadable,
    ReadableText,
    Reading,
    ReadLimits,
    Unreadable,
    UnreadableReason,
)
from extraction_pipeline.documents.readers.ccda import find_clinical_document, read_ccda
from extraction_pipeline.documents.readers.clean_text import clean_text
from extraction_pipeline.documents.readers.fhir import is_fhir, read_json
from extraction_pipeline.documents.readers.generic_xml import read_generic_xml
from extraction_pipeline.documents.readers.hl7v2 import (
    declared_hl7v2_encoding,
    is_hl7v2,
    read_hl7v2,
)
from extraction_pipeline.documents.readers.html import read_html
from extraction_pipeline.documents.readers.json_outline import parse_json
from extraction_pipeline.documents.readers.kinds import (
    binary_kind,
    claims_json,
    claims_xml,
    contains_html,
    declared_html_encoding,
    looks_like_html,
    named_kind,
)
from extraction_pipeline.documents.readers.markup import local_name
from extraction_pipeline.documents.readers.plain_text import decode
from extraction_pipeline.documents.readers.rtf import read_rtf
from extraction_pipeline.documents.readers.xml_tree import (
    NotWellFormed,
    declared_xml_encoding,
    goes_beyond_limits,
    parse_xml,
)

__all__ = [
    "DEFAULT_LIMITS",
    "DocumentKind",
    "ReadLimits",
    "ReadableText",
    "Unreadable",
    "UnreadableReason",
    "read_document",
]

DEFAULT_LIMITS = ReadLimits()

_PLAIN_KINDS = frozenset([DocumentKind.TEXT, DocumentKind.MARKDOWN, DocumentKind.HL7V2])


def read_document(
    content: bytes, name: str, *, limits: ReadLimits = DEFAULT_LIMITS
) -> ReadableText | Unreadable:
    """Read the text of a document, or say why it has none.

    `name` is a file name or path; its ending counts only where the content leaves the kind open.
    """
    visit = _Visit(limits)
    try:
        extracted = visit.read(content, name)
        return _checked(extracted, visit.kind or DocumentKind.TEXT, limits)
    except NotReadable as refusal:
        return Unreadable(refusal.reason, visit.kind, refusal.detail)
    except MemoryError:
        return Unreadable(
            UnreadableReason.TOO_LARGE, visit.kind, "reading the file needs too much memory"
        )
    except RecursionError:
        return Unreadable(
            UnreadableReason.TRUNCATED_OR_CORRUPT, visit.kind, "the file is nested too deeply"
        )
    # The parsers meet damaged and hostile bytes and raise whatever they stumble over: anything
    # but a named end state here would stop the run, or send the document round for ever.
    except Exception as error:  # noqa: BLE001
        if isinstance(error, etree.XMLSyntaxError) and goes_beyond_limits(error):
            return Unreadable(
                UnreadableReason.TOO_LARGE,
                visit.kind,
                "a part of the file is nested too deeply or too long",
            )
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__} at {place.name}, line {place.lineno}"
        # Its message may quote the document, so only its kind and place are told.
        return Unreadable(
            UnreadableReason.TRUNCATED_OR_CORRUPT,
            visit.kind,
            f"the file is damaged, or written in a way its reader does not know ({where})",
        )


class _Visit:
    """The reading of one document and of those inside it."""

    def __init__(self, limits: ReadLimits) -> None:
        self.kind: DocumentKind | None = None
        """The kind of the outermost document, None until it is known."""
        self._limits = limits
        self._reading = Reading(limits, time.monotonic() + limits.seconds, self._read_inside)
        self._depth = 0

    def read(self, content: bytes, name: str) -> Extracted:
        """Find the kind of some bytes and read them. Raises NotReadable, or anything."""
        if not content:
            raise NotReadable(UnreadableReason.EMPTY, "the file has no bytes")
        if len(content) > self._limits.bytes:
            raise NotReadable(
                UnreadableReason.TOO_LARGE,
                f"the file has {len(content):,} bytes; the limit is {self._limits.bytes:,}",
            )
        kind = binary_kind(content, name)
        if kind is not None:
            return _read_binary(self._is(kind), content, self._reading)
        declared = (
            declared_xml_encoding(content)
            or declared_html_encoding(content)
            or declared_hl7v2_encoding(content)
        )
        decoded = decode(content, declared=declared)
        return self._read_text(decoded.text, decoded.encoding, name)

    def _read_text(self, text: str, encoding: str, name: str) -> Extracted:
        first = text[:256].lstrip("\ufeff \t\r\n\0")[:1]
        if first == "<":
            markup = self._read_markup(_fit_for_a_parser(text), encoding, name)
            if markup is not None:
                return markup
        elif first in {"{", "["}:
            structured = self._read_json(_fit_for_a_parser(text), encoding, name)
            if structured is not None:
                return structured
        elif is_hl7v2(text):
            self._is(DocumentKind.HL7V2)
            return read_hl7v2(clean_text(text), encoding, self._reading)
        if self._is(named_kind(name)) is DocumentKind.HTML:
            return read_html(_fit_for_a_parser(text), encoding, self._reading)
        return Extracted(text, encoding)

    def _read_markup(self, text: str, encoding: str, name: str) -> Extracted | None:
        if looks_like_html(text, name):
            self._is(DocumentKind.HTML)
            return read_html(text, encoding, self._reading)
        self._is(DocumentKind.XML)
        try:
            root = parse_xml(text, self._limits)
        except NotWellFormed as error:
            if contains_html(text):
                self._is(DocumentKind.HTML)
                return read_html(text, encoding, self._reading)
            if not claims_xml(text, name):
                # A note that happens to begin with "<".
                return None
            raise NotReadable(
                UnreadableReason.TRUNCATED_OR_CORRUPT,
                f"the XML is cut short or damaged at line {error.line}",
            ) from None
        document = find_clinical_document(root)
        if document is not None:
            self._is(DocumentKind.CCDA)
            return read_ccda(document, encoding, self._reading)
        if local_name(root) == "html":
            self._is(DocumentKind.HTML)
            return read_html(text, encoding, self._reading)
        return read_generic_xml(root, encoding, self._reading)

    def _read_json(self, text: str, encoding: str, name: str) -> Extracted | None:
        self._is(DocumentKind.JSON)
        try:
            value = parse_json(text, self._limits.characters)
        except ValueError:
            if not claims_json(name):
                # A note that begins with a bracket, as de-identified notes do.
                return None
            raise NotReadable(
                UnreadableReason.TRUNCATED_OR_CORRUPT, "the JSON is cut short or damaged"
            ) from None
        if is_fhir(value):
            self._is(DocumentKind.FHIR)
        return read_json(value, encoding, self._reading)

    def _read_inside(self, content: bytes, name: str) -> Extracted:
        if self._depth >= self._limits.depth:
            raise NotReadable(
                UnreadableReason.UNSUPPORTED_KIND,
                f"documents lie more than {self._limits.depth} deep within one another",
            )
        self._depth += 1
        try:
            extracted = self.read(content, name)
        finally:
            self._depth -= 1
        if not extracted.text.strip():
            raise NotReadable(UnreadableReason.BLANK, "the document inside the file is blank")
        return extracted

    def _is(self, kind: DocumentKind) -> DocumentKind:
        if self._depth == 0:
            self.kind = kind
        return kind


def _read_binary(kind: DocumentKind, content: bytes, reading: Reading) -> Extracted:
    # Their libraries are slow to import, and most processes never read such a file.
    if kind is DocumentKind.PDF:
        from extraction_pipeline.documents.readers.pdf import read_pdf

        return read_pdf(content, reading)
    if kind is DocumentKind.DOCX:
        from extraction_pipeline.documents.readers.docx import read_docx

        return read_docx(content, reading)
    return read_rtf(content, reading)


def _fit_for_a_parser(text: str) -> str:
    """Without what XML forbids: control characters, and white space before a declaration."""
    return clean_text(text).lstrip()


def _checked(extracted: Extracted, kind: DocumentKind, limits: ReadLimits) -> ReadableText:
    text = clean_text(extracted.text)
    if len(text) > limits.characters:
        raise NotReadable(
            UnreadableReason.TOO_LARGE,
            f"the text has {len(text):,} characters; the limit is {limits.characters:,}",
        )
    if not text.strip("\u200b\u200c\u200d\u2060 ").strip():
        if kind in _PLAIN_KINDS:
            raise NotReadable(UnreadableReason.BLANK, "the file holds nothing but white space")
        raise NotReadable(UnreadableReason.NO_TEXT, "the file holds no text")
    return ReadableText(
        text, kind, extracted.encoding, extracted.pages, extracted.pages_without_text
    )
