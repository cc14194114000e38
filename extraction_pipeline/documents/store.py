"""The content-addressed store: bytes under their SHA-256, behind fsspec.

    <root>/ab/cd/abcd…   one file for each content, never changed

A local folder is written with plain system calls, everything else (`s3://`, `gs://`, `memory://`)
through fsspec. Writing is idempotent: the same content has the same name, so two writers at once
do the same thing. Locally a file appears under its name in one step (written beside it, then
renamed), and only its owner can read it (folders 0700, files 0600).

Durability. Texts are small and many, and they can be read again from their source, so `put` does
not wait for the disk; the operating system writes within seconds. Whoever records a hash in a
database calls `flush` first, once for many texts. Result files are large, few, paid for and gone at
the provider after a while, so `put_file` and `writer` do wait. Whatever a power cut damages all
the same is found: `get` compares the content with its name, `put` writes again what is not what it
should be, and `incomplete` tells which of many contents are missing or cut short.
"""

import contextlib
import hashlib
import os
import re
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from fsspec.core import url_to_fs

from extraction_pipeline.documents.identity import content_hash
from extraction_pipeline.documents.store_backend import StoreBackend
from extraction_pipeline.documents.store_folder import LocalFolder
from extraction_pipeline.documents.store_objects import ObjectStore
from extraction_pipeline.errors import StoreError

_HASH = re.compile(r"[0-9a-f]{64}")
_CHUNK_BYTES = 1 << 20


