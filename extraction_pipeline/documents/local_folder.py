"""A folder of source files on this machine.

It is read with plain system calls, because two things count here that fsspec does not offer: a
link must not lead out of the folder, and a file that somebody is still writing must not be taken
for a document.
"""

import contextlib
import logging
import os
import stat
import time
from collections.abc import Iterator
from typing import BinaryIO, cast

from extraction_pipeline.documents.folder import (
    LARGEST_HASHED,
    FoundFile,
    FoundFiles,
    LargeFile,
    PathFilter,
    name_of_path,
    path_of_name,
    too_large_to_hash,
    unreadable,
)
from extraction_pipeline.documents.identity import content_hash_of_stream
from extraction_pipeline.errors import SourceError

_log = logging.getLogger(__name__)

TICK = 20_000_000
"""Nanoseconds. Two changes of a file within them may bear the same time: a kernel's clock of files
goes on by up to 10 ms at once."""
COARSE_TICK = 2_000_000_000
"""The same on file systems that keep whole seconds, or every other one."""


class LocalFolder:
    """See `folder.Folder`. The root is an absolute path."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._real_root = os.path.realpath(root)

    def files(self, wanted: PathFilter) -> FoundFiles:
        """All wanted files. A folder below that cannot be listed hides no file beside it."""
        found: list[FoundFile] = []
        unlisted: list[str] = []
        pending = [("", self._real_root)]
        seen = {self._real_root}
        left_out = skipped = unmatched = 0
        while pending:
            prefix, folder = pending.pop()
            try:
                with os.scandir(folder) as scanned:
                    entries = list(scanned)
            except OSError as error:
                if not prefix:
                    raise self._unlisted(error.strerror) from None
                unlisted.append(prefix)
                found.append(FoundFile(prefix, None, None, _folder_problem(error.strerror)))
                continue
            for entry in entries:
                path = prefix + path_of_name(entry.name)
                target = os.path.realpath(entry.path) if entry.is_symlink() else entry.path
                if not self._holds(target):
                    left_out += 1
                elif wanted.hides(path):
                    skipped += 1
                elif _is_folder(entry):
                    # Two links to one folder are one folder, and a link to a parent no loop.
                    if target not in seen:
                        seen.add(target)
                        pending.append((f"{path}/", target))
                elif wanted.takes(path):
                    file = _local_file(path, target)
                    if file is not None:
                        found.append(file)
                    else:
                        skipped += 1
                else:
                    unmatched += 1
        if left_out:
            _log.warning("%d links that lead out of a source's folder were not followed", left_out)
        _let_settle(found)
        return FoundFiles(found, unlisted, skipped + left_out, unmatched)

    def _unlisted(self, cause: str | None) -> SourceError:
        return SourceError(
            f"The source's folder {self._root} cannot be listed: {cause or 'input/output error'}.",
            remedy="Check the path in the collection's YAML, and whether it is mounted.",
        )

    def stat(self, paths: set[str]) -> list[FoundFile]:
        """Size and change token of those of the paths that exist."""
        if not os.path.isdir(self._real_root):  # noqa: PTH112
            raise SourceError(
                f"The source's folder {self._root} is missing.",
                remedy="Check the path in the collection's YAML, and whether it is mounted.",
            )
        files = (_local_file(path, self._absolute(path)) for path in paths)
        found = [file for file in files if file is not None and file.size is not None]
        _let_settle(found)
        return found

    def relative(self, path: str) -> str:
        """A path, relative to the folder if it lies below it."""
        absolute = os.path.normpath(os.path.join(self._root, path))  # noqa: PTH118
        below = absolute.removeprefix(self._root.rstrip("/") + "/")
        return path if below == absolute else below

    def read(self, path: str, size: int | None, most_bytes: int) -> bytes | LargeFile:
        """The bytes of a file, or its hash. Raises SourceError if it changes while it is read."""
        data: bytes | LargeFile
        with self._open(path) as stream:
            before = os.fstat(stream.fileno())
            if before.st_size > LARGEST_HASHED:
                raise too_large_to_hash()
            try:
                if before.st_size > most_bytes:
                    data = LargeFile(*content_hash_of_stream(stream))
                    length = data.byte_size
                else:
                    # A file that grows is not read to an end that it may never have.
                    data = stream.read(before.st_size + 1)
                    length = len(data)
            except OSError as error:
                raise unreadable(error.strerror) from None
            after = os.fstat(stream.fileno())
        if length != before.st_size or after.st_mtime_ns != before.st_mtime_ns:
            raise SourceError(
                "A file of the source changed while it was read.",
                remedy="It is read again at the next scan.",
            )
        return data

    @contextlib.contextmanager
    def _open(self, path: str) -> Iterator[BinaryIO]:
        absolute = self._absolute(path)
        if "\0" in absolute:
            raise unreadable("its name holds a NUL character")
        if not self._holds(os.path.realpath(absolute)):
            raise SourceError("A file of the source lies outside the source's folder.")
        try:
            # A pipe would make an ordinary open wait for ever.
            descriptor = os.open(absolute, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except OSError as error:
            raise unreadable(error.strerror) from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise unreadable("it is not a regular file")
        with os.fdopen(descriptor, "rb") as stream:
            yield cast(BinaryIO, stream)

    def _absolute(self, path: str) -> str:
        return os.path.join(self._real_root, name_of_path(path))  # noqa: PTH118

    def _holds(self, real_path: str) -> bool:
        return real_path == self._real_root or real_path.startswith(
            self._real_root.rstrip("/") + "/"
        )


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # A link in a ring, or through a folder that is closed to this user.
        return False


def _folder_problem(cause: str | None) -> str:
    return f"A folder of the source cannot be listed: {cause or 'input/output error'}."


def _local_file(path: str, absolute: str) -> FoundFile | None:
    """The file at a path, without size if it cannot be asked; None if it is a pipe or a device."""
    try:
        status = os.stat(absolute)  # noqa: PTH116
    except (OSError, ValueError):
        # Its name is none, it vanished since the folder was listed, or it is a dead link: reading
        # it will say so.
        return FoundFile(path, None, None)
    if not stat.S_ISREG(status.st_mode):
        return None
    token = change_token(status, time.time_ns())
    return FoundFile(path, status.st_size, token)


def change_token(status: os.stat_result, now: int) -> str | None:
    """The token of a file by its two times in nanoseconds, its size and its inode; none while a
    further change could leave the same one for long: where its time is still to come, by another
    machine's clock, or is told in seconds and has just passed.

    The change time catches a file that was replaced and given its old modification time, and the
    inode one of equal times that took another's path, as where two folders are exchanged. The
    device is left out: a network file system may be given another one each time it is mounted.
    """
    changed = status.st_ctime_ns
    whole = changed % 1_000_000_000 == 0
    if changed + (COARSE_TICK if whole else 0) > now:
        return None
    return f"{status.st_mtime_ns}:{changed}:{status.st_size}:{status.st_ino}"


def _let_settle(found: list[FoundFile]) -> None:
    """Wait out the tick in which a file of a listing was changed, before any of them is read: a
    further change in it would leave the same token."""
    times = (int(file.modified.split(":")[1]) for file in found if file.modified is not None)
    wait = max(times, default=0) + TICK - time.time_ns()
    if wait > 0:
        time.sleep(wait / 1e9)  # the clock alone ends a tick; at most one
