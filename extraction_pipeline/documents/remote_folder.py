"""A folder of source files behind fsspec: an object store, a file server, or memory."""

import contextlib
from collections.abc import Iterator
from typing import BinaryIO, cast

import fsspec

from extraction_pipeline.documents.folder import (
    LARGEST_HASHED,
    FoundFile,
    FoundFiles,
    LargeFile,
    PathFilter,
    too_large_to_hash,
    unreadable,
)
from extraction_pipeline.documents.identity import content_hash_of_stream
from extraction_pipeline.errors import SourceError

_CHANGE_TOKENS = ("ETag", "etag", "md5Hash", "md5", "content_md5", "generation", "checksum")
_CHANGE_TIMES = ("LastModified", "last_modified", "mtime", "updated", "modified", "created")
_FEW = 200
"""So many remote files are asked for one by one; beyond, the whole folder is listed at once."""


class RemoteFolder:
    """See `folder.Folder`. The root is a path as the file system writes it, without protocol."""

    def __init__(self, filesystem: fsspec.AbstractFileSystem, root: str) -> None:
        self._filesystem = filesystem
        self._root = root.rstrip("/")

    def files(self, wanted: PathFilter) -> FoundFiles:
        """All wanted files."""
        listing = self._list()
        if not listing:
            with _listing_errors():
                exists = self._filesystem.exists(self._root)
            if not exists:
                # An object store has no empty folders, so nothing there means a wrong name.
                raise SourceError(
                    "Nothing is found at the source's URL.",
                    remedy="Check the URL in the collection's YAML.",
                )
        files = [file for file in listing if wanted.takes(file.path)]
        skipped = sum(wanted.hides(file.path) for file in listing)
        return FoundFiles(
            files=files,
            unlisted=[],
            skipped=skipped,
            unmatched=len(listing) - len(files) - skipped,
        )

    def stat(self, paths: set[str]) -> list[FoundFile]:
        """Size and change token of those of the paths that exist."""
        if len(paths) > _FEW:
            return [file for file in self._list() if file.path in paths]
        found: list[FoundFile] = []
        for path in sorted(paths):
            # What is wrong with a file that is closed, or has an impossible name, reading tells.
            with (
                _listing_errors(),
                contextlib.suppress(FileNotFoundError, PermissionError, ValueError),
            ):
                found.append(_remote_file(path, self._filesystem.info(f"{self._root}/{path}")))
        return found

    def relative(self, path: str) -> str:
        """A path or URL, relative to the folder if it lies below it."""
        if "://" in path or path.startswith("/"):
            stripped = cast(str, self._filesystem._strip_protocol(path))
            return stripped.removeprefix(f"{self._root}/")
        return path

    def read(self, path: str, size: int | None, most_bytes: int) -> bytes | LargeFile:
        """The bytes of a file, or its hash if it is large."""
        absolute = self._absolute(path)
        if size is not None and size > LARGEST_HASHED:
            raise too_large_to_hash()
        with _reading_errors():
            if size is not None and size <= most_bytes:
                # One request, where a stream takes two.
                return cast(bytes, self._filesystem.cat_file(absolute))
            with cast(BinaryIO, self._filesystem.open(absolute, "rb")) as stream:
                data = stream.read(most_bytes + 1)
                if len(data) <= most_bytes:
                    return data
                return LargeFile(*content_hash_of_stream(stream, begun=data))

    def _list(self) -> list[FoundFile]:
        with _listing_errors():
            # A long-lived process must not see yesterday's listing.
            self._filesystem.invalidate_cache()
            found = self._filesystem.find(self._root, detail=True)
        # Object stores write a path as bucket and key, others with a slash before it: as the root.
        return [
            _remote_file(path.removeprefix(f"{self._root}/"), info) for path, info in found.items()
        ]

    def _absolute(self, path: str) -> str:
        if "://" in path or path.startswith("/") or ".." in path.split("/"):
            raise SourceError("A file of the source lies outside the source's folder.")
        return f"{self._root}/{path}"


@contextlib.contextmanager
def _listing_errors() -> Iterator[None]:
    try:
        yield
    # Every file system behind fsspec brings its own errors (of its SDK, of HTTP, of credentials).
    # They are not chained, because they may name a file.
    except Exception as error:  # noqa: BLE001
        raise SourceError(
            f"The source's URL cannot be listed: {_cause(error)}.",
            remedy="Check the URL in the collection's YAML, and the credentials.",
        ) from None


@contextlib.contextmanager
def _reading_errors() -> Iterator[None]:
    try:
        yield
    except SourceError:
        raise
    except FileNotFoundError:
        # The error itself names the file.
        raise unreadable("it is not there") from None
    # As above.
    except Exception as error:  # noqa: BLE001
        raise unreadable(_cause(error)) from None


def _cause(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or type(error).__name__)


def _remote_file(path: str, info: dict[str, object]) -> FoundFile:
    size = info.get("size")
    known_size = size if isinstance(size, int) else None
    for key in _CHANGE_TOKENS:
        if info.get(key):
            return FoundFile(path, known_size, f"{key}:{info[key]}")
    for key in _CHANGE_TIMES:
        if info.get(key):
            return FoundFile(path, known_size, f"{key}:{info[key]}:{known_size}")
    return FoundFile(path, known_size, None)
