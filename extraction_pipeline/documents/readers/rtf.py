"""Reads RTF with striprtf: paragraphs and tables. Headers, footers and text boxes are left out."""

import re

from striprtf.striprtf import rtf_to_text

from extraction_pipeline.documents.readable import (
    Extracted,
    NotReadable,
    Reading,
    UnreadableReason,
)

_CODE_PAGE = re.compile(rb"\\ansicpg(\d{3,5})")
_GROUP_OR_FONT = re.compile(r"(?<!\\)(?=\{|\\f\d)")
_LARGEST_BYTES = 16 * 1024 * 1024
"""Larger RTF files hold pictures, not more text."""


def read_rtf(content: bytes, reading: Reading) -> Extracted:
    """The text of an RTF file. Raises NotReadable."""
    if len(content) > _LARGEST_BYTES:
        raise NotReadable(
            UnreadableReason.TOO_LARGE,
            f"RTF files are read up to {_LARGEST_BYTES // 1024 // 1024} MB; save it as DOCX or PDF",
        )
    if not content.rstrip(b"\0 \t\r\n\x1a").endswith(b"}"):
        raise NotReadable(
            UnreadableReason.TRUNCATED_OR_CORRUPT, "the RTF file ends before its last brace"
        )
    match = _CODE_PAGE.search(content[:4096])
    encoding = f"cp{match.group(1).decode('ascii')}" if match is not None else "cp1252"
    try:
        source = content.decode(encoding, "replace")
    except LookupError:
        encoding = "cp1252"
        source = content.decode(encoding, "replace")
    if "\\bin" not in source:
        # striprtf searches to the end of the line again and again, and an RTF file may be one line.
        # A line end before a group says nothing in RTF (except within raw binary data).
        source = _GROUP_OR_FONT.sub("\n", source)
    reading.check_time("RTF")
    # striprtf has no annotations on its one function.
    text = rtf_to_text(source, encoding=encoding, errors="replace")  # type: ignore[no-untyped-call]
    return Extracted(str(text))
