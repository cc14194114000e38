from io import BytesIO
from typing import cast

import pytest
from fpdf import FPDF
from pypdf import PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    FloatObject,
    NameObject,
    NumberObject,
    TextStringObject,
)

from extraction_pipeline.documents.readable import ReadLimits
from extraction_pipeline.documents.reading import (
    DocumentKind,
    Unreadable,
    UnreadableReason,
    read_document,
)
from extraction_pipeline_tests.documents.made_files import (
    encrypted,
    pdf_of_pages,
    raw_pdf,
    read,
    reason,
    refused,
    written,
)


def test_the_text_of_all_pages_and_the_count_of_those_without():
    result = read(pdf_of_pages(["Admitted with fever.", "", "Discharged home."]), "scan.pdf")
    assert result.kind is DocumentKind.PDF
    assert result.text == "Admitted with fever.\n\nDischarged home."
    assert (result.pages, result.pages_without_text, result.encoding) == (3, 1, None)


def test_a_pdf_of_pictures_only_has_no_text():
    result = refused(pdf_of_pages(["", ""]), "scan.pdf")
    assert (result.reason, result.kind) == (UnreadableReason.NO_TEXT, DocumentKind.PDF)


def test_a_password_is_needed_only_where_a_user_must_give_one():
    pdf = pdf_of_pages(["Discharged home."])
    assert reason(encrypted(pdf, user="s3cret", owner="o"), "a.pdf") is (
        UnreadableReason.PASSWORD_PROTECTED
    )
    assert read(encrypted(pdf, user="", owner="o"), "a.pdf").text == "Discharged home."


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 0.99])
def test_a_pdf_that_is_cut_short_is_never_read_in_part(share):
    pdf = pdf_of_pages([f"Page {number}. " + "Fever. " * 50 for number in range(8)])
    result = refused(pdf[: int(len(pdf) * share)], "a.pdf")
    assert result.reason is UnreadableReason.TRUNCATED_OR_CORRUPT
    assert "cut short" in result.detail


def test_a_changed_pdf_that_is_cut_short_is_not_read_as_it_was_before():
    before = raw_pdf("BT /F1 12 Tf 50 700 Td (Warfarin 5 mg) Tj ET")
    stream = b"BT /F1 12 Tf 50 700 Td (Warfarin stopped) Tj ET"
    change = b"4 0 obj\n<< /Length %d >>\nstream\n%s\nendstream\nendobj\n" % (len(stream), stream)
    assert read(before + b"\n\0\0", "a.pdf").text == "Warfarin 5 mg"
    assert reason(before + change[:60], "a.pdf") is UnreadableReason.TRUNCATED_OR_CORRUPT


def test_pages_that_are_declared_but_missing_fail_the_document():
    writer = PdfWriter(clone_from=BytesIO(pdf_of_pages(["One.", "Two.", "Three."])))
    tree = cast(DictionaryObject, writer.root_object["/Pages"])
    del cast(ArrayObject, tree["/Kids"])[1]
    assert int(cast(NumberObject, tree["/Count"])) == 3
    result = refused(written(writer), "a.pdf")
    assert result.reason is UnreadableReason.TRUNCATED_OR_CORRUPT
    assert "3 pages" in result.detail


def test_a_page_that_cannot_be_read_fails_the_document():
    pdf = raw_pdf("BT /F1 12 Tf 50 700 Td (Fever) Tj ET").replace(
        b"/Length 36 >>", b"/Length 36 /Filter /Nonsense >>"
    )
    assert b"Nonsense" in pdf
    result = refused(pdf, "a.pdf")
    assert result.reason is UnreadableReason.TRUNCATED_OR_CORRUPT
    assert "Fever" not in result.detail


def test_words_that_were_placed_one_by_one_come_back_on_their_lines():
    # As Google Docs writes: each word in a text object of its own, placed, then moved down.
    words = [
        *((x, 0.5, word) for x, word in ((0, "Hemoglobin"), (90, "9.0"), (115, "g/dL"))),
        *((x, 30.5, word) for x, word in ((0, "Sodium"), (90, "138"))),
    ]
    content = "1 0 0 -1 0 792 cm q .75 0 0 .75 72 72 cm\n" + "\n".join(
        f"BT /F1 16 Tf 1 0 0 -1 {x} {y} Tm 0 -14.5 Td ({word}) Tj ET" for x, y, word in words
    )
    raw = raw_pdf(content + " Q")
    plain = PdfReader(BytesIO(raw)).pages[0].extract_text()
    assert "Hemoglobin 9.0" not in plain, "the case that is repaired does not arise any more"
    assert read(raw, "a.pdf").text == "Hemoglobin 9.0 g/dL\nSodium 138"


def test_two_columns_are_not_mixed():
    lines = [
        f"BT /F1 11 Tf {x} {700 - 20 * row} Td ({side} {row}) Tj ET"
        for x, side in ((50, "left"), (350, "right"))
        for row in range(3)
    ]
    assert read(raw_pdf("\n".join(lines)), "a.pdf").text.splitlines() == [
        "left 0",
        "left 1",
        "left 2",
        "right 0",
        "right 1",
        "right 2",
    ]


