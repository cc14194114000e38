"""JSON, FHIR, HL7 v2 and RTF."""

import base64
import json

import pytest

from extraction_pipeline.documents.reading import DocumentKind, UnreadableReason
from extraction_pipeline_tests.documents.made_files import pdf_of_pages, read, reason


def as_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def document_reference(*attachments: dict[str, str]) -> bytes:
    return as_json(
        {
            "resourceType": "DocumentReference",
            "type": {"coding": [{"code": "18842-5", "display": "Discharge summary"}]},
            "subject": {"display": "Ada Testcase"},
            "date": "2024-03-05T10:15:00Z",
            "author": [{"display": "Dr. Lee Moss"}],
            "custodian": {"display": "Riverside General"},
            "content": [{"attachment": attachment} for attachment in attachments],
            "context": {"period": {"start": "2024-03-01T08:00:00Z"}},
        }
    )


def attached(content: bytes, media_type: str = "text/plain") -> dict[str, str]:
    return {"contentType": media_type, "data": base64.b64encode(content).decode()}


def test_json_is_read_as_an_outline_that_keeps_strings_and_numbers_as_written():
    source = (
        '{"dose": 0.50, "big": 12345678901234567890, "given": true, "note": "caf\\u00e9\\nrest",'
        '"codes": [{"code": "A1", "of": [1, 2]}, "B2", []], "none": null}'
    )
    result = read(source.encode(), "a.json")
    assert result.kind is DocumentKind.JSON
    assert result.text == (
        "dose: 0.50\nbig: 12345678901234567890\ngiven: true\nnote:\n  café\n  rest\n"
        "codes:\n  - code: A1\n    of:\n      - 1\n      - 2\n  - B2\n  - []\nnone: null"
    )


def test_a_note_in_brackets_is_a_note_and_json_by_name_is_json():
    assert read(b"[**2009-1-1**] Seen today.", "a.txt").kind is DocumentKind.TEXT
    assert reason(b'{"a": [1, 2', "a.json") is UnreadableReason.TRUNCATED_OR_CORRUPT
    assert reason(b"[" * 100_000, "a.json") is UnreadableReason.TRUNCATED_OR_CORRUPT


def test_line_separators_inside_json_strings():
    assert read('{"a": "b\u2028c"}'.encode(), "a.json").text == "a:\n  b\n  c"


def test_a_lone_surrogate_in_json_can_be_stored():
    assert read(b'{"a": "x \\ud83d y \\ud83d\\ude00"}', "a.json").text == "a: x \ufffd y \U0001f600"


def test_a_document_reference_is_read_through_to_its_attachment():
    result = read(document_reference(attached(b"Admitted with fever.")), "a.json")
    assert result.kind is DocumentKind.FHIR
    assert result.text == (
        "Document type: Discharge summary\nDate: 2024-03-05\nOrganization: Riverside General\n"
        "Author: Dr. Lee Moss\nEncounter start: 2024-03-01\n\nAdmitted with fever."
    )
    pdf = read(document_reference(attached(pdf_of_pages(["Fever.", ""]), "application/pdf")))
    assert pdf.text.endswith("Fever.")
    assert (pdf.kind, pdf.pages, pdf.pages_without_text) == (DocumentKind.FHIR, 2, 1)


def test_the_first_format_that_can_be_read_stands_for_the_document():
    scan = attached(pdf_of_pages([""]), "application/pdf")
    linked = {"contentType": "application/pdf", "url": "https://example.org/1"}
    assert read(document_reference(linked, scan, attached(b"Fever."))).text.endswith("Fever.")
    assert reason(document_reference(linked, scan)) is UnreadableReason.NO_TEXT
    assert reason(document_reference(linked)) is UnreadableReason.REFERENCE_ONLY
    assert reason(document_reference()) is UnreadableReason.REFERENCE_ONLY
    assert reason(document_reference(attached(b" "))) is UnreadableReason.BLANK
    cut = {"contentType": "text/plain", "data": "RmV2ZXI"}
    assert reason(document_reference(cut)) is UnreadableReason.TRUNCATED_OR_CORRUPT


