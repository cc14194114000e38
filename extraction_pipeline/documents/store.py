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
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import fsspec
from fsspec.core import url_to_fs

from extraction_pipeline.documents.identity import content_hash
from extraction_pipeline.errors import StoreError, StoreUnavailable

_HASH = re.compile(r"[0-9a-f]{64}")
_CHUNK_BYTES = 1 << 20
_QUESTIONS_AT_ONCE = 16
_THREADS = 16
"""Contents that are on their way to or from an object store at once."""
_LISTED_FROM = 20
"""More contents than these in one of 256 folders of an object store are looked up by listing it."""
_UNFINISHED = "unfinished"
"""Folder of files being written, on the same disk so that they can be renamed into place."""


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
        self._backend: _Backend = (
            _LocalBackend(Path(root).expanduser()) if local else _RemoteBackend(filesystem, root)
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


class _Backend(Protocol):
    def put(self, digest: str, data: bytes) -> None: ...

    def take(self, digest: str, path: Path) -> None: ...

    def folder_for_unfinished(self) -> Path | None: ...

    def flush(self) -> None: ...

    def read(self, digest: str) -> bytes: ...

    def read_many(self, digests: Iterable[str]) -> Iterator[Callable[[], bytes]]: ...

    def open(self, digest: str) -> BinaryIO: ...

    def read_range(self, digest: str, offset: int, length: int) -> bytes: ...

    def exists(self, digest: str) -> bool: ...

    def incomplete(self, sizes: Mapping[str, int | None]) -> set[str]: ...


class _LocalBackend:
    """A folder. Without fsspec in between, a small file costs four system calls."""

    def __init__(self, root: Path) -> None:
        self._root = os.fspath(root.absolute())

    def put(self, digest: str, data: bytes) -> None:
        path = self._path(digest)
        if _holds(path, data):
            return
        unfinished = f"{path}.{uuid.uuid4().hex}"
        try:
            descriptor = _create(unfinished)
        except FileNotFoundError:
            self._make_folder(os.path.dirname(path))  # noqa: PTH120
            descriptor = _create(unfinished)
        try:
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                view = memoryview(data)
                while view:
                    view = view[file.write(view) :]
            os.replace(unfinished, path)  # noqa: PTH105
        except BaseException:  # Ctrl-C as well: no unfinished content stays behind
            Path(unfinished).unlink(missing_ok=True)
            raise

    def take(self, digest: str, path: Path) -> None:
        target = Path(self._path(digest))
        self._make_folder(os.fspath(target.parent))
        path.replace(target)
        if hasattr(os, "O_DIRECTORY"):
            # The name is durable once its folder is.
            descriptor = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def folder_for_unfinished(self) -> Path | None:
        folder = Path(self._root, _UNFINISHED)
        self._make_folder(os.fspath(folder))
        return folder

    def flush(self) -> None:
        if hasattr(os, "sync"):
            os.sync()

    def read(self, digest: str) -> bytes:
        # Texts are read by the hundred thousand, and `pathlib` costs more than the reading.
        with open(self._path(digest), "rb", buffering=0) as file:  # noqa: PTH123
            return file.readall()

    def read_many(self, digests: Iterable[str]) -> Iterator[Callable[[], bytes]]:
        return (partial(self.read, digest) for digest in digests)

    def open(self, digest: str) -> BinaryIO:
        return Path(self._path(digest)).open("rb")

    def read_range(self, digest: str, offset: int, length: int) -> bytes:
        with Path(self._path(digest)).open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def exists(self, digest: str) -> bool:
        return Path(self._path(digest)).is_file()

    def incomplete(self, sizes: Mapping[str, int | None]) -> set[str]:
        return {digest for digest, size in sizes.items() if not _fits(self._size(digest), size)}

    def _size(self, digest: str) -> int | None:
        try:
            return os.stat(self._path(digest)).st_size  # noqa: PTH116
        except OSError:
            # It is missing, or the disk cannot give it out: it has to be put again.
            return None

    def _path(self, digest: str) -> str:
        return f"{self._root}/{digest[:2]}/{digest[2:4]}/{digest}"

    def _make_folder(self, folder: str) -> None:
        try:
            os.mkdir(folder, 0o700)  # noqa: PTH102
        except FileNotFoundError:
            self._make_folder(os.path.dirname(folder))  # noqa: PTH120
            self._make_folder(folder)
        except FileExistsError:
            return  # or another writer has made it in the meantime


class _RemoteBackend:
    """Anything else that fsspec reaches. An object store shows an object only when it is whole."""

    def __init__(self, filesystem: fsspec.AbstractFileSystem, root: str) -> None:
        self._filesystem = filesystem
        self._root = root.rstrip("/")

        # What a file system does by asyncio it does from any thread. Of others nobody says so.
        self._threads = _THREADS if filesystem.async_impl else 0
        self._under_way: deque[Future[None]] = deque()

    def put(self, digest: str, data: bytes) -> None:
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
        self._filesystem.put_file(os.fspath(path), self._path(digest))

    def folder_for_unfinished(self) -> Path | None:
        return None

    def flush(self) -> None:
        """Wait for the writes that are under way: they are durable when they return."""
        while self._under_way:
            self._under_way.popleft().result()

    def read(self, digest: str) -> bytes:
        self.flush()
        return self._read(digest)

    def _read(self, digest: str) -> bytes:
        try:
            return cast(bytes, self._filesystem.cat_file(self._path(digest)))
        except FileNotFoundError:
            raise
        # Every store behind fsspec brings its own errors. None of them says that it is not there.
        except Exception as error:
            cause = getattr(error, "strerror", None) or type(error).__name__
            raise StoreUnavailable(
                f"The store cannot read content {digest}: {cause}.",
                remedy="Check that it can be reached, its setting and its credentials. What was "
                "under way is tried again.",
            ) from error

    def open(self, digest: str) -> BinaryIO:
        self.flush()
        return cast(BinaryIO, self._filesystem.open(self._path(digest), "rb"))

    def read_range(self, digest: str, offset: int, length: int) -> bytes:
        self.flush()
        path = self._path(digest)
        return cast(bytes, self._filesystem.cat_file(path, start=offset, end=offset + length))

    def exists(self, digest: str) -> bool:
        self.flush()
        return bool(self._filesystem.exists(self._path(digest)))

    def incomplete(self, sizes: Mapping[str, int | None]) -> set[str]:
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
        return {digest for digest, size in sizes.items() if not _fits(found.get(digest), size)}

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


def _fits(found: int | None, size: int | None) -> bool:
    """Whether what was found is there and has the size, if one is known. Nothing is of no bytes."""
    return found is not None and (found == size if size is not None else found > 0)


def _create(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def _holds(path: str, data: bytes) -> bool:
    try:
        # The length is asked for first, because a damaged file may have any.
        if os.stat(path).st_size != len(data):  # noqa: PTH116
            return False
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            return file.read() == data
    except OSError:
        # Writing tells what is wrong, if anything is.
        return False


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
            raise StoreError(f"The store cannot {action} {what}: its folder is gone.") from error
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
