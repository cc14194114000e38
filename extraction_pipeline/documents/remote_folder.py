"""A folder of source files behind fsspec: an object store, a file server, or memory."""

import contextlib
from collections.abc import Iterator
from typing import BinaryIO, cast

import fsspec

from extraction_pipeline.documents.folder import FoundFile, PathFilter, unreadable
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

    def files(self, wanted: PathFilter) -> list[FoundFile]:
        """All wanted files, in any order."""
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
        return [file for file in listing if wanted.takes(file.path)]

    def stat(self, paths: set[str]) -> list[FoundFile]:
        """Size and change token of those of the paths that exist."""
        if len(paths) > _FEW:
            return [file for file in self._list() if file.path in paths]
        found: list[FoundFile] = []
        for path in sorted(paths):
            with _listing_errors(), contextlib.suppress(FileNotFoundError):
                found.append(_remote_file(path, self._filesystem.info(f"{self._root}/{path}")))
        return found

    def relative(self, path: str) -> str:
        """A path or URL, relative to the folder if it lies below it."""
        if "://" in path or path.startswith("/"):
            stripped = cast(str, self._filesystem._strip_protocol(path))
            return stripped.removeprefix(f"{self._root}/")
        return path

    def read(self, path: str) -> bytes:
        """The bytes of a file."""
        with _reading_errors():
            return cast(bytes, self._filesystem.cat_file(self._absolute(path)))

    @contextlib.contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        """A file as a stream."""
        with _reading_errors():
            stream = cast(BinaryIO, self._filesystem.open(self._absolute(path), "rb"))
        with stream:
            yield stream

    def _list(self) -> list[FoundFile]:
        with _listing_errors():
            # A long-lived process must not see yesterday's listing.
            self._filesystem.invalidate_cache()
            found = self._filesystem.find(self._root, detail=True)
        return [_remote_file(self.relative(path), info) for path, info in found.items()]

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
