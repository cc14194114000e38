"""The shipped sample documents: all listed, small, and each as awkward as its README says."""

import io
import re
from pathlib import Path

import docx
import pypdf
import pytest

from extraction_pipeline.documents.identity import content_hash
from extraction_pipeline.documents.reading import (
    DocumentKind,
    ReadableText,
    Unreadable,
    UnreadableReason,
    read_document,
)
from extraction_pipeline_tests.samples.make_binary_samples import (
    BINARY_SAMPLES,
    PASSWORD,
    SAMPLES,
    as_docx,
    as_pdf,
    as_utf8_with_mark,
    as_utf16,
    as_windows_1252,
    with_mixed_line_ends,
)

DOCUMENTS = sorted(
    file.relative_to(SAMPLES).as_posix() for file in SAMPLES.glob("*/*") if file.is_file()
)
UNREADABLE = {
    "discharge_summaries/ds-16-scanned.pdf": UnreadableReason.NO_TEXT,
    "discharge_summaries/ds-17-protected.pdf": UnreadableReason.PASSWORD_PROTECTED,
    "discharge_summaries/ds-18-empty.txt": UnreadableReason.EMPTY,
    "care_protocols/cp-13-truncated.pdf": UnreadableReason.TRUNCATED_OR_CORRUPT,
    "care_protocols/cp-14-blank.txt": UnreadableReason.BLANK,
    "payer_notes/pn-13-fax.txt": UnreadableReason.UNSUPPORTED_KIND,
}
KINDS = {
    ".txt": DocumentKind.TEXT,
    ".md": DocumentKind.MARKDOWN,
    ".html": DocumentKind.HTML,
    ".pdf": DocumentKind.PDF,
    ".docx": DocumentKind.DOCX,
    ".xml": DocumentKind.CCDA,
}


def words_of_pdf(file: bytes) -> list[str]:
    return [page.extract_text() for page in pypdf.PdfReader(io.BytesIO(file)).pages]


def words_of_docx(file: bytes) -> list[str]:
    document = docx.Document(io.BytesIO(file))
    cells = [cell.text for table in document.tables for row in table.rows for cell in row.cells]
    return [paragraph.text for paragraph in document.paragraphs] + cells


RE_ENCODED = (as_windows_1252, as_utf16, as_utf8_with_mark, with_mixed_line_ends)
WORDS_OF = {as_pdf: words_of_pdf, as_docx: words_of_docx}


def content(path: str) -> bytes:
    return (SAMPLES / path).read_bytes()


def text(path: str) -> str:
    read = read_document(content(path), path)
    assert isinstance(read, ReadableText)
    return read.text


def table() -> dict[str, str]:
    """The last cell of each row of the README's table, by document."""
    rows = re.findall(r"^\| `([^`]+)` \|.*\| (.*) \|$", (SAMPLES / "README.md").read_text(), re.M)
    assert len(rows) == len(dict(rows))
    return dict(rows)


def test_the_readme_lists_each_document_once_and_counts_them():
    assert sorted(table()) == DOCUMENTS
    readme = (SAMPLES / "README.md").read_text()
    assert len(DOCUMENTS) == 46
    assert "Forty-six documents" in readme
    for folder, words in [
        ("discharge_summaries", "discharge summaries"),
        ("care_protocols", "care protocols"),
        ("payer_notes", "payer notes"),
    ]:
        count = sum(path.startswith(folder + "/") for path in DOCUMENTS)
        assert f"{count} {words}" in readme


def test_the_readme_says_which_are_unreadable():
    assert {path for path, note in table().items() if note.startswith("*Unreadable*")} == set(
        UNREADABLE
    )


def test_they_are_small():
    assert sum(len(content(path)) for path in DOCUMENTS) < 500_000


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if path not in UNREADABLE])
def test_it_is_read_as_what_it_is(path):
    read = read_document(content(path), path)
    assert isinstance(read, ReadableText)
    assert read.kind is KINDS[Path(path).suffix]
    assert 90 <= len(read.text.split()) <= 900
    assert "\ufffd" not in read.text


@pytest.mark.parametrize(("path", "reason"), UNREADABLE.items())
def test_it_is_unreadable_for_its_reason(path, reason):
    read = read_document(content(path), path)
    assert isinstance(read, Unreadable)
    assert read.reason is reason