def test_a_binary_resource():
    binary = {"resourceType": "Binary", **attached(b"<p>Fever</p>", "text/html")}
    assert read(as_json(binary), "a.json").text == "Fever"


def test_attachments_and_narrative_inside_other_resources_are_read_in_their_place():
    bundle = {
        "resourceType": "Bundle",
        "entry": [
            {"text": {"div": '<div xmlns="http://www.w3.org/1999/xhtml"><p>A &amp; B</p></div>'}},
            attached(b"Fever."),
            attached(b"\x89PNG\r\n\x1a\n" + bytes(900), "image/png"),
            {"payload": "QUJD" * 400},
        ],
    }
    text = read(as_json(bundle), "a.json").text
    assert "div: A & B" in text
    assert "data: Fever." in text
    assert "data: [attachment not read: unsupported_kind]" in text
    assert "payload: [1600 characters of encoded content, not read]" in text


HL7 = (
    "MSH|^~\\&|LAB|RIVERSIDE|EHR||202403051015||MDM^T02|1|P|2.5.1||||||{charset}\r"
    "PID|1||12345\r"
    "OBX|1|{kind}|18842-5^Summary||{value}||||||F\r"
    "NTE|1||B\\T\\C 5 \\S\\ 3\\.br\\next \\E\\T\\E\\\r"
)


def test_hl7_v2_gives_one_segment_a_line_with_its_escapes_resolved():
    message = HL7.format(charset="UNICODE UTF-8", kind="TX", value="Fièvre")
    result = read(b"\x0b" + message.encode() + b"\x1c\r", "a.hl7")
    assert result.kind is DocumentKind.HL7V2
    assert result.text.splitlines() == [
        "MSH|^~\\&|LAB|RIVERSIDE|EHR||202403051015||MDM^T02|1|P|2.5.1||||||UNICODE UTF-8",
        "PID|1||12345",
        "OBX|1|TX|18842-5^Summary||Fièvre||||||F",
        "NTE|1||B&C 5 ^ 3",
        "next \\T\\",
    ]


def test_hl7_v2_declares_its_encoding():
    message = HL7.format(charset="8859/5", kind="TX", value="Боль")
    assert "Боль" in read(message.encode("iso8859-5"), "a.hl7").text


def test_a_document_embedded_in_hl7_v2_is_read_in_its_place():
    data = base64.b64encode(pdf_of_pages(["Discharged home."])).decode()
    message = HL7.format(charset="", kind="ED", value=f"^application^pdf^Base64^{data}")
    lines = read(message.encode(), "a.hl7").text.splitlines()
    assert lines[2:4] == ["OBX|1|ED|18842-5^Summary||||||||F", "Discharged home."]
    message = HL7.format(charset="", kind="ED", value="^application^pdf^Base64^JVBERi0xL")
    assert reason(message.encode(), "a.hl7") is UnreadableReason.TRUNCATED_OR_CORRUPT


RTF = (
    rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0\fswiss Arial;}}\f0 Caf\'e9 \u8364?5 \{kept\}\par "
    rb"See {\field{\*\fldinst{HYPERLINK "
    rb'"https://example.org"}}{\fldrslt the policy}}.\par '
    rb"Drug\cell Dose\cell\row}"
)


def test_rtf():
    result = read(RTF, "letter.doc")
    assert result.kind is DocumentKind.RTF
    assert result.text.splitlines() == ["Café €5 {kept}", "See the policy.", "Drug|Dose|"]


def test_rtf_that_is_cut_short():
    assert reason(RTF[:-1], "a.rtf") is UnreadableReason.TRUNCATED_OR_CORRUPT


@pytest.mark.parametrize("group", [rb"{\field{\*\fldinst{ ", rb"{\fonttbl\f0 ", rb"\f0 "])
def test_rtf_in_one_line_is_read_in_linear_time(group):
    content = b"{\\rtf1 " + group * 40_000 + b" Fever.}"
    read_or_refused = reason if group.startswith(b"{") else read
    read_or_refused(content, "a.rtf")
