"""Reads C-CDA, the HL7 XML of clinical documents: header facts, then the narrative by section.

The narrative block of a section is what the author signed; the coded entries beside it are for
machines and are not read (HL7 CDA Release 2, section 4.3.5). Of the header only facts about the
document and the stay are read. The patient's name, birth date and address are not: no field of a
record needs them, and what is not read is not sent.
"""

from collections.abc import Iterator
from dataclasses import replace

from lxml import etree

from extraction_pipeline.documents.readable import (
    Extracted,
    NotReadable,
    Reading,
    UnreadableReason,
)
from extraction_pipeline.documents.readers.attachment import decode_base64, name_for
from extraction_pipeline.documents.readers.markup import local_name, text_within, write_markup
from extraction_pipeline.documents.readers.text_blocks import TextBlocks


def find_clinical_document(root: etree._Element) -> etree._Element | None:
    """The ClinicalDocument element: the root, or the only one inside an envelope."""
    found = list(root.iter("{*}ClinicalDocument"))
    return found[0] if len(found) == 1 else None


def read_ccda(document: etree._Element, encoding: str | None, reading: Reading) -> Extracted:
    """The text of a C-CDA document. Raises NotReadable."""
    header = "\n".join(_header_lines(document))
    for component in _children(document, "component"):
        for body in _children(component, "nonXMLBody"):
            inner = _unstructured(body, reading)
            return replace(inner, text=f"{header}\n\n{inner.text}", encoding=encoding)
    blocks = TextBlocks()
    for component in _children(document, "component"):
        for body in _children(component, "structuredBody"):
            _write_sections(body, blocks, reading)
    sections = blocks.text()
    if not sections:
        raise NotReadable(
            UnreadableReason.NO_TEXT, "the C-CDA document has no narrative in any section"
        )
    return Extracted(f"{header}\n\n{sections}", encoding)


def _header_lines(document: etree._Element) -> Iterator[str]:
    title = _text_of(_child(document, "title"))
    kind = _display(_child(document, "code"))
    if title:
        yield title
    if kind and kind.lower() not in title.lower():
        yield f"Document type: {kind}"
    yield from _labelled("Date", _date(_child(document, "effectiveTime")))
    custodian = _path(
        document, "custodian", "assignedCustodian", "representedCustodianOrganization", "name"
    )
    yield from _labelled("Organization", _text_of(custodian))
    author = _path(document, "author", "assignedAuthor", "assignedPerson", "name")
    yield from _labelled("Author", _text_of(author))
    stay = _path(document, "componentOf", "encompassingEncounter")
    if stay is None:
        return
    period = _child(stay, "effectiveTime")
    yield from _labelled("Admitted", _date(_child(period, "low")) or _date(period))
    yield from _labelled("Discharged", _date(_child(period, "high")))
    disposition = _child(stay, "dischargeDispositionCode")
    yield from _labelled("Discharge disposition", _display(disposition))
    facility = _path(stay, "location", "healthCareFacility", "location", "name")
    yield from _labelled("Facility", _text_of(facility))


def _labelled(label: str, value: str) -> Iterator[str]:
    if value:
        yield f"{label}: {value}"


def _write_sections(parent: etree._Element, blocks: TextBlocks, reading: Reading) -> None:
    # Sections lie in sections, at most 128 deep: the parser allows 256 levels of elements.
    for component in _children(parent, "component"):
        for section in _children(component, "section"):
            reading.check_time("section")
            title = _text_of(_child(section, "title")) or _display(_child(section, "code"))
            narrative = _child(section, "text")
            blocks.gap()
            blocks.inline(title)
            blocks.end_line()
            if narrative is not None:
                write_markup(narrative, blocks, reading.check_time)
            _write_sections(section, blocks, reading)


def _unstructured(body: etree._Element, reading: Reading) -> Extracted:
    text = _child(body, "text")
    content = "" if text is None else "".join(str(piece) for piece in text.itertext()).strip()
    if text is None or not content:
        if text is not None and _child(text, "reference") is not None:
            raise NotReadable(
                UnreadableReason.REFERENCE_ONLY,
                "the C-CDA document only names another file, which holds the text",
            )
        raise NotReadable(UnreadableReason.NO_TEXT, "the C-CDA document has an empty body")
    if text.get("compression") is not None:
        raise NotReadable(
            UnreadableReason.UNSUPPORTED_KIND, "the body of the C-CDA document is compressed"
        )
    if text.get("representation") != "B64":
        return Extracted(content)
    data = decode_base64(content, "the body of the C-CDA document")
    return reading.read_inside(data, name_for(text.get("mediaType") or ""))


def _children(element: etree._Element, name: str) -> Iterator[etree._Element]:
    # By local name: exports are found with a prefix, with another namespace, and with none.
    return (child for child in element if local_name(child) == name)


def _child(element: etree._Element | None, name: str) -> etree._Element | None:
    return None if element is None else next(_children(element, name), None)


def _path(element: etree._Element, *names: str) -> etree._Element | None:
    found: etree._Element | None = element
    for name in names:
        found = _child(found, name)
    return found


def _text_of(element: etree._Element | None) -> str:
    return "" if element is None else text_within(element)


def _display(code: etree._Element | None) -> str:
    """What a coded value says to people: its display name, or the text it stands for."""
    if code is None:
        return ""
    candidates = [code.get("displayName"), _text_of(_child(code, "originalText"))]
    candidates += [translation.get("displayName") for translation in _children(code, "translation")]
    return next((value.strip() for value in candidates if value and value.strip()), "")


def _date(moment: etree._Element | None) -> str:
    """The date of an HL7 time stamp (YYYYMMDDHHMMSS with a zone), as far as it is given.

    The clock time is left out: the zone is missing too often for it to be compared.
    """
    value = "" if moment is None else (moment.get("value") or "").strip()
    digits = value[:8]
    if len(digits) == 8 and digits.isdigit():
        return f"{digits[:4]}-{digits[4:6]}-{digits[6:]}"
    year_and_month = value[:6]
    if len(year_and_month) == 6 and year_and_month.isdigit():
        return f"{year_and_month[:4]}-{year_and_month[4:]}"
    return value[:4] if value[:4].isdigit() else ""
