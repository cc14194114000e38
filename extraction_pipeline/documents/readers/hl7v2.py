"""Reads HL7 version 2 messages: one segment a line, with the notes in it made readable.

A message is text, and its segments and fields are what a model or a rule can work with, so they
stay as they are. Two things are opened up. Escape sequences inside notes (HL7 v2.5.1, section
2.7) become the characters they stand for. A document that is embedded as base64 in an
observation (OBX-5 of type ED, as transcription messages carry it) is read by the reader of its
kind and stands in its place.
"""

import re

from extraction_pipeline.documents.readable import (
    Extracted,
    NotReadable,
    Reading,
    UnreadableReason,
)
from extraction_pipeline.documents.readers.attachment import decode_base64

_FIRST_SEGMENTS = ("MSH|", "FHS|", "BHS|")
_LINE_BREAK = re.compile(r"\\\.(?:br|sp\d*)\\")
_ESCAPE = re.compile(r"\\(\.br|\.sp\d*|[FSTRE])\\")
_ESCAPED = {"F": "|", "S": "^", "T": "&", "R": "~", "E": "\\"}
_DECLARED = re.compile(rb"\AMSH\|(?:[^|\r\n]*\|){16}([^|~\r\n]*)")
_ENCODINGS = {
    "UNICODE UTF-8": "utf-8",
    "8859/1": "cp1252",
    "8859/2": "iso8859_2",
    "8859/5": "iso8859_5",
    "8859/7": "iso8859_7",
    "8859/9": "iso8859_9",
    "8859/15": "iso8859_15",
    "GB 18030-2000": "gb18030",
}
"""HL7 table 0211, as far as Python has the encoding."""


def is_hl7v2(text: str) -> bool:
    """Whether a text is a message or a file of them. MLLP's block character may stand first."""
    return text[:8].lstrip("\x0b \t\r\n").startswith(_FIRST_SEGMENTS)


def declared_hl7v2_encoding(content: bytes) -> str | None:
    """The encoding that MSH-18 names, if there is one that is known."""
    match = _DECLARED.match(content[:4096].lstrip(b"\x0b \t\r\n"))
    return _ENCODINGS.get(match.group(1).decode("latin-1").strip()) if match is not None else None


def read_hl7v2(text: str, encoding: str | None, reading: Reading) -> Extracted:
    """The text of HL7 v2 messages. Raises NotReadable if an embedded document cannot be read."""
    lines: list[str] = []
    for segment in text.strip("\x0b\x1c \t\r\n").splitlines():
        fields = segment.split("|")
        if fields[0] == "OBX" and len(fields) > 5 and fields[2] == "ED":
            reading.check_time("HL7 v2 segment")
            document = _embedded(fields[5], reading)
            if document is not None:
                fields[5] = ""
                lines.extend(["|".join(fields), document])
                continue
        lines.append(_unescaped(segment) if not segment.startswith(_FIRST_SEGMENTS) else segment)
    return Extracted("\n".join(lines), encoding)


def _embedded(field: str, reading: Reading) -> str | None:
    components = field.split("^")
    if len(components) < 5 or components[3].lower() != "base64":
        return None
    subtype = components[2].lower()
    # Base64 may be broken by escaped line breaks.
    data = decode_base64(_LINE_BREAK.sub("", components[4]), "the document in the HL7 v2 message")
    if not data:
        raise NotReadable(UnreadableReason.EMPTY, "the document in the HL7 v2 message is empty")
    return reading.read_inside(data, f"attachment.{subtype}").text


def _unescaped(segment: str) -> str:
    # In one pass, so that an escaped backslash begins no other sequence.
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match.group(1), "\n"), segment)