class ContentWriter:
    """Takes content in pieces. Its hash is known once the `with` block of `writer` has ended."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._stored: str | None = None
        self.length = 0
        """Bytes written so far."""

    def write(self, data: bytes) -> None:
        """Add a piece. Raises StoreError, on a full disk for one."""
        with _store_errors("write"):
            self._file.write(data)
        self._digest.update(data)
        self.length += len(data)

    @property
    def content_hash(self) -> str:
        """The name of the content. Raises StoreError before it is stored."""
        if self._stored is None:
            raise StoreError("The content is not stored yet; its hash is known after the block.")
        return self._stored

    def _hexdigest(self) -> str:
        return self._digest.hexdigest()

    def _mark_stored(self, digest: str) -> None:
        self._stored = digest


class ContentStore:
    """Content by hash at a path or a URL. All methods raise StoreError when the store fails."""

    def __init__(self, url_or_path: str) -> None:
        try:
            filesystem, root = url_to_fs(url_or_path)
        except (ImportError, ValueError) as error:
            # fsspec says which package a protocol needs, or that it knows none of that name.
            raise StoreError(f"The store's URL cannot be used: {error}") from error
        protocol = filesystem.protocol
        local = "file" in (protocol if isinstance(protocol, tuple) else (protocol,))
        self._backend: StoreBackend = (
            LocalFolder(Path(root).expanduser()) if local else ObjectStore(filesystem, root)
        )

    def put(self, data: bytes) -> str:
        """Store content and return its hash. Call `flush` before the hash is relied upon."""
        digest = content_hash(data)
        with _store_errors("write"):
            self._backend.put(digest, data)
        return digest

    def put_file(self, path: Path) -> str:
        """Store a copy of a local file of any size and return its hash. Durable on return."""
        with self.writer() as writer:
            try:
                source = path.open("rb")
            except OSError as error:
                raise StoreError(f"A file to store cannot be opened: {error.strerror}.") from error
            with source:
                while chunk := _next_chunk(source):
                    writer.write(chunk)
        return writer.content_hash

    @contextlib.contextmanager
    def writer(self) -> Iterator[ContentWriter]:
        """Store content that comes in pieces, of any size. Durable when the block has ended.

        Nothing is stored if the block ends with an error.
        """
        with _store_errors("write"):
            folder = self._backend.folder_for_unfinished()
            descriptor, name = tempfile.mkstemp(dir=folder)
        path = Path(name)
        try:
            file = os.fdopen(descriptor, "wb")
            try:
                writer = ContentWriter(cast(BinaryIO, file))
                yield writer
                with _store_errors("write"):
                    file.flush()
                    os.fsync(file.fileno())
            finally:
                # Closing writes what is left, and meets a full disk once more.
                with _store_errors("write"):
                    file.close()
            digest = writer._hexdigest()
            with _store_errors("write"):
                self._backend.take(digest, path)
            writer._mark_stored(digest)
        finally:
            with _store_errors("write"):
                path.unlink(missing_ok=True)

    def flush(self) -> None:
        """Return when everything put so far survives a power cut (POSIX; sync writes it all)."""
        with _store_errors("write"):
            self._backend.flush()

    def get(self, digest: str) -> bytes:
        """The content of a hash, compared with it. Raises StoreError if it is missing or other."""
        _check(digest)
        return _compared(digest, partial(self._backend.read, digest))

    def get_many(self, digests: Iterable[str]) -> Iterator[Callable[[], bytes]]:
        """For each hash, in order, what gives its content as `get` does, or raises as it does. From
        an object store several are under way at a time, where each takes a way over the network."""
        asked: deque[str] = deque()

        def noted() -> Iterator[str]:
            for digest in digests:
                _check(digest)
                asked.append(digest)
                yield digest

        for read in self._backend.read_many(noted()):
            yield partial(_compared, asked.popleft(), read)

    @contextlib.contextmanager
    def open(self, digest: str) -> Iterator[BinaryIO]:
        """The content of a hash as a stream. It is not compared with the hash: see `get`."""
        _check(digest)
        with _store_errors("read", digest):
            stream = self._backend.open(digest)
        with stream:
            yield stream

    def read_range(self, digest: str, offset: int, length: int) -> bytes:
        """`length` bytes from `offset` on. Raises StoreError if the content is shorter."""
        _check(digest)
        if offset < 0 or length < 0:
            raise ValueError("offset and length must not be negative")
        if length == 0:
            return b""
        with _store_errors("read", digest):
            data = self._backend.read_range(digest, offset, length)
        if len(data) != length:
            raise StoreError(f"The content stored as {digest} is shorter than recorded.")
        return data

    def exists(self, digest: str) -> bool:
        """Whether content of this hash is stored."""
        _check(digest)
        with _store_errors("read", digest):
            return self._backend.exists(digest)

    def incomplete(self, sizes: Mapping[str, int | None]) -> set[str]:
        """Those hashes whose content is missing, or of another size in bytes than this, if known.

        No content is read, so damage that leaves the size is not seen: `get` sees it. Hashes in
        their order are answered fastest by an object store.
        """
        for digest in sizes:
            _check(digest)
        with _store_errors("read"):
            return self._backend.incomplete(sizes)


def _compared(digest: str, read: Callable[[], bytes]) -> bytes:
    with _store_errors("read", digest):
        data = read()
    if content_hash(data) != digest:
        raise StoreError(
            f"The content stored as {digest} is damaged: its bytes have another hash.",
            remedy="Restore it from a backup, or register its source again.",
        )
    return data


def _next_chunk(source: BinaryIO) -> bytes:
    try:
        return source.read(_CHUNK_BYTES)
    except OSError as error:
        raise StoreError(f"A file to store cannot be read: {error.strerror}.") from error


def _check(digest: str) -> None:
    # A hash becomes part of a path, so nothing else may be one.
    if _HASH.fullmatch(digest) is None:
        raise StoreError("A content hash is 64 hexadecimal characters in lower case.")


@contextlib.contextmanager
def _store_errors(action: str, digest: str | None = None) -> Iterator[None]:
    what = f"content {digest}" if digest is not None else "content"
    try:
        yield
    except StoreError:
        raise
    except FileNotFoundError as error:
        if digest is None:
            raise StoreError(
                f"The store cannot {action} {what}: its folder or bucket is not there.",
                remedy="Make it, or correct EXTRACTION_STORE_URL.",
            ) from error
        raise StoreError(
            f"The store holds no {what}.",
            remedy="Check that the store's setting names the folder or bucket used before.",
        ) from error
    # Every store behind fsspec brings its own errors (of its SDK, of HTTP, of credentials).
    except Exception as error:
        cause = getattr(error, "strerror", None) or type(error).__name__
        raise StoreError(
            f"The store cannot {action} {what}: {cause}.",
            remedy="Check the store's setting, its credentials and its free space.",
        ) from error
