"""What a folder of source files is: which files it has, whether they changed, and their bytes.

`local_folder` and `remote_folder` are the two kinds.
"""

import os
import re
from dataclasses import dataclass
from typing import Protocol, Self

from fsspec.utils import glob_translate

from extraction_pipeline.errors import SourceError

_HIDDEN_OR_TEMPORARY = re.compile(
    # Hidden files and folders, Word's lock files, editors' backups, ...
    r"\..*|~\$.*|.*~|#.*#"
    # ... the file managers' own files, and files that are still being saved or downloaded.
    r"|thumbs\.db|desktop\.ini|.*\.(?:tmp|crdownload|part|partial)",
    re.IGNORECASE | re.DOTALL,
)


LARGEST_HASHED = 4 * 2**30
"""Bytes. A larger file, which would hold up a scan for long, is told by its size alone."""


@dataclass(frozen=True)
class FoundFile:
    """A file of a folder; see `sources.SourceEntry` for what the fields mean."""

    path: str
    size: int | None
    modified: str | None
    problem: str | None = None


@dataclass(frozen=True)
class FoundFiles:
    """What a folder holds."""

    files: list[FoundFile]
    """All wanted files, in any order, and each folder of `unlisted` as a file with a problem."""
    unlisted: list[str]
    """Folders below it that could not be listed, with "/" at the end."""
    skipped: int
    """How many files, links and folders were left out for what they are: hidden or temporary ones,
    links that lead out, pipes, sockets and devices."""
    unmatched: int
    """How many other files the patterns left out."""


@dataclass(frozen=True)
class LargeFile:
    """A file that was not read into memory: only what identifies it."""

    content_hash: str
    byte_size: int


@dataclass(frozen=True)
class PathFilter:
    """Which paths below a folder are wanted."""

    include: re.Pattern[str]
    exclude: re.Pattern[str] | None
    hidden: bool

    @classmethod
    def of(cls, include: tuple[str, ...], exclude: tuple[str, ...], *, hidden: bool) -> Self:
        """A filter of glob patterns, in which `*` stays within a folder and `**` does not."""
        return cls(_any_of(include), _any_of(exclude) if exclude else None, hidden)

    def takes(self, path: str) -> bool:
        """Whether a file is wanted."""
        if self.hides(path):
            return False
        if self.include.match(path) is None:
            return False
        return self.exclude is None or self.exclude.match(path) is None

    def hides(self, path: str) -> bool:
        """Whether a file or a folder is hidden or temporary, or lies below such a folder."""
        return not self.hidden and any(map(_HIDDEN_OR_TEMPORARY.fullmatch, path.split("/")))


class Folder(Protocol):
    """A folder of source files. Every method raises SourceError."""

    def files(self, wanted: PathFilter) -> FoundFiles:
        """All wanted files."""
        ...

    def stat(self, paths: set[str]) -> list[FoundFile]:
        """Size and change token of those of the paths that exist."""
        ...

    def relative(self, path: str) -> str:
        """A path or URL of a manifest, relative to the folder if it lies below it."""
        ...

    def read(self, path: str, size: int | None, most_bytes: int) -> bytes | LargeFile:
        """The bytes of a file, or its hash if it has more than `most_bytes`.

        `size` is what the listing said.
        """
        ...


def path_of_name(name: str) -> str:
    """A file name as text that can be stored: bytes that are not UTF-8 become `\\xNN`."""
    if "\\" not in name and name.isprintable():
        return name
    return os.fsencode(name).replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def name_of_path(path: str) -> str:
    """The file name behind a text of `path_of_name`, as the operating system takes it."""
    if "\\" not in path:
        return path
    return os.fsdecode(re.sub(rb"\\(\\|x[0-9a-f]{2})", _original_byte, path.encode("utf-8")))


def _original_byte(match: re.Match[bytes]) -> bytes:
    escaped = match.group(1)
    return b"\\" if escaped == b"\\" else bytes.fromhex(escaped[1:].decode("ascii"))


def too_large_to_hash() -> SourceError:
    """The error for a file that is not even hashed."""
    return SourceError(
        f"A file of the source is larger than {LARGEST_HASHED // 2**30} GiB.",
        remedy="No document is; exclude it, or move it away.",
    )


def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(glob_translate(pattern) for pattern in patterns))


def unreadable(cause: str | None) -> SourceError:
    """The error for a file that cannot be read. It never names the file."""
    return SourceError(
        f"A file of the source cannot be read: {cause or 'input/output error'}.",
        remedy="Check that it is still there and that this user may read it.",
    )
