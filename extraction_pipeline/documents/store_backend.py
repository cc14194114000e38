"""What the content-addressed store needs of the place where its bytes lie."""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from extraction_pipeline.errors import StoreUnavailable


class StoreBackend(Protocol):
    """Contents by their hash, without comparing them. Errors are those of the place."""

    def put(self, digest: str, data: bytes) -> None:
        """Store bytes under their hash; the same again changes nothing."""

    def take(self, digest: str, path: Path) -> None:
        """Store a file, which is gone or may go after it."""

    def folder_for_unfinished(self) -> Path | None:
        """Where files are written that `take` gets, or `None` for any place."""

    def flush(self) -> None:
        """Wait until what was put is stored."""

    def read(self, digest: str) -> bytes:
        """All bytes of a content."""

    def read_many(self, digests: Iterable[str]) -> Iterator[Callable[[], bytes]]:
        """For each content, in order, how its bytes are got."""

    def open(self, digest: str) -> BinaryIO:
        """A content as a stream."""

    def read_range(self, digest: str, offset: int, length: int) -> bytes:
        """So many bytes of a content, from an offset on."""

    def exists(self, digest: str) -> bool:
        """Whether there is such a content."""

    def incomplete(self, sizes: Mapping[str, int | None]) -> set[str]:
        """Those that are missing, or of another size than this, if one is known."""


def fits(found: int | None, size: int | None) -> bool:
    """Whether what was found is there and has the size, if one is known. Nothing is of no bytes."""
    return found is not None and (found == size if size is not None else found > 0)


class _Guarded(io.RawIOBase):
    """A stream, each reading of which is within a guard."""

    def __init__(self, stream: BinaryIO, guard: Callable[[], AbstractContextManager[None]]) -> None:
        super().__init__()
        self._stream = stream
        self._guard = guard

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with self._guard():
            data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with self._guard():
            return self._stream.seek(offset, whence)

    def close(self) -> None:
        self._stream.close()
        super().close()


def guarded(
    stream: BinaryIO,
    guard: Callable[[], AbstractContextManager[None]],
    buffered: int = io.DEFAULT_BUFFER_SIZE,
) -> BinaryIO:
    """A stream whose errors are told by `guard`: they come as it is read, not as it is opened. So
    many bytes are `buffered`."""
    return io.BufferedReader(_Guarded(stream, guard), buffered)


def unavailable(digest: str, cause: str) -> StoreUnavailable:
    """The error of a place that cannot be asked for a content, which may well lie there."""
    return StoreUnavailable(
        f"The store cannot read content {digest}: {cause}.",
        remedy="Check that it can be reached, its setting and its credentials. What was under way "
        "is tried again.",
    )
