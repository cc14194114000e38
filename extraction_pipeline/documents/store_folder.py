"""The content-addressed store in a local folder."""

import contextlib
import errno
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from extraction_pipeline.documents.store_backend import fits, guarded, unavailable
from extraction_pipeline.errors import StoreError

_UNFINISHED = "unfinished"
"""Folder of files being written, on the same disk so that they can be renamed into place."""

_OF_ONE_CONTENT = frozenset(
    getattr(errno, name)
    for name in ("EIO", "EISDIR", "ENOTDIR", "EBADMSG", "EUCLEAN")
    if hasattr(errno, name)
)
"""What a damaged disk says of a file, the last two by a file system that checks sums. All else (a
network disk that is away, too many open files, a missing permission) says nothing of what the
folder holds."""


class LocalFolder:
    """A folder. Without fsspec in between, a small file costs four system calls."""

    def __init__(self, root: Path) -> None:
        self._root = os.fspath(root.absolute())

    def put(self, digest: str, data: bytes) -> None:
        """Store bytes under their hash; the same again changes nothing."""
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
        """Store a file, which is gone or may go after it."""
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
        """Where files are written that `take` gets, or `None` for any place."""
        folder = Path(self._root, _UNFINISHED)
        self._make_folder(os.fspath(folder))
        return folder

    def flush(self) -> None:
        """Wait until what was put is stored."""
        if hasattr(os, "sync"):
            os.sync()

    def read(self, digest: str) -> bytes:
        """All bytes of a content."""
        # Texts are read by the hundred thousand, and `pathlib` costs more than the reading.
        with (
            self._reached(digest),
            open(self._path(digest), "rb", buffering=0) as file,  # noqa: PTH123
        ):
            return file.readall()

    def read_many(self, digests: Iterable[str]) -> Iterator[Callable[[], bytes]]:
        """For each content, in order, how its bytes are got."""
        return (partial(self.read, digest) for digest in digests)

    def open(self, digest: str) -> BinaryIO:
        """A content as a stream."""
        with self._reached(digest):
            stream = Path(self._path(digest)).open("rb", buffering=0)  # noqa: SIM115
        return guarded(cast(BinaryIO, stream), partial(self._given_out, digest))

    def read_range(self, digest: str, offset: int, length: int) -> bytes:
        """So many bytes of a content, from an offset on."""
        with self._reached(digest), Path(self._path(digest)).open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def exists(self, digest: str) -> bool:
        """Whether there is such a content."""
        return Path(self._path(digest)).is_file()

    def incomplete(self, sizes: Mapping[str, int | None]) -> set[str]:
        """Those that are missing, or of another size than this, if one is known."""
        return {digest for digest, size in sizes.items() if not fits(self._size(digest), size)}

    def _size(self, digest: str) -> int | None:
        try:
            return os.stat(self._path(digest)).st_size  # noqa: PTH116
        except OSError:
            # It is missing, or the disk cannot give it out: it has to be put again.
            return None

    @contextlib.contextmanager
    def _reached(self, digest: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            if self._is_empty():
                raise unavailable(digest, "its folder is missing or empty") from None
            raise
        except OSError as error:
            if error.errno in _OF_ONE_CONTENT:
                raise
            raise unavailable(digest, error.strerror or type(error).__name__) from error

    @contextlib.contextmanager
    def _given_out(self, digest: str) -> Iterator[None]:
        """Around a reading of a file that could be opened, as a damaged one can."""
        try:
            with self._reached(digest):
                yield
        except OSError as error:
            raise StoreError(
                f"The store cannot read content {digest}: {error.strerror}.",
                remedy="Check its disk, and restore it from a backup or register its source again.",
            ) from error

    def _is_empty(self) -> bool:
        """As a folder is on which no disk is mounted."""
        try:
            with os.scandir(self._root) as found:
                return not any(found)
        except FileNotFoundError:
            return True

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
