"""Reads XML of no known kind: its text in the order of the document.

Element text is taken as it is. Some formats (guideline exports, FHIR as XML) keep their text in
attributes, so an attribute is text too if its name says so (name, value, title, ...) or if it is
a phrase of several words; identifiers, codes and numbers are not. HTML inside a value, as text or
escaped, is read as HTML.
"""

import re

from lxml import etree

from extraction_pipeline.documents.readable import Extracted, Reading
from extraction_pipeline.documents.readers.attachment import looks_encoded
from extraction_pipeline.documents.readers.html import fragment_text
from extraction_pipeline.documents.readers.markup import local_name

_TEXT_ATTRIBUTES = frozenset(
    [
        *("name", "value", "title", "label", "text"),
        *("display", "displayname", "description", "caption", "comment"),
    ]
)
_PHRASE = re.compile(r"[^\W\d_]{2,}[,;:.]? +[^\W\d_]{2,}")
_MARKUP = re.compile(
    r"<(?:p|div|br|table|ul|ol|li|strong|em|b|i|span|h[1-6]|a|sup|sub)\b[^>]{0,500}>", re.IGNORECASE
)


def read_generic_xml(root: etree._Element, encoding: str | None, reading: Reading) -> Extracted:
    """The text of any XML tree."""
    lines: list[str] = []
    for count, (event, element) in enumerate(etree.iterwalk(root, events=("start", "end"))):
        if count % 10_000 == 9_999:
            reading.check_time("XML")
        if event == "start":
            for name, value in element.attrib.items():
                _add_attribute(lines, element, str(name).rpartition("}")[2], str(value), reading)
            _add(lines, element.text, reading)
        elif element is not root:
            _add(lines, element.tail, reading)
    return Extracted("\n".join(lines).strip(), encoding)


def _add_attribute(
    lines: list[str], element: etree._Element, name: str, value: str, reading: Reading
) -> None:
    lowered = name.lower()
    if lowered not in _TEXT_ATTRIBUTES and _PHRASE.search(value) is None:
        return
    if lowered == "value" and _MARKUP.search(value) is None:
        # <status value="active"/>: the value means nothing without the element's name.
        _add(lines, f"{local_name(element)}: {value}" if value.strip() else "", reading)
    elif lowered in {"name", "title", "label"} and value.strip():
        lines.append("")
        _add(lines, value, reading)
    else:
        _add(lines, value, reading)


def _add(lines: list[str], value: str | None, reading: Reading) -> None:
    value = (value or "").strip()
    if not value:
        return
    if looks_encoded(value.rpartition(" ")[2]):
        lines.append(f"[{len(value)} characters of encoded content, not read]")
    elif _MARKUP.search(value) is not None:
        lines.append(fragment_text(value, reading))
    else:
        lines.append(value)
