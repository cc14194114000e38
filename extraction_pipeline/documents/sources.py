"""Where the documents of a collection come from: the `source:` block of its YAML, and reading it.

    source:                                source:
      kind: folder                           kind: manifest
      path: notes            # or url:       path: records.csv      # or url:, or Parquet
      include: ["**/*.txt"]                  path_column: file
      exclude: ["drafts/**"]                 record_id_column: note_id

A listing is whole or it fails: an error is raised before the first entry, so that nobody takes
half a listing for the rest having vanished. One folder or file in it that cannot be what it should
be is an entry with a `problem`, and stops no other. A file that cannot be read raises SourceError,
and is never taken for an empty one. No error names a file: file names can carry patients' names.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from fsspec.core import url_to_fs
from fsspec.utils import glob_translate
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from extraction_pipeline.documents.folder import Folder, FoundFile, PathFilter
from extraction_pipeline.documents.identity import content_hash
from extraction_pipeline.documents.local_folder import LocalFolder
from extraction_pipeline.documents.manifest import read_manifest
from extraction_pipeline.documents.remote_folder import RemoteFolder
from extraction_pipeline.errors import SourceError

_LONGEST_PATH = 1500
_LONGEST_RECORD_ID = 500
"""Bytes of UTF-8. An index of the ledger takes 2,700 for both and the collection's name."""
_SHOWN_OF_A_LONG_NAME = 50


@dataclass(frozen=True)
class SourceEntry:
    """One file of a source."""

    path: str
    """Relative to the source's folder, with "/", the same at every listing. Bytes of a name that
    are not UTF-8 are written as `\\xNN`, and a backslash is doubled."""
    size: int | None
    """In bytes; None if it could not be told, as for a file that a manifest names in vain."""
    modified: str | None
    """An opaque token: if it has not changed, neither has the file. None if there is none."""
    record_id: str | None
    """The record's id in the source system, from a manifest."""
    problem: str | None = None
    """Why it is not read, where the listing told already. It names neither path nor id."""


@dataclass(frozen=True)
class Listing:
    """The entries of a source, ordered by path and record id."""

    entries: tuple[SourceEntry, ...]
    unlisted: tuple[str, ...] = ()
    """Folders that could not be listed, with "/" at the end: nothing below them has vanished."""
    skipped: int = 0
    unmatched: int = 0
    """For both see `folder.FoundFiles`."""

    def __iter__(self) -> Iterator[SourceEntry]:
        return iter(self.entries)


class _Located(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str | None = Field(
        default=None,
        min_length=1,
        description="A local path, relative to the folder of the YAML file; `~` is allowed.",
    )
    url: str | None = Field(
        default=None,
        min_length=1,
        description="Any fsspec URL, such as s3://bucket/prefix or abfs://container/prefix.",
    )

    @model_validator(mode="after")
    def _one_location(self) -> Self:
        if (self.path is None) == (self.url is None):
            raise ValueError("give either `path` or `url`")
        return self

    def location(self, base_dir: Path) -> str:
        """The URL, or the absolute path."""
        return _absolute(self.path, base_dir) if self.path is not None else self.url or ""


class FolderSource(_Located):
    """All files below a folder that match `include` and do not match `exclude`."""

    kind: Literal["folder"]
    include: tuple[str, ...] = Field(
        default=("**/*",),
        min_length=1,
        description="Patterns on the path; `*` stays within a folder, `**` goes through all.",
    )
    exclude: tuple[str, ...] = Field(default=(), description="Patterns of files to leave out.")
    include_hidden: bool = Field(
        default=False,
        description="Take hidden files and the temporary files of editors and browsers too.",
    )

    @field_validator("include", "exclude")
    @classmethod
    def _valid_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            if pattern.startswith("/") or ".." in pattern.split("/"):
                raise ValueError(f"the pattern {pattern!r} must be relative to the folder")
            glob_translate(pattern)
        return patterns


class ManifestSource(_Located):
    """The files that a table names, with the ids of their records."""

    kind: Literal["manifest"]
    path_column: str = Field(default="path", description="The column that holds the file's path.")
    record_id_column: str | None = Field(
        default=None, description="The column that holds the record's id in the source system."
    )
    root: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "The folder or URL that paths in the table are relative to, and that no file may lie "
            "outside of. Without it, the folder of the table."
        ),
    )


