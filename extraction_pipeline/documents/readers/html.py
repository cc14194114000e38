"""Reads HTML: the text that a browser would show, and the title."""

from lxml import etree

from extraction_pipeline.documents.readable import (
    Extracted,
    NotReadable,
    Reading,
    ReadLimits,
    UnreadableReason,
)
from extraction_pipeline.documents.readers.markup import local_name, text_within, write_markup
from extraction_pipeline.documents.readers.text_blocks import TextBlocks
from extraction_pipeline.documents.readers.xml_tree import check_elements, goes_beyond_limits


def read_html(text: str, encoding: str | None, reading: Reading) -> Extracted:
    """The text of an HTML page that was decoded before."""
    blocks = TextBlocks()
    root = parse_html(text, reading.limits)
    if root is not None:
        title = _title(root)
        write_markup(root, blocks, reading.check_time)
        body = blocks.text()
        if title and not body.startswith(title):
            return Extracted(f"{title}\n\n{body}", encoding)
    return Extracted(blocks.text(), encoding)


def fragment_text(markup: str, reading: Reading) -> str:
    """The text of a piece of HTML that lies inside another document."""
    root = parse_html(markup, reading.limits)
    blocks = TextBlocks()
    if root is not None:
        write_markup(root, blocks, reading.check_time)
    return blocks.text()


def parse_html(text: str, limits: ReadLimits) -> etree._Element | None:
    """The tree of an HTML text, None if there is nothing in it. Raises NotReadable."""
    check_elements(text.count("<") - text.count("</"), limits)
    # HTML has no entities of its own making, so the larger depth (2048 instead of 256 elements)
    # that `huge_tree` gives opens no way to blow up a small file.
    parser = etree.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError as error:
        if goes_beyond_limits(error):
            raise NotReadable(
                UnreadableReason.TOO_LARGE, "reading the HTML needs too much memory"
            ) from None
        # Raised otherwise only where no element at all was found.
        return None
    if any(entry.level >= etree.ErrorLevels.FATAL for entry in parser.error_log):
        # The parser gives up at such an error and drops the rest without raising.
        raise NotReadable(
            UnreadableReason.TRUNCATED_OR_CORRUPT,
            "the HTML is nested too deeply or damaged, and could only be read in part",
        )
    return root


def _title(root: etree._Element) -> str:
    for element in root.iter("title"):
        parent = element.getparent()
        if parent is not None and local_name(parent) == "head":
            return text_within(element)
    return ""
