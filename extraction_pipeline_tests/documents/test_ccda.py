import base64

import pytest

from extraction_pipeline.documents.reading import DocumentKind, UnreadableReason
from extraction_pipeline_tests.documents.made_files import pdf_of_pages, read, reason

HEADER = """<?xml version="1.0" encoding="UTF-8"?>
<ClinicalDocument xmlns="urn:hl7-org:v3">
  <code code="18842-5" displayName="Discharge summary"/>
  <title>Riverside General: Summary</title>
  <effectiveTime value="20240305101500-0500"/>
  <recordTarget><patientRole><addr><city>Springfield</city></addr><patient>
    <name><given>Ada</given><family>Testcase</family></name><birthTime value="19600102"/>
  </patient></patientRole></recordTarget>
  <author><assignedAuthor><assignedPerson><name><given>Lee</given> <family>Moss</family></name>
    </assignedPerson></assignedAuthor></author>
  <custodian><assignedCustodian><representedCustodianOrganization><name>Riverside General</name>
    </representedCustodianOrganization></assignedCustodian></custodian>
  <componentOf><encompassingEncounter>
    <effectiveTime><low value="202403011200"/><high value="20240304"/></effectiveTime>
    <dischargeDispositionCode code="01"><originalText>Home or self care</originalText>
    </dischargeDispositionCode></encompassingEncounter></componentOf>
"""

BODY = """<component><structuredBody>
  <component><section><title>MEDICATIONS</title><text><table>
    <thead><tr><th>Drug</th><th>Dose</th></tr></thead>
    <tbody><tr><td><content ID="m1">Lisinopril</content></td><td>10 mg<br/>daily</td></tr></tbody>
    </table></text><entry><substanceAdministration><value>machine only</value>
    </substanceAdministration></entry></section></component>
  <component><section><code displayName="Hospital course"/><text>
    <paragraph>Admitted with fever.</paragraph>
    <list listType="ordered"><item>Cultures</item><item>Antibiotics</item></list>
    <content revised="delete">Wrong patient.</content></text>
    <component><section><title>Consultations</title><text>Cardiology</text></section></component>
  </section></component></structuredBody></component></ClinicalDocument>"""


def with_body(body: str) -> bytes:
    return f"{HEADER}<component>{body}</component></ClinicalDocument>".encode()


def test_header_facts_then_the_narrative_by_section():
    result = read((HEADER + BODY).encode(), "export.dat")
    assert result.kind is DocumentKind.CCDA
    assert result.text == (
        "Riverside General: Summary\nDocument type: Discharge summary\nDate: 2024-03-05\n"
        "Organization: Riverside General\nAuthor: Lee Moss\nAdmitted: 2024-03-01\n"
        "Discharged: 2024-03-04\nDischarge disposition: Home or self care\n\n"
        "MEDICATIONS\n\nDrug | Dose\nLisinopril | 10 mg daily\n\n"
        "Hospital course\n\nAdmitted with fever.\n\n1. Cultures\n2. Antibiotics\n\n"
        "Consultations\nCardiology"
    )


def test_a_coded_value_is_told_by_what_it_says_to_people():
    code = "<dischargeDispositionCode code='01'>"
    header = HEADER.replace(
        "<originalText>Home or self care</originalText>",
        "<translation code='1'/><translation code='2' displayName='Home'/>",
    ).replace('<dischargeDispositionCode code="01">', code)
    assert "Discharge disposition: Home\n" in read((header + BODY).encode(), "a.xml").text


def test_the_patient_of_the_header_is_not_read():
    text = read((HEADER + BODY).encode(), "a.xml").text
    assert not any(word in text for word in ("Ada", "Testcase", "1960", "Springfield"))


def test_prefixes_envelopes_and_byte_order_marks_make_no_difference():
    plain = (HEADER + BODY).partition("?>")[2].strip()
    expected = read((HEADER + BODY).encode(), "a.xml").text
    enveloped = f"<Envelope><Body>{plain}</Body></Envelope>"
    assert read(b"\xef\xbb\xbf" + enveloped.encode(), "a.xml").text == expected
    prefixed = plain.replace("</", "</\0").replace("<", "<c:").replace("<c:/\0", "</c:")
    prefixed = prefixed.replace("xmlns=", "xmlns:c=")
    assert read(prefixed.encode(), "a.xml").text == expected


def test_an_embedded_pdf_is_read_by_its_own_reader():
    data = base64.encodebytes(pdf_of_pages(["Discharged home.", ""])).decode()
    body = (
        f'<nonXMLBody><text mediaType="application/pdf" representation="B64">{data}</text>'
        "</nonXMLBody>"
    )
    result = read(with_body(body), "a.xml")
    assert result.kind is DocumentKind.CCDA
    assert result.text.startswith("Riverside General: Summary")
    assert result.text.endswith("Discharged home.")
    assert (result.pages, result.pages_without_text) == (2, 1)


def test_embedded_plain_text():
    body = '<nonXMLBody><text mediaType="text/plain">Discharged home.</text></nonXMLBody>'
    assert read(with_body(body), "a.xml").text.endswith("Discharged home.")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('<text><reference value="scan.pdf"/></text>', UnreadableReason.REFERENCE_ONLY),
        ("<text/>", UnreadableReason.NO_TEXT),
        ('<text representation="B64">JVBERi0xL</text>', UnreadableReason.TRUNCATED_OR_CORRUPT),
        ('<text representation="B64">iVBORw0KGgoAAAA=</text>', UnreadableReason.UNSUPPORTED_KIND),
        (
            '<text representation="B64" compression="DF">eJwD</text>',
            UnreadableReason.UNSUPPORTED_KIND,
        ),
    ],
)
def test_bodies_without_a_text(content, expected):
    assert reason(with_body(f"<nonXMLBody>{content}</nonXMLBody>"), "a.xml") is expected


def test_documents_within_documents_end_somewhere():
    inner = with_body("<nonXMLBody><text>Fever.</text></nonXMLBody>")
    for _ in range(3):
        data = base64.b64encode(inner).decode()
        inner = with_body(
            f'<nonXMLBody><text mediaType="text/xml" representation="B64">{data}</text>'
            "</nonXMLBody>"
        )
    assert read(inner, "a.xml").text.endswith("Fever.")
    data = base64.b64encode(inner).decode()
    inner = with_body(f'<nonXMLBody><text representation="B64">{data}</text></nonXMLBody>')
    assert reason(inner, "a.xml") is UnreadableReason.UNSUPPORTED_KIND


def test_a_document_without_any_narrative_has_no_text():
    body = "<structuredBody><component><section><entry/></section></component></structuredBody>"
    assert reason(with_body(body), "a.xml") is UnreadableReason.NO_TEXT
