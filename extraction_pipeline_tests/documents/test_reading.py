"""What holds for every document, however bad."""

from pathlib import PurePosixPath

import docx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extraction_pipeline.documents.readable import ReadLimits
from extraction_pipeline.documents.readers.kinds import extension
from extraction_pipeline.documents.reading import (
    ReadableText,
    Unreadable,
    UnreadableReason,
    read_document,
)
from extraction_pipeline_tests.documents.made_files import pdf_of_pages, raw_pdf, saved
from extraction_pipeline_tests.documents.test_ccda import BODY, HEADER
from extraction_pipeline_tests.documents.test_structured_kinds import (
    RTF,
    attached,
    document_reference,
)

SECRET = "Zyxwvut"


def _docx() -> bytes:
    document = docx.Document()
    document.add_paragraph(f"{SECRET} has fever. " * 50)
    document.add_table(rows=2, cols=2).cell(0, 0).text = SECRET
    return saved(document)


GOOD = {
    "a.pdf": pdf_of_pages([f"{SECRET} has fever."] * 3),
    "b.pdf": raw_pdf(f"BT /F1 12 Tf 50 700 Td ({SECRET}) Tj ET"),
    "a.docx": _docx(),
    "a.xml": (HEADER + BODY).replace("Admitted", SECRET).encode(),
    "b.xml": f"<a><b Name='{SECRET} x y'>{SECRET}</b></a>".encode(),
    "a.json": document_reference(attached(SECRET.encode())),
    "b.json": f'{{"a": [{{"b": "{SECRET}"}}]}}'.encode(),
    "a.html": f"<html><table><tr><td>{SECRET}</table></html>".encode(),
    "a.rtf": RTF.replace(b"Drug", SECRET.encode()),
    "a.hl7": f"MSH|^~\\&|A\rOBX|1|ED|||^a^b^Base64^QUJD|{SECRET}\r".encode(),
    "a.txt": f"{SECRET} à la carte".encode("cp1252"),
}
KINDS = st.sampled_from(sorted(GOOD))


def ends_well(content: bytes, name: str) -> None:
    result = read_document(content, name)
    if isinstance(result, ReadableText):
        assert result.text.strip()
        result.text.encode("utf-8")
        assert "\0" not in result.text
    else:
        assert isinstance(result, Unreadable)
        assert isinstance(result.reason, UnreadableReason)
        assert result.detail
        assert SECRET not in result.detail


@pytest.mark.parametrize("name", sorted(GOOD))
def test_the_samples_are_good(name):
    result = read_document(GOOD[name], name)
    assert isinstance(result, ReadableText), result
    assert SECRET in result.text


@given(st.binary(max_size=400), st.text(max_size=20))
def test_any_bytes_end_in_a_text_or_a_reason(content, name):
    ends_well(content, name)


@settings(max_examples=150)
@given(KINDS, st.floats(0, 1), st.floats(0, 1))
def test_files_with_a_piece_missing(name, start, end):
    content = GOOD[name]
    first, last = sorted((int(start * len(content)), int(end * len(content))))
    ends_well(content[:first] + content[last:], name)


@settings(max_examples=150)
@given(KINDS, st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), max_size=20))
def test_files_with_damaged_bytes(name, damage):
    content = bytearray(GOOD[name])
    for place, value in damage:
        content[int(place * len(content))] = value
    ends_well(bytes(content), name)


@given(KINDS, KINDS)
def test_files_behind_one_another_and_under_a_wrong_name(name, other):
    ends_well(GOOD[name] + GOOD[other], other)
    ends_well(GOOD[name], other)


def test_a_span_of_cells_that_nobody_can_mean_is_not_believed():
    page = b"<html><table><tr>" + b"<td colspan=99999 rowspan=99999>x" * 100
    result = read_document(page, "a.html", limits=ReadLimits(characters=10_000_000))
    assert isinstance(result, ReadableText)
    assert len(result.text) < 10_000


def test_the_same_bytes_give_the_same_text():
    for name, content in GOOD.items():
        assert read_document(content, name) == read_document(content, name)


def test_limits_are_named_in_the_reason():
    result = read_document(b"x" * 100, "a.txt", limits=ReadLimits(bytes=99))
    assert isinstance(result, Unreadable)
    assert (result.reason, "99" in result.detail) == (UnreadableReason.TOO_LARGE, True)
    result = read_document(b"x" * 100, "a.txt", limits=ReadLimits(characters=99))
    assert isinstance(result, Unreadable)
    assert result.reason is UnreadableReason.TOO_LARGE


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", b"[" * 900 + b"1" + b",1" * 60_000 + b"]" * 900),
        ("a.html", b"<html>" + b"<ul><li>" * 900 + b"<br>a" * 60_000),
        ("a.html", b"<html><table><tr>" + b"<td colspan=99999 rowspan=99999>x" * 3000),
        ("a.xml", b"<a>" + b"&lt;p " * 60_000 + b"</a>"),
        ("a.txt", b" " * 600_000 + b"<?xml"),
        ("a.html", b"<html>" + b"<" * 300_000),
    ],
)
def test_small_hostile_files_do_not_become_large_or_slow(name, content):
    result = read_document(content, name, limits=ReadLimits(seconds=20))
    if isinstance(result, ReadableText):
        assert len(result.text) < 3_000_000
    else:
        assert result.reason in {UnreadableReason.TOO_LARGE, UnreadableReason.TRUNCATED_OR_CORRUPT}


@pytest.mark.parametrize(
    "name",
    [
        *("a.TXT", "a", ".hidden", "..txt", "a.", "a.b.Pdf", "v1.2/a", "v1.2/a.md", "a.txt/", ""),
        *("a .doc x", "ü.Ärzte", "a/.b/c.d e", "...", "a..", "a./b"),
    ],
)
def test_the_ending_of_a_name_is_that_of_pathlib(name):
    assert extension(name) == PurePosixPath(name).suffix.lower()
