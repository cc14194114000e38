"""A folder that is shared with somebody else: files appear in it whole, once, and for our eyes.

Two kinds: a local one (a disk or a mounted share), and whatever else fsspec reaches. Their errors
are those of the file system; they name a path, so they are not shown.
"""

import errno
import os
import uuid
from pathlib import Path
from shutil import copyfileobj
from typing import BinaryIO, Protocol, cast

import fsspec
from fsspec.core import url_to_fs

_CHUNK_BYTES = 1 << 20
_NO_SYNC_OF_FOLDERS = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EBADF})
"""What mounted shares say that cannot do it; they write through by themselves."""


class ExchangeFolder(Protocol):
    """Names are relative paths of one folder and one file, as `outbox/some.jsonl`."""

    def is_there(self) -> bool:
        """Whether the folder itself exists. It is never made: where a share is not mounted, a new
        folder would take its place."""
        ...

    def make(self, folder: str) -> None:
        """Make a folder in it, unless it is there."""
        ...

    def has(self, name: str) -> bool:
        """Whether a file of this name is there."""
        ...

    def stage(self, name: str, content: Path | None) -> str:
        """Write a copy of a local file, or an empty one, beside its place; the name it has there,
        which nobody looks for."""
        ...

    def put(self, staged: str, name: str) -> None:
        """Bring a staged file to its name in one step. One that is there already stays."""
        ...

    def remove(self, name: str) -> None:
        """Delete a file; one that is gone is no error."""
        ...

    def remove_staged(self, name: str) -> None:
        """Delete what was staged for this name and never brought there."""
        ...

    def open(self, name: str) -> BinaryIO:
        """A file as a stream."""
        ...


def open_exchange_folder(place: str) -> ExchangeFolder:
    """The folder at a path or an fsspec URL. Raises `ImportError` or `ValueError` for a URL whose
    file system is not installed or not known."""
    filesystem, root = url_to_fs(place)
    protocol = filesystem.protocol
    if "file" in (protocol if isinstance(protocol, tuple) else (protocol,)):
        return _LocalFolder(Path(root))
    return _RemoteFolder(filesystem, root.rstrip("/"))


def _staged_for(name: str) -> tuple[str, str]:
    """What names of files staged for a name begin and end with. Hidden, so that nobody takes them
    for the file itself."""
    folder, _, file = name.rpartition("/")
    return f"{folder}/.{file}.", ".part"


def _new_staged(name: str) -> str:
    return uuid.uuid4().hex.join(_staged_for(name))


class _LocalFolder:
    """Plain system calls: files 0600, folders 0700."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def is_there(self) -> bool:
        return self._root.is_dir()

    def make(self, folder: str) -> None:
        (self._root / folder).mkdir(mode=0o700, exist_ok=True)

    def has(self, name: str) -> bool:
        # A pipe or a folder of this name is none: opening it would wait for ever, or fail. Nor is a
        # link: whoever shares the folder could name any file that this user may read.
        path = self._root / name
        return path.is_file() and not path.is_symlink()

    def stage(self, name: str, content: Path | None) -> str:
        staged = _new_staged(name)
        descriptor = os.open(self._root / staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            if content is not None:
                with content.open("rb") as source:
                    copyfileobj(source, file, _CHUNK_BYTES)
            file.flush()
            os.fsync(file.fileno())
        return staged

    def put(self, staged: str, name: str) -> None:
        source, target = self._root / staged, self._root / name
        try:
            target.hardlink_to(source)  # a rename would replace what is there
        except FileExistsError:
            pass
        except OSError:
            # Many mounted shares have no links. That nobody else is at it then is the caller's
            # part, and what would be replaced has the same content.
            if not target.exists():
                source.replace(target)
        source.unlink(missing_ok=True)
        self._sync(target.parent)

    def remove(self, name: str) -> None:
        (self._root / name).unlink(missing_ok=True)

    def remove_staged(self, name: str) -> None:
        begin, end = _staged_for(name)
        folder, _, file = begin.rpartition("/")
        inside = self._root / folder
        for path in inside.iterdir() if inside.is_dir() else ():
            if path.name.startswith(file) and path.name.endswith(end):
                path.unlink(missing_ok=True)

    def open(self, name: str) -> BinaryIO:
        return os.fdopen(os.open(self._root / name, os.O_RDONLY | os.O_NOFOLLOW), "rb")

    def _sync(self, folder: Path) -> None:
        """Make the names in a folder durable."""
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in _NO_SYNC_OF_FOLDERS:
                raise
        finally:
            os.close(descriptor)


class _RemoteFolder:
    """Anything else. Who may read its files is a matter of the place."""

    def __init__(self, filesystem: fsspec.AbstractFileSystem, root: str) -> None:
        self._filesystem = filesystem
        self._root = root

    def is_there(self) -> bool:
        self._filesystem.invalidate_cache()  # a long-lived process must not see an old listing
        return bool(self._filesystem.exists(self._root))

    def make(self, folder: str) -> None:
        self._filesystem.makedirs(self._path(folder), exist_ok=True)

    def has(self, name: str) -> bool:
        return bool(self._filesystem.isfile(self._path(name)))

    def stage(self, name: str, content: Path | None) -> str:
        staged = _new_staged(name)
        if content is None:
            self._filesystem.pipe_file(self._path(staged), b"")
        else:
            self._filesystem.put_file(os.fspath(content), self._path(staged))
        return staged

    def put(self, staged: str, name: str) -> None:
        if self.has(name):
            self.remove(staged)
        else:
            self._filesystem.mv(self._path(staged), self._path(name))

    def remove(self, name: str) -> None:
        if self.has(name):
            self._filesystem.rm_file(self._path(name))

    def remove_staged(self, name: str) -> None:
        begin, end = _staged_for(name)
        folder = begin.rpartition("/")[0]
        inside = self._path(folder)
        found_there = (
            self._filesystem.ls(inside, detail=False) if self._filesystem.isdir(inside) else []
        )
        for path in found_there:
            found = f"{folder}/{str(path).rpartition('/')[2]}"
            if found.startswith(begin) and found.endswith(end):
                self.remove(found)

    def open(self, name: str) -> BinaryIO:
        return cast(BinaryIO, self._filesystem.open(self._path(name), "rb"))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"