FORM = "\n".join(
    f"BT /F1 11 Tf {x} {y} Td ({text}) Tj ET"
    for x, y, text in (
        (50, 700, "Patient:"),
        (300, 700, "Plan:"),
        (50, 660, "Urgent?"),
        (150, 660, "Yes"),
        (200, 660, "No"),
    )
)


def annotated(*annotations: DictionaryObject) -> bytes:
    writer = PdfWriter(clone_from=BytesIO(raw_pdf(FORM)))
    writer.pages[0][NameObject("/Annots")] = ArrayObject(
        [writer._add_object(annotation) for annotation in annotations]
    )
    return written(writer)


def annotation(subtype: str, box: tuple[float, ...], **keys: object) -> DictionaryObject:
    return DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Annot"),
            NameObject("/Subtype"): NameObject(subtype),
            NameObject("/Rect"): ArrayObject([FloatObject(number) for number in box]),
            **{NameObject(f"/{key}"): value for key, value in keys.items()},
        }
    )


def test_what_was_typed_onto_a_form_stands_behind_its_label():
    pdf = annotated(
        annotation("/FreeText", (350, 696, 450, 711), Contents=TextStringObject("Gold")),
        annotation("/FreeText", (110, 696, 250, 711), Contents=TextStringObject("Ada\rTest")),
        annotation("/FreeText", (110, 100, 250, 115), Contents=TextStringObject("Far below")),
    )
    assert " ".join(read(pdf, "a.pdf").text.split()) == (
        "Patient: Ada Test Plan: Gold Urgent? Yes No Far below"
    )


def test_fields_of_a_form_and_their_ticks():
    yes, off, text = NameObject("/1"), NameObject("/Off"), NameObject("/Tx")
    button = NameObject("/Btn")
    pdf = annotated(
        annotation("/Widget", (110, 696, 250, 711), FT=text, V=TextStringObject("Ada Test")),
        annotation("/Widget", (138, 658, 148, 668), FT=button, AS=yes, V=yes),
        annotation("/Widget", (188, 658, 198, 668), FT=button, AS=off, V=off),
        annotation("/Widget", (38, 658, 48, 668), FT=button, AS=yes, V=yes),
        annotation(
            "/Widget",
            (50, 100, 90, 110),
            FT=text,
            T=TextStringObject("Phone"),
            V=TextStringObject("555-0100"),
        ),
        annotation("/Widget", (50, 80, 90, 90), FT=text, T=TextStringObject("Fax")),
        annotation("/Widget", (50, 60, 90, 70), FT=NameObject("/Sig")),
    )
    assert " ".join(read(pdf, "a.pdf").text.split()) == (
        "Patient: Ada Test Plan: [x] Urgent? [x] Yes [ ] No Phone: 555-0100"
    )


def test_a_tick_that_was_drawn_is_told_where_it_stands():
    pdf = annotated(
        annotation("/Stamp", (138, 656, 150, 670)),
        annotation("/Stamp", (50, 300, 300, 500)),
    )
    assert " ".join(read(pdf, "a.pdf").text.split()) == ("Patient: Plan: Urgent? [mark] Yes No")


def test_fields_whose_parents_form_a_ring_end():
    ring = annotation("/Widget", (110, 696, 250, 711))
    writer = PdfWriter(clone_from=BytesIO(annotated(ring)))
    # The list itself gives the reference, an index the object behind it.
    (reference,) = list.__iter__(cast(ArrayObject, writer.pages[0]["/Annots"]))
    cast(DictionaryObject, reference.get_object())[NameObject("/Parent")] = reference
    assert read(written(writer), "a.pdf").text.startswith("Patient:")


def test_the_time_limit_is_that_of_one_document_and_is_kept_between_pages():
    pdf = pdf_of_pages(["Fever."] * 5)
    result = read_document(pdf, "a.pdf", limits=ReadLimits(seconds=0.0))
    assert isinstance(result, Unreadable)
    assert result.reason is UnreadableReason.TOOK_TOO_LONG
    assert "of 5" in result.detail


def test_too_many_characters():
    pdf = pdf_of_pages(["Fever. " * 20] * 5)
    result = read_document(pdf, "a.pdf", limits=ReadLimits(characters=200))
    assert isinstance(result, Unreadable)
    assert result.reason is UnreadableReason.TOO_LARGE


def test_a_form_that_only_adobe_can_show_is_refused():
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("Helvetica")
    pdf.multi_cell(
        0,
        8,
        "Please wait... If this message is not eventually replaced by the proper "
        "contents of the document, your viewer may not be able to display it.",
    )
    assert reason(bytes(pdf.output()), "a.pdf") is UnreadableReason.UNSUPPORTED_KIND


def test_a_file_that_is_only_named_pdf():
    assert reason(b"\0\1\2\3" * 100, "a.pdf") is UnreadableReason.TRUNCATED_OR_CORRUPT
    assert read(b"Fever and chills.", "a.pdf").kind is DocumentKind.TEXT
    behind_a_header = b"POST /print HTTP/1.1\r\n\r\n" + pdf_of_pages(["Fever."])
    assert read(behind_a_header, "a.pdf").text == "Fever."


def test_an_annotation_with_a_broken_box_does_not_lose_its_text():
    broken = annotation("/FreeText", (110, 696), Contents=TextStringObject("Ada Test"))
    broken[NameObject("/F")] = NumberObject(4)
    assert "Ada Test" in read(annotated(broken), "a.pdf").text
