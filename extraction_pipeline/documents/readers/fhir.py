"""Reads JSON documents, and FHIR resources among them.

A DocumentReference or a Binary is an envelope: the clinical document is its attachment, which is
read by the reader of its kind. Any other resource, and any other JSON, is read as an outline;
attachments inside it are read in their place, and FHIR's narrative (a `div` of XHTML) as text.
"""

from collections.abc import Iterator
from dataclasses import replace

from extraction_pipeline.documents.readable import (
    Extracted,
    NotReadable,
    Reading,
    UnreadableReason,
)
from extraction_pipeline.documents.readers.attachment import decode_base64, name_for
from extraction_pipeline.documents.readers.html import fragment_text
from extraction_pipeline.documents.readers.json_outline import JsonValue, outline

_Object = dict[str, JsonValue]


def is_fhir(value: JsonValue) -> bool:
    """Whether a JSON document is a FHIR resource."""
    return isinstance(value, dict) and isinstance(value.get("resourceType"), str)


def read_json(value: JsonValue, encoding: str | None, reading: Reading) -> Extracted:
    """The text of a parsed JSON document. Raises NotReadable."""
    if isinstance(value, dict):
        if value.get("resourceType") == "DocumentReference":
            return _document_reference(value, encoding, reading)
        if value.get("resourceType") == "Binary":
            return replace(_attachment(value, reading), encoding=encoding)

    def read_string(name: str, text: str, parent: _Object) -> str | None:
        if name == "div" and text.lstrip().startswith("<div"):
            return fragment_text(text, reading)
        if name == "data" and isinstance(parent.get("contentType"), str):
            try:
                return _attachment(parent, reading).text
            except NotReadable as refusal:
                # One picture in a bundle is no reason to give up the bundle; it says so itself.
                return f"[attachment not read: {refusal.reason}]"
        return None

    return Extracted(outline(value, read_string, reading.limits.characters), encoding)


def _document_reference(resource: _Object, encoding: str | None, reading: Reading) -> Extracted:
    # FHIR: all `content` of one DocumentReference is the same document in several formats, so the
    # first format that can be read stands for all.
    refusals: list[NotReadable] = []
    for content in _objects(resource.get("content")):
        attachment = content.get("attachment")
        if not isinstance(attachment, dict):
            continue
        try:
            inner = _attachment(attachment, reading)
        except NotReadable as refusal:
            refusals.append(refusal)
            continue
        header = "\n".join(_header_lines(resource))
        text = f"{header}\n\n{inner.text}" if header else inner.text
        return replace(inner, text=text, encoding=encoding)
    if refusals:
        # A reason that lies in the content says more than a format that is only referred to.
        raise next(
            (one for one in refusals if one.reason is not UnreadableReason.REFERENCE_ONLY),
            refusals[0],
        )
    raise NotReadable(
        UnreadableReason.REFERENCE_ONLY, "the FHIR DocumentReference has no attachment"
    )


def _attachment(attachment: _Object, reading: Reading) -> Extracted:
    data = attachment.get("data")
    if not isinstance(data, str) or not data.strip():
        raise NotReadable(
            UnreadableReason.REFERENCE_ONLY,
            "the FHIR attachment has no data, only a reference to where it lies",
        )
    media_type = attachment.get("contentType")
    content = decode_base64(data, "the FHIR attachment")
    return reading.read_inside(content, name_for(media_type if isinstance(media_type, str) else ""))


def _header_lines(resource: _Object) -> Iterator[str]:
    """Facts about the document. The patient (`subject`) is left out, as in `ccda`."""
    kind = _concept(resource.get("type"))
    if kind:
        yield f"Document type: {kind}"
    description = resource.get("description")
    if isinstance(description, str) and description.strip():
        yield f"Description: {description.strip()}"
    date = resource.get("date")
    if isinstance(date, str):
        yield f"Date: {date[:10]}"
    custodian = _display(resource.get("custodian"))
    if custodian:
        yield f"Organization: {custodian}"
    for author in _objects(resource.get("author")):
        name = _display(author)
        if name:
            yield f"Author: {name}"
    context = resource.get("context")
    # R4 keeps the period in `context`, R5 beside it.
    period = (context if isinstance(context, dict) else resource).get("period")
    if isinstance(period, dict):
        for key, label in (("start", "Encounter start"), ("end", "Encounter end")):
            moment = period.get(key)
            if isinstance(moment, str):
                yield f"{label}: {moment[:10]}"


def _objects(value: JsonValue) -> Iterator[_Object]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def _display(value: JsonValue) -> str:
    display = value.get("display") if isinstance(value, dict) else None
    return display.strip() if isinstance(display, str) else ""


def _concept(value: JsonValue) -> str:
    if not isinstance(value, dict):
        return ""
    text = value.get("text")
    if isinstance(text, str) and text.strip():
        return text.strip()
    return next((_display(coding) for coding in _objects(value.get("coding"))), "")
