"""A document inside another one: base64 with a media type, as FHIR and C-CDA carry it."""

import base64
import binascii
import re

from extraction_pipeline.documents.readable import NotReadable, UnreadableReason

_NAME_BY_MEDIA_TYPE = {
    "application/pdf": "attachment.pdf",
    "application/rtf": "attachment.rtf",
    "text/rtf": "attachment.rtf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "attachment.docx",
    "text/html": "attachment.html",
    "application/xhtml+xml": "attachment.html",
    "text/markdown": "attachment.md",
    "text/xml": "attachment.xml",
    "application/xml": "attachment.xml",
    "application/hl7-v3+xml": "attachment.xml",
    "application/hl7-cda+xml": "attachment.xml",
    "application/json": "attachment.json",
    "application/fhir+json": "attachment.json",
}
_ENCODED = re.compile(r"[A-Za-z0-9+/=_-]+")
_SHORTEST_ENCODED = 1000
"""A word of at least so many characters of the base64 alphabet is no word."""


def name_for(media_type: str) -> str:
    """A file name that tells a reader the media type. Parameters such as charset are ignored."""
    return _NAME_BY_MEDIA_TYPE.get(media_type.split(";")[0].strip().lower(), "attachment")


def decode_base64(data: str, what: str) -> bytes:
    """The bytes of a base64 text, white space in it allowed. Raises NotReadable."""
    compact = "".join(data.split())
    try:
        return base64.b64decode(compact, altchars=None, validate=True)
    except (binascii.Error, ValueError):
        # Cut base64 has a wrong length; the bytes before the cut are not the document.
        pass
    raise NotReadable(
        UnreadableReason.TRUNCATED_OR_CORRUPT, f"{what} is not complete base64, and is damaged"
    )


def looks_encoded(text: str) -> bool:
    """Whether a text is encoded bytes, which say nothing to a reader."""
    return len(text) >= _SHORTEST_ENCODED and _ENCODED.fullmatch(text) is not None
