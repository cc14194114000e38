"""The lines of a result file: where they lie, and that one of any length is held in bounds."""

import io
import tracemalloc

import pytest

from extraction_pipeline.ledger import items
from extraction_pipeline.lifecycle import result_lines
from extraction_pipeline.lifecycle.result_lines import ResultLine, each_line, line_chunks


@pytest.mark.parametrize("piece", [1, 2, 3, 1000])
def test_lines_keep_their_offsets_however_they_are_read(monkeypatch, piece: int) -> None:
    monkeypatch.setattr(result_lines, "PIECE_BYTES", piece)
    monkeypatch.setattr(result_lines, "LONGEST_RESULT_LINE", 5)
    content = b"a\n\nbb\r\n\r\n123456\n12345\n\xe2\x80\xa8\nlast"
    lines = list(each_line(io.BytesIO(content)))
    assert [line.data for line in lines] == [
        *(b"a", b"bb", None, b"12345", b"\xe2\x80\xa8", b"last"),
    ]
    for line in lines:
        if line.data is not None:
            assert content[line.offset :].startswith(line.data)
    assert content[lines[2].offset :].startswith(b"123456")
    assert list(each_line(io.BytesIO(b"1234567"))) == [ResultLine(0, None)]
    assert list(each_line(io.BytesIO(b""))) == []


def test_pieces_are_bounded_in_lines_and_in_bytes(monkeypatch) -> None:
    monkeypatch.setattr(items, "CHUNK", 3)
    monkeypatch.setattr(result_lines, "CHUNK_BYTES", 10)
    content = b"a\n" * 4 + b"123456789012\n" * 2 + b"b\n"
    pieces = [len(chunk) for chunk in line_chunks(io.BytesIO(content))]
    assert pieces == [3, 2, 1, 1]


class Endless(io.RawIOBase):
    """A line of so many MB."""

    def __init__(self, megabytes: int) -> None:
        self._left = megabytes

    def read(self, size: int = -1) -> bytes:
        self._left -= 1
        return b"a" * 1_000_000 if self._left >= 0 else b""


def test_a_line_of_any_length_takes_no_more_memory_than_the_longest(monkeypatch) -> None:
    monkeypatch.setattr(result_lines, "LONGEST_RESULT_LINE", 4_000_000)
    tracemalloc.start()
    try:
        (line,) = each_line(Endless(200))  # type: ignore[arg-type]
        assert line.data is None
        assert tracemalloc.get_traced_memory()[1] < 12_000_000
    finally:
        tracemalloc.stop()
