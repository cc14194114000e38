"""Tells the kind of a document: by its first bytes, then by its text, then by its name.

The name decides only where the content leaves it open (Markdown, a damaged PDF). A kind that is
known but has no reader is refused by its own name, so that the user knows what to convert.
"""

import re
import zipfile
from io import BytesIO

from extraction_pipeline.documents.readable import DocumentKind, NotReadable, UnreadableReason

_REFUSED = (
    (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF87a", "a GIF picture"),
    (b"GIF89a", "a GIF picture"),
    (b"II*\x00", "a TIFF picture"),
    (b"MM\x00*", "a TIFF picture"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"PAR1", "a Parquet table"),
    (b"%!PS", "a PostScript file"),
)
_MARKDOWN_NAMES = frozenset([".md", ".markdown"])
_TEXT_NAMES = frozenset([".txt", ".text"]) | _MARKDOWN_NAMES
_HTML_NAMES = frozenset([".html", ".htm", ".xhtml"])
_XML_NAMES = frozenset([".xml", ".ccda", ".cda", ".ccd"])

_PARSED_NAMES = _HTML_NAMES | _XML_NAMES | frozenset([".pdf", ".docx", ".rtf", ".json"])
_PARSED_STARTS = (b"<", b"{", b"[", b"%PDF-", b"PK", b"\xd0\xcf", b"MSH|", b"FHS|", b"BHS|")

_IS_HTML = re.compile(r"<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_LOOKS_LIKE_HTML = re.compile(
    r"<(?:!doctype\s+html|html|head|body|title|meta|div|p|h[1-6]|table|ul|ol|span|br)\b",
    re.IGNORECASE,
)
_META_CHARSET = re.compile(
    rb"<meta\b[^>]{0,200}?\bcharset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]{1,40})", re.IGNORECASE
)


def extension(name: str) -> str:
    """The ending of a name, in lower case and with its dot: what `pathlib` calls its suffix, which
    takes it ten times as long."""
    last = name.rstrip("/").rpartition("/")[2]
    dot = last.rfind(".")
    return last[dot:].lower() if 0 < dot < len(last) - 1 else ""


def binary_kind(content: bytes, name: str) -> DocumentKind | None:
    """The kind that the first bytes tell, None for what may be text. Raises NotReadable."""
    head = content[:1024]
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\0")
    if start.startswith(b"%PDF-"):
        return DocumentKind.PDF
    if start.startswith(b"{\\rtf"):
        return DocumentKind.RTF
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_kind(content, name)
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        raise _old_office_file(content)
    for magic, what in _REFUSED:
        if head.startswith(magic):
            raise _unsupported(what)
    if extension(name) == ".pdf":
        # Viewers accept a mark that comes later, behind the headers of a mail or a printer.
        if b"%PDF-" in head:
            return DocumentKind.PDF
        if b"\0" in content[:65536]:
            raise NotReadable(
                UnreadableReason.TRUNCATED_OR_CORRUPT, "the file is named .pdf but is no PDF"
            )
    return None


def is_plain(content: bytes, name: str) -> bool:
    """Whether bytes are text that no parser reads, so that they can do no harm."""
    start = content[:1024].lstrip(b"\xef\xbb\xbf \t\r\n\x0b")
    return not (
        extension(name) in _PARSED_NAMES
        or b"\0" in content[:1024]
        or start.startswith(_PARSED_STARTS)
        # The long run of white space in front may hide anything.
        or (not start and len(content) > 1024)
    )


def named_kind(name: str) -> DocumentKind:
    """The kind of a text that does not tell by itself."""
    if extension(name) in _MARKDOWN_NAMES:
        return DocumentKind.MARKDOWN
    if extension(name) in _HTML_NAMES:
        return DocumentKind.HTML
    return DocumentKind.TEXT


def claims_xml(text: str, name: str) -> bool:
    """Whether a text says that it is XML, so that it is damaged if it is not."""
    return text.startswith("<?xml") or extension(name) in _XML_NAMES


def claims_json(name: str) -> bool:
    """Whether a name says that the text is JSON."""
    return extension(name) == ".json"


def looks_like_html(text: str, name: str) -> bool:
    """Whether a text that begins with "<" is HTML."""
    if extension(name) in _TEXT_NAMES:
        # Markdown and notes may begin with a tag; read as HTML they would lose their line ends.
        return _IS_HTML.match(text) is not None
    return extension(name) in _HTML_NAMES or _LOOKS_LIKE_HTML.match(text) is not None


def contains_html(text: str) -> bool:
    """Whether a text that is no XML is HTML behind a declaration or a comment."""
    return "<html" in text[:4096].lower()


def declared_html_encoding(content: bytes) -> str | None:
    """The encoding that an HTML page names, if it does so at its beginning."""
    match = _META_CHARSET.search(content[:2048])
    return match.group(1).decode("ascii") if match is not None else None


def _zip_kind(content: bytes, name: str) -> DocumentKind:
    try:
        with zipfile.ZipFile(BytesIO(content)) as package:
            members = set(package.namelist())
    except zipfile.BadZipFile:
        # A ZIP file is read from its end. Only its name still tells what it was.
        if extension(name) in {".docx", ""}:
            raise NotReadable(
                UnreadableReason.TRUNCATED_OR_CORRUPT, "the file is cut short or damaged"
            ) from None
        raise _unsupported("a damaged ZIP archive") from None
    if "word/document.xml" in members or "word/document2.xml" in members:
        return DocumentKind.DOCX
    if "xl/workbook.xml" in members:
        raise _unsupported("an Excel workbook")
    if "ppt/presentation.xml" in members:
        raise _unsupported("a PowerPoint presentation")
    if "content.xml" in members:
        raise _unsupported("an OpenDocument file")
    raise _unsupported("a ZIP archive")


def _old_office_file(content: bytes) -> NotReadable:
    if "EncryptedPackage".encode("utf-16-le") in content:
        return NotReadable(
            UnreadableReason.PASSWORD_PROTECTED, "the Office document needs a password"
        )
    return _unsupported("an Office document of before 2007; save it as .docx")


def _unsupported(what: str) -> NotReadable:
    return NotReadable(UnreadableReason.UNSUPPORTED_KIND, f"the file is {what}")