def test_one_document_has_two_names_and_no_other_does():
    hashes: dict[str, list[str]] = {}
    for path in DOCUMENTS:
        hashes.setdefault(content_hash(content(path)), []).append(path)
    (twice,) = [paths for paths in hashes.values() if len(paths) > 1]
    folder = "discharge_summaries/ds-14-knee-replacement"
    assert sorted(twice) == [f"{folder} (copy).md", f"{folder}.md"]


def test_the_encodings_are_as_said_and_their_characters_arrive():
    hip = "discharge_summaries/ds-03-hip-fracture.txt"
    with pytest.raises(UnicodeDecodeError):
        content(hip).decode("utf-8")
    assert "“a red-hot poker \u2013 but only when they move me”" in text(hip)
    assert "61.5 kg ± 0.5 kg" in text(hip)
    infarction = "discharge_summaries/ds-11-myocardial-infarction.txt"
    assert content(infarction).startswith(b"\xff\xfe")
    assert "84 → 612 → 1,240" in text(infarction)
    assert "(pulse ≥ 2+" in text(infarction)
    rehabilitation = "payer_notes/pn-10-inpatient-rehabilitation-partial.txt"
    assert content(rehabilitation).startswith(b"\xef\xbb\xbf")
    assert text(rehabilitation).startswith("Larkhollow")


def test_line_ends_are_mixed_and_lines_are_not_lost():
    raw = content("discharge_summaries/ds-09-urosepsis.txt")
    for end in (rb"\r\n", rb"(?<!\r)\n", rb"\r(?!\n)"):
        assert len(re.findall(end, raw)) > 5
    lines = text("discharge_summaries/ds-09-urosepsis.txt").splitlines()
    assert "2. Tamsulosin 0.4 mg PO nightly" in lines
    assert "ALLERGIES: Ciprofloxacin (Achilles tendon pain)" in lines


def test_the_awkward_statements_are_there():
    assert "Allergies: none known" in text("discharge_summaries/ds-06-appendicitis-child.txt")
    assert re.search(
        r"^ALLERGIES *\nPROCEDURES *\n",
        text("discharge_summaries/ds-15-left-against-advice.txt"),
        re.M,
    )
    assert "IGNORE ALL PREVIOUS" in text("discharge_summaries/ds-13-cellulitis-pasted-message.txt")
    assert "DIAGNÓSTICO PRINCIPAL" in text("discharge_summaries/ds-10-colecistitis-es.txt")
    dictated = text("discharge_summaries/ds-12-atrial-fibrillation-dictated.txt")
    assert not re.search(r"^[^.]{1,40}:?$", dictated.strip(), re.M)
    assert "window.printed" not in text("discharge_summaries/ds-08-preeclampsia-postpartum.html")


def test_record_numbers_and_telephones_are_fictional():
    for path in DOCUMENTS:
        if path in UNREADABLE:
            continue
        words = text(path)
        assert not re.search(r"\b\d{3}-\d{2}-\d{4}\b", words)
        assert not re.search(r"@|https?://", words)
        for number in re.findall(r"MRN:? *([\w-]+)", words):
            assert number.startswith("FX-"), path
        for telephone in re.findall(r"\b(\d{3}-\d{4})\b", words):
            assert telephone.startswith("555-01"), path


def test_the_protected_one_opens_with_the_password():
    reader = pypdf.PdfReader(io.BytesIO(content("discharge_summaries/ds-17-protected.pdf")))
    assert reader.is_encrypted
    assert reader.decrypt(PASSWORD)
    assert "Syncope" in reader.pages[0].extract_text()


@pytest.mark.parametrize(
    "sample", [one for one in BINARY_SAMPLES if one.build in RE_ENCODED], ids=lambda one: one.path
)
def test_a_re_encoded_text_is_what_its_source_makes(sample):
    assert sample.content() == content(sample.path)


@pytest.mark.parametrize(
    "sample", [one for one in BINARY_SAMPLES if one.build in WORDS_OF], ids=lambda one: one.path
)
def test_a_pdf_or_word_document_says_what_its_source_says(sample):
    # Not the bytes: another release of the library that writes them may compress otherwise.
    words_of = WORDS_OF[sample.build]
    assert words_of(sample.content()) == words_of(content(sample.path))


def test_every_binary_sample_is_committed():
    assert {sample.path for sample in BINARY_SAMPLES} <= set(DOCUMENTS)
