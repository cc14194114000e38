"""Request lines as the elements of a JSON array, streamed from the file that holds them.

For providers whose create call carries the requests itself: a body of hundreds of megabytes is
sent without being in memory.
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


class LinesInArray:
    """A body of known length: `head`, the lines with commas between them, `tail`.

    The lines must be JSON without a raw newline in them, which is what `encode_request` makes.
    """

    def __init__(self, lines: BinaryIO, size: int, head: bytes, tail: bytes) -> None:
        self._head = io.BytesIO(head)
        self._lines = lines
        self._left = size
        self._tail = io.BytesIO(tail)
        self._length = len(head) + size + len(tail)

    def __len__(self) -> int:
        return self._length

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes more; empty at the end."""
        if data := self._head.read(size):
            return data
        if self._left:
            wanted = self._left if size < 0 else min(size, self._left)
            data = self._lines.read(wanted)
            self._left -= len(data)
            return data.replace(b"\n", b",")
        return self._tail.read(size)


@contextmanager
def lines_in_array(payload: Path, head: bytes, tail: bytes) -> Iterator[LinesInArray]:
    """The body around a payload file. Raises `ValueError` if its last line does not end."""
    with payload.open("rb") as lines:
        size = lines.seek(0, io.SEEK_END)
        lines.seek(max(size - 1, 0))
        if lines.read() != b"\n":
            raise ValueError("a payload's lines each end with a newline")
        lines.seek(0)
        # Without the last newline, after which no element follows.
        yield LinesInArray(lines, size - 1, head, tail)
