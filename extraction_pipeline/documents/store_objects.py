"""The content-addressed store in whatever fsspec reaches, such as an object store."""

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, cast

import fsspec

from extraction_pipeline.documents.store_backend import fits, guarded, unavailable

_QUESTIONS_AT_ONCE = 16
_THREADS = 16
"""Contents that are on their way to or from an object store at once."""
_LISTED_FROM = 20
"""More contents than these in one of 256 folders of an object store are looked up by listing it."""
_BUFFERED_BYTES = 1 << 20


@contextlib.contextmanager
def _reached(digest: str) -> Iterator[None]:
    """Every store behind fsspec brings its own errors. One alone says that a content is not there;
    of the others none does."""
    try:
        yield
    except FileNotFoundError:
        raise
    except Exception as error:
        cause = getattr(error, "strerror", None) or type(error).__name__
        raise unavailable(digest, cause) from error


class ObjectStore:
    """Anything else that fsspec reaches. An object store shows an object only when it is whole."""

    def __init__(self, filesystem: fsspec.AbstractFileSystem, root: str) -> None:
        self._filesystem = filesystem
        self._root = root.rstrip("/")

        # What a file system does by asyncio it does from any thread. Of others nobody says so.
        self._threads = _THREADS if filesystem.async_impl else 0
        self._under_way: deque[Future[None]] = deque()

    def put(self, digest: str, data: bytes) -> None:
        """Store bytes under their hash; the same again changes nothing."""
        # Asking whether it is there would cost as much as writing the same again.
        write = partial(self._filesystem.pipe_file, self._path(digest), data)
        if not self._threads:
            write()
            return
        if len(self._under_way) >= self._threads:
            self._under_way.popleft().result()
        self._under_way.append(self._executor.submit(write))

    @cached_property
    def _executor(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._threads, thread_name_prefix="store")

    def read_many(self, digests: Iterable[str]) -> Iterator[Callable[[], bytes]]:
        """For each content, in order, how its bytes are got."""
        if not self._threads:
            yield from (partial(self._read, digest) for digest in digests)
            return
        self.flush()
        begun: deque[Future[bytes]] = deque()
        for digest in digests:
            begun.append(self._executor.submit(self._read, digest))
            if len(begun) >= self._threads:
                yield begun.popleft().result
        while begun:
            yield begun.popleft().result

    def take(self, digest: str, path: Path) -> None:
        """Store a file, which is gone or may go after it."""
        self._filesystem.put_file(os.fspath(path), self._path(digest))

    def folder_for_unfinished(self) -> Path | None:
        """Where files are written that `take` gets, or `None` for any place."""
        return None

    def flush(self) -> None:
        """Wait for the writes that are under way: they are durable when they return."""
        while self._under_way:
            self._under_way.popleft().result()

    def read(self, digest: str) -> bytes:
        """All bytes of a content."""
        self.flush()
        return self._read(digest)

    def _read(self, digest: str) -> bytes:
        with _reached(digest):
            return cast(bytes, self._filesystem.cat_file(self._path(digest)))

    def open(self, digest: str) -> BinaryIO:
        """A content as a stream."""
        self.flush()
        with _reached(digest):
            stream = self._filesystem.open(self._path(digest), "rb")
        return guarded(stream, partial(_reached, digest), _BUFFERED_BYTES)

    def read_range(self, digest: str, offset: int, length: int) -> bytes:
        """So many bytes of a content, from an offset on."""
        self.flush()
        with _reached(digest):
            path = self._path(digest)
            return cast(bytes, self._filesystem.cat_file(path, start=offset, end=offset + length))

    def exists(self, digest: str) -> bool:
        """Whether there is such a content."""
        self.flush()
        return bool(self._filesystem.exists(self._path(digest)))

    def incomplete(self, sizes: Mapping[str, int | None]) -> set[str]:
        """Those that are missing, or of another size than this, if one is known."""
        self.flush()
        found: dict[str, int] = {}
        apart: list[str] = []
        for folder, digests in groupby(sizes, key=lambda digest: digest[:2]):
            some = list(digests)
            if len(some) > _LISTED_FROM:
                found |= self._sizes_below(folder)
            else:
                apart += some
        # Each answer takes a way over the network.
        with ThreadPoolExecutor(_QUESTIONS_AT_ONCE) as threads:
            asked = zip(apart, threads.map(self._size, apart), strict=True)
            found |= {digest: size for digest, size in asked if size is not None}
        return {digest for digest, size in sizes.items() if not fits(found.get(digest), size)}

    def _size(self, digest: str) -> int | None:
        try:
            return int(self._filesystem.size(self._path(digest)) or 0)
        except FileNotFoundError:
            return None

    def _sizes_below(self, folder: str) -> dict[str, int]:
        # A long-lived process must not see yesterday's listing.
        self._filesystem.invalidate_cache()
        try:
            listed = self._filesystem.find(f"{self._root}/{folder}", detail=True)
        except FileNotFoundError:
            return {}
        return {path.rpartition("/")[2]: int(info["size"] or 0) for path, info in listed.items()}

    def _path(self, digest: str) -> str:
        return f"{self._root}/{digest[:2]}/{digest[2:4]}/{digest}"
