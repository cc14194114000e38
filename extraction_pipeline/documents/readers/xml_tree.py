"""Parses XML that nobody vouches for: no entities, no network, no schema, bounded depth and size.

libxml2's own limits stay on (256 levels, 10 MB in one text).
"""

import re

from lxml import etree

from extraction_pipeline.documents.readable import NotReadable, ReadLimits, UnreadableReason

_ENTITY_DECLARATION = re.compile(r"<!ENTITY\b")
_DECLARATION = re.compile(r"<\?xml\b[^>]*\?>")
_DECLARED_ENCODING = re.compile(
    rb"<\?xml\b[^>]{0,200}?\bencoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})"
)

_LIMITS = frozenset(
    [
        etree.ErrorTypes.ERR_RESOURCE_LIMIT,
        etree.ErrorTypes.ERR_NAME_TOO_LONG,
        etree.ErrorTypes.ERR_NO_MEMORY,
    ]
)


class NotWellFormed(Exception):
    """The text is not XML, or not to its end. Carries the line, never the text."""

    def __init__(self, line: int) -> None:
        super().__init__(f"not well-formed at line {line}")
        self.line = line


def check_elements(opened: int, limits: ReadLimits) -> None:
    """Raise NotReadable if so many elements are more than one document may have."""
    if opened > limits.elements:
        raise NotReadable(
            UnreadableReason.TOO_LARGE,
            f"the file has about {opened:,} elements; the limit is {limits.elements:,}",
        )


def parse_xml(text: str, limits: ReadLimits) -> etree._Element:
    """The root of an XML text that was decoded before. Raises NotWellFormed or NotReadable."""
    if _ENTITY_DECLARATION.search(text) is not None:
        raise NotReadable(
            UnreadableReason.UNSUPPORTED_KIND,
            "the XML declares entities, which are not expanded for safety",
        )
    check_elements(text.count("<") - text.count("</"), limits)
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_pis=True,
        remove_comments=True,
    )
    # The declaration goes, because it may name the encoding that the text no longer has.
    text = text.lstrip()
    declaration = _DECLARATION.match(text)
    body = text[declaration.end() :].lstrip() if declaration is not None else text
    failure: NotWellFormed | NotReadable
    try:
        return etree.fromstring(body.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError as error:
        # The parser's own message quotes the document, so it goes no further.
        if goes_beyond_limits(error):
            failure = NotReadable(
                UnreadableReason.TOO_LARGE,
                "the XML is nested deeper than 256 elements or holds a text longer than 10 MB",
            )
        else:
            failure = NotWellFormed(error.lineno or 1)
    raise failure


def goes_beyond_limits(error: etree.XMLSyntaxError) -> bool:
    """Whether XML could not be parsed for its size rather than for what it says."""
    return getattr(error, "code", None) in _LIMITS


def declared_xml_encoding(content: bytes) -> str | None:
    """The encoding named in the XML declaration of some bytes, if there is one."""
    match = _DECLARED_ENCODING.search(content[:400])
    return match.group(1).decode("ascii") if match is not None else None
