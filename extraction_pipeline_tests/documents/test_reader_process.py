"""A bad file costs bounded memory and time, and the next one is read as if nothing had been."""

import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
import zlib
from collections.abc import Iterator
from io import BytesIO

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extraction_pipeline.documents.readable import (
    ReadableText,
    ReadLimits,
    Unreadable,
    UnreadableReason,
)
from extraction_pipeline.documents.reader_process import DocumentReader
from extraction_pipeline.documents.readers.kinds import is_plain
from extraction_pipeline.documents.reading import read_document
from extraction_pipeline.errors import SourceError
from extraction_pipeline_tests.documents.test_reading import GOOD

PAGE = b"<html><p>A note.</p></html>"


@pytest.fixture
def reader() -> Iterator[DocumentReader]:
    with DocumentReader() as reader:
        yield reader


def children() -> list[psutil.Process]:
    return [
        one
        for one in psutil.Process().children()
        if "extraction_pipeline.documents.reader_child" in one.cmdline()
    ]


def docx_of(body: bytes) -> bytes:
    """A DOCX as a program writes it, but for its body."""
    names = b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    stream = BytesIO()
    with (
        zipfile.ZipFile(BytesIO(GOOD["a.docx"])) as good,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as package,
    ):
        for name in good.namelist():
            if name != "word/document.xml":
                package.writestr(name, good.read(name))
        document = b"<w:document %s><w:body>%s</w:body></w:document>" % (names, body)
        package.writestr("word/document.xml", document)
    return stream.getvalue()


def pdf_of_stream(packed: bytes) -> bytes:
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R"
    page += b" /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 >> >> >> >>"
    head = b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n"
    head += b"2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj\n"
    head += b"3 0 obj\n" + page + b"\nendobj\n"
    head += b"4 0 obj\n<< /Filter /FlateDecode /Length %d >>\nstream\n" % len(packed)
    end = b"\nendstream\nendobj\ntrailer\n<< /Root 1 0 R /Size 5 >>\nstartxref\n0\n%%EOF\n"
    return head + packed + end


@pytest.mark.parametrize("name", sorted(GOOD))
def test_what_is_read_apart_is_what_is_read_here(reader, name):
    for _ in range(2):
        assert reader.read(GOOD[name], name) == read_document(GOOD[name], name)


def test_one_process_reads_many_documents_and_plain_text_needs_none(reader):
    assert isinstance(reader.read(b"A note.", "a.txt"), ReadableText)
    assert children() == []
    reader.read(PAGE, "a.html")
    (first,) = children()
    for _ in range(50):
        assert isinstance(reader.read(PAGE, "a.html"), ReadableText)
    assert children() == [first]


def test_no_process_stays_behind():
    with DocumentReader() as reader:
        reader.read(PAGE, "a.html")
        assert len(children()) == 1
    assert children() == []
    script = (
        "import os, signal\n"
        "from extraction_pipeline.documents.reader_process import DocumentReader\n"
        "reader = DocumentReader()\n"
        f"reader.read({PAGE!r}, 'a.html')\n"
        "print(reader._child.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    pid = int(ran.stdout)
    until = time.monotonic() + 10
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("paragraphs.docx", docx_of(b"<w:p/>" * 20_000_000)),
        ("unpacked.docx", docx_of(b" " * (300 * 2**20))),
        ("attribute.docx", docx_of(b"<w:p a='%s'/>" % (b"x" * 50_000_000))),
        ("nested.docx", docx_of(b"<w:p>" * 300_000)),
        ("elements.xml", b"<a>" + b"<b/>" * 4_000_000 + b"</a>"),
        ("attribute.xml", b"<a b='" + b"x" * 20_000_000 + b"'/>"),
        ("nested.xml", b"<a>" * 3_000_000),
        ("elements.html", b"<html>" + b"<br>" * 4_000_000),
        ("lists.json", b"[" + b"[]," * 20_000_000 + b"[]]"),
        ("large.html", b"<html>" + b"a" * (65 * 2**20)),
        ("stream.pdf", pdf_of_stream(zlib.compress(b" " * 400_000_000, 9))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_needs_too_much_is_too_large_in_bounded_memory(reader, name, content):
    result = reader.read(content, name)
    assert isinstance(result, Unreadable)
    assert result.reason is UnreadableReason.TOO_LARGE
    for child in children():
        assert child.memory_info().rss < ReadLimits().memory_bytes
    assert isinstance(reader.read(PAGE, "a.html"), ReadableText)


def test_memory_is_bounded_where_no_limit_of_a_reader_is_met():
    limits = ReadLimits(memory_bytes=200 * 2**20)
    with DocumentReader(limits) as reader:
        result = reader.read(b"<html>" + b"<br>" * 1_900_000, "a.html")
        assert isinstance(result, Unreadable)
        assert result.reason is UnreadableReason.TOO_LARGE
        assert isinstance(reader.read(PAGE, "a.html"), ReadableText)


def test_a_reader_that_does_not_come_to_an_end_is_ended():
    # Nothing looks at the clock while JSON is parsed.
    limits = ReadLimits(seconds=0.05)
    slow = b"[" + b"1.5, " * 1_900_000 + b"1]"
    with DocumentReader(limits) as reader:
        started = time.monotonic()
        result = reader.read(slow, "a.json")
        assert isinstance(result, Unreadable)
        assert result.reason is UnreadableReason.TOOK_TOO_LONG
        assert "ended" in result.detail
        assert time.monotonic() - started < 9
        assert isinstance(reader.read(PAGE, "a.html"), ReadableText)


def test_a_reader_that_somebody_ends_says_nothing_about_the_document(reader):
    slow = b"{\\rtf1 " + b"{\\f0 a}" * 400_000 + b"}"
    reader.read(PAGE, "a.html")
    (child,) = children()
    timer = threading.Timer(0.3, os.kill, [child.pid, signal.SIGKILL])
    timer.start()
    with pytest.raises(SourceError, match="ended by signal 9") as caught:
        reader.read(slow, "Jane Doe.rtf")
    timer.join()
    assert "Jane" not in str(caught.value)
    assert isinstance(reader.read(PAGE, "a.html"), ReadableText)
    (child,) = children()
    child.kill()
    child.wait(5)
    assert isinstance(reader.read(PAGE, "a.html"), ReadableText)


def test_a_reader_gets_no_keys(reader, monkeypatch):
    monkeypatch.setenv("A_PROVIDER_API_KEY", "secret")
    reader.read(PAGE, "a.html")
    (child,) = children()
    assert "A_PROVIDER_API_KEY" not in child.environ()


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(sorted(GOOD)),
    st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), max_size=20),
    st.binary(max_size=30),
    st.sampled_from(sorted(GOOD)),
)
def test_any_bytes_end_in_a_text_or_a_reason(name, damage, more, other):
    content = bytearray(GOOD[name]) + more
    for place, value in damage:
        content[int(place * len(content))] = value
    result = SHARED.read(bytes(content), other)
    assert isinstance(result, ReadableText | Unreadable)


SHARED = DocumentReader()


@pytest.fixture(scope="module", autouse=True)
def _shared() -> Iterator[None]:
    with SHARED:
        yield


@given(
    st.binary(max_size=60), st.sampled_from(sorted(GOOD)), st.sampled_from(["a.txt", "a.md", ""])
)
def test_what_is_plain_is_read_without_a_parser(front, good, name):
    for content in (front, front + GOOD[good]):
        if is_plain(content, name):
            result = read_document(content, name)
            kind = result.kind
            assert kind is None or kind.value in {"text", "markdown"}