Source = Annotated[FolderSource | ManifestSource, Field(discriminator="kind")]
"""The `source:` block of a collection."""


def list_entries(source: FolderSource | ManifestSource, base_dir: Path) -> Listing:
    """What a source holds. Raises SourceError.

    `base_dir` is the folder of the collection's YAML file. A folder that exists and is empty has
    no entries; one that is missing is an error. A row of a manifest whose file is missing is
    listed, and fails when it is read.
    """
    if isinstance(source, FolderSource):
        wanted = PathFilter.of(source.include, source.exclude, hidden=source.include_hidden)
        found = folder_of(source, base_dir).files(wanted)
        entries = sorted((_entry(file, None) for file in found.files), key=_order)
        return Listing(tuple(entries), tuple(found.unlisted), found.skipped, found.unmatched)
    folder = folder_of(source, base_dir)
    rows = read_manifest(
        source.location(base_dir), source.path_column, source.record_id_column, folder.relative
    )
    files = {file.path: file for file in folder.stat({row.path for row in rows})}
    named = {
        _entry(files.get(row.path) or FoundFile(row.path, None, None), row.record_id)
        for row in rows
    }
    return Listing(tuple(sorted(named, key=_order)))


def folder_of(source: FolderSource | ManifestSource, base_dir: Path) -> Folder:
    """The folder that the paths of a source's entries are relative to. Raises SourceError."""
    location = source.location(base_dir)
    if isinstance(source, FolderSource):
        return _open_folder(location)
    if source.root is not None:
        return _open_folder(
            source.root if "://" in source.root else _absolute(source.root, base_dir)
        )
    parent, separator, _ = location.rpartition("/")
    if not separator:
        raise SourceError("The URL of the manifest names no folder; give the source a `root`.")
    return _open_folder(parent or "/")


def _open_folder(location: str) -> Folder:
    try:
        filesystem, root = url_to_fs(location)
    except (ImportError, ValueError) as error:
        # fsspec says which package a protocol needs, or that it knows none of that name.
        raise SourceError(f"The source's URL cannot be used: {error}") from error
    protocol = filesystem.protocol
    if "file" in (protocol if isinstance(protocol, tuple) else (protocol,)):
        return LocalFolder(root)
    return RemoteFolder(filesystem, root)


def _absolute(path: str, base_dir: Path) -> str:
    return (base_dir / Path(path).expanduser()).absolute().as_posix()


def _entry(file: FoundFile, record_id: str | None) -> SourceEntry:
    path, path_problem = _storable(file.path, "path", _LONGEST_PATH)
    record, record_problem = _storable(record_id or "", "record id", _LONGEST_RECORD_ID)
    return SourceEntry(
        path,
        file.size,
        file.modified,
        record if record_id is not None else None,
        file.problem or path_problem or record_problem,
    )


def _storable(text: str, what: str, most_bytes: int) -> tuple[str, str | None]:
    """A name as PostgreSQL can keep and index it, and why it cannot be used as it is."""
    written = text.encode("utf-8", "backslashreplace").replace(b"\0", b"\\x00")
    if len(written) > most_bytes:
        # The hash keeps two long names apart.
        shortened = f"{text[:_SHOWN_OF_A_LONG_NAME]}… {content_hash(written)}"
        return (
            _storable(shortened, what, most_bytes)[0],
            f"The {what} of a file of the source is longer than {most_bytes:,} bytes.",
        )
    shown = written.decode("utf-8")
    if shown == text:
        return text, None
    return shown, f"The {what} of a file of the source holds characters that no name can have."


def _order(entry: SourceEntry) -> tuple[str, str]:
    return entry.path, entry.record_id or ""
