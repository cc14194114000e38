import io
import zipfile

import docx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from extraction_pipeline.documents.readable import ReadLimits
from extraction_pipeline.documents.reading import (
    DocumentKind,
    Unreadable,
    UnreadableReason,
    read_document,
)
from extraction_pipeline_tests.documents.made_files import read, reason, saved


def with_body(xml: str) -> bytes:
    """A DOCX whose body is this WordprocessingML."""
    document = docx.Document()
    body = document.element.body
    for element in parse_xml(f"<w:body {nsdecls('w')}>{xml}</w:body>"):
        body.insert(len(body) - 1, element)
    return saved(document)


def paragraph(text: str, properties: str = "") -> str:
    run = f'<w:r>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'
    return f"<w:p>{run}</w:p>"


def test_headings_paragraphs_lists_and_tables_in_order():
    document = docx.Document()
    document.sections[0].header.paragraphs[0].text = "Riverside General"
    document.sections[0].footer.paragraphs[0].text = "Policy 12, revised 2024"
    document.add_heading("Discharge summary", 1)
    document.add_paragraph("Admitted with fever.")
    table = document.add_table(rows=2, cols=2)
    for cell, text in zip(
        [cell for row in table.rows for cell in row.cells],
        ["Drug", "Dose", "Lisinopril", "10 mg\ndaily"],
        strict=True,
    ):
        cell.text = text
    document.add_paragraph("Rest", style="List Bullet")
    document.add_paragraph("Call", style="List Number")
    document.add_paragraph("Return", style="List Number")
    result = read(saved(document), "note")
    assert result.kind is DocumentKind.DOCX
    assert result.text == (
        "Riverside General\n\nDischarge summary\n\nAdmitted with fever.\n\nDrug | Dose\n"
        "Lisinopril | 10 mg daily\n\n- Rest\n1. Call\n2. Return\n\nPolicy 12, revised 2024"
    )


def test_content_controls_and_tracked_changes():
    body = (
        f"<w:sdt><w:sdtContent>{paragraph('In a control.')}</w:sdtContent></w:sdt>"
        "<w:p><w:r><w:t>Take </w:t></w:r><w:ins w:id='1'><w:r><w:t>10</w:t></w:r></w:ins>"
        "<w:del w:id='2'><w:r><w:delText>20</w:delText></w:r></w:del>"
        "<w:moveFrom w:id='3'><w:r><w:t>30</w:t></w:r></w:moveFrom>"
        "<w:r><w:tab/><w:t>mg</w:t><w:br/><w:t>daily</w:t></w:r></w:p>"
    )
    assert read(with_body(body)).text == "In a control.\nTake 10 mg\ndaily"


def test_merged_cells_rows_in_controls_and_deleted_rows():
    def cell(text: str, properties: str = "") -> str:
        return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>"

    restart, covered = "<w:vMerge w:val='restart'/>", "<w:vMerge/>"
    wide = "<w:gridSpan w:val='2'/>"
    rows = (
        f"<w:tr>{cell('Penicillin', restart)}{cell('rash')}</w:tr>"
        f"<w:sdt><w:sdtContent><w:tr>{cell('', covered)}{cell('hives')}</w:tr>"
        "</w:sdtContent></w:sdt>"
        f"<w:tr><w:trPr><w:del w:id='1'/></w:trPr>{cell('wrong')}{cell('row')}</w:tr>"
        f"<w:tr>{cell('none known', wide)}{cell('end')}</w:tr>"
    )
    assert read(with_body(f"<w:tbl>{rows}</w:tbl>")).text == (
        "Penicillin | rash\nPenicillin | hives\nnone known |  | end"
    )


def test_superscript_strikethrough_and_tick_boxes():
    body = (
        "<w:p><w:r><w:t>10</w:t></w:r>"
        "<w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr><w:t>9</w:t></w:r></w:p>"
        + paragraph("warfarin", "<w:rPr><w:strike/></w:rPr>")
        + paragraph("apixaban", "<w:rPr><w:strike w:val='0'/></w:rPr>")
        + "<w:p><w:r><w:sym w:font='Wingdings' w:char='F0FE'/><w:t> yes </w:t></w:r>"
        "<w:r><w:fldChar w:fldCharType='begin'><w:ffData><w:checkBox><w:default w:val='1'/>"
        "<w:checked w:val='0'/></w:checkBox></w:ffData></w:fldChar></w:r>"
        "<w:r><w:instrText>FORMCHECKBOX</w:instrText></w:r><w:r><w:t>no</w:t></w:r></w:p>"
    )
    assert read(with_body(body)).text == "10^9\n~~warfarin~~\napixaban\n[x] yes [ ] no"


def test_a_document_without_text():
    assert reason(saved(docx.Document()), "a.docx") is UnreadableReason.NO_TEXT


@pytest.mark.parametrize("share", [0.2, 0.7, 0.95])
def test_a_file_that_is_cut_short(share):
    document = docx.Document()
    document.add_paragraph("Fever. " * 200)
    content = saved(document)
    cut = content[: int(len(content) * share)]
    assert reason(cut, "a.docx") is UnreadableReason.TRUNCATED_OR_CORRUPT


def test_damage_inside_the_package():
    document = docx.Document()
    document.add_paragraph("Fever. " * 2000)
    content = bytearray(saved(document))
    at = content.index(b"word/document.xml") + 60
    content[at : at + 20] = bytes(20)
    assert reason(bytes(content), "a.docx") is UnreadableReason.TRUNCATED_OR_CORRUPT


def test_a_zip_bomb_is_refused_by_what_it_unpacks_to():
    document = docx.Document()
    document.add_paragraph("Fever.")
    stream = io.BytesIO(saved(document))
    with zipfile.ZipFile(stream, "a", zipfile.ZIP_DEFLATED) as package:
        package.writestr("word/media/image1.bin", bytes(5_000_000))
    content = stream.getvalue()
    assert len(content) < 100_000
    result = read_document(content, "a.docx", limits=ReadLimits(unpacked_bytes=4_000_000))
    assert isinstance(result, Unreadable)
    assert result.reason is UnreadableReason.TOO_LARGE


def test_protected_and_older_office_files():
    container = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1000)
    protected = container + "EncryptedPackage".encode("utf-16-le") + bytes(1000)
    assert reason(protected, "a.docx") is UnreadableReason.PASSWORD_PROTECTED
    assert reason(container, "a.doc") is UnreadableReason.UNSUPPORTED_KIND


@pytest.mark.parametrize("member", ["xl/workbook.xml", "content.xml", "readme.txt"])
def test_other_zip_files(member):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as package:
        package.writestr(member, "x")
    assert reason(stream.getvalue(), "a.docx") is UnreadableReason.UNSUPPORTED_KIND
