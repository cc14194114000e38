"""Reads a manifest: a CSV or Parquet table of file paths and record ids."""

import csv
import errno
import io
import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from extraction_pipeline.documents.readable import NotReadable
from extraction_pipeline.documents.readers.plain_text import decode
from extraction_pipeline.errors import SourceError
from extraction_pipeline.whole_file import read_whole

_DELIMITERS = (",", ";", "\t", "|")
_PARQUET_MAGIC = b"PAR1"
MOST_BYTES = 100_000_000
"""Of a manifest; one of 100,000 rows takes a tenth of it."""


@dataclass(frozen=True)
class ManifestRow:
    """One file of a manifest; `path` is relative to the source's folder, with "/"."""

    path: str
    record_id: str | None


@dataclass(frozen=True)
class _Row:
    number: int
    """Line of the CSV file, or row of the Parquet table, counted from 1."""
    path: Any
    record_id: Any


def read_manifest(
    location: str,
    path_column: str,
    record_id_column: str | None,
    relative: Callable[[str], str],
) -> list[ManifestRow]:
    """The rows of a manifest. Raises SourceError, which names rows and columns but no values.

    `relative` turns a path as it stands in the table into one relative to the source's folder.
    """
    content = _bytes_of(location)
    rows = (
        _parquet_rows(content, path_column, record_id_column)
        if content.startswith(_PARQUET_MAGIC)
        else _csv_rows(content, path_column, record_id_column)
    )
    found: list[ManifestRow] = []
    first_seen: dict[str, tuple[str, int]] = {}
    for row in rows:
        path = _as_text(row.path)
        if not path:
            raise _lacking(row.number, path_column)
        # Tables written on Windows separate folders with backslashes.
        path = relative(posixpath.normpath(path.replace("\\", "/")) if "://" not in path else path)
        record_id = None
        if record_id_column is not None:
            record_id = _as_text(row.record_id)
            if not record_id:
                raise _lacking(row.number, record_id_column)
            other_path, other_row = first_seen.setdefault(record_id, (path, row.number))
            if other_path != path:
                raise SourceError(
                    f"Rows {other_row} and {row.number} of the manifest give two files for one "
                    f"{record_id_column!r}.",
                    remedy="A record has one document; leave one of the two rows out.",
                )
        found.append(ManifestRow(path, record_id))
    return found


def _lacking(row: int, column: str) -> SourceError:
    return SourceError(
        f"Row {row} of the manifest has no {column!r}.",
        remedy="Fill it in, or take the row out: a manifest is read as a whole.",
    )


def _bytes_of(location: str) -> bytes:
    try:
        filesystem, path = url_to_fs(location)
        if isinstance(filesystem, LocalFileSystem):
            return read_whole(Path(path), MOST_BYTES)
        with filesystem.open(path, "rb") as stream:
            content = bytes(stream.read(MOST_BYTES + 1))
        if len(content) > MOST_BYTES:
            raise OSError(errno.EFBIG, f"it is larger than {MOST_BYTES:,} bytes")
        return content
    # Every file system behind fsspec brings its own errors (of its SDK, of HTTP, of credentials).
    except Exception as error:
        cause = getattr(error, "strerror", None) or type(error).__name__
        raise SourceError(
            f"The manifest cannot be read: {cause}.",
            remedy="Check its path or URL in the collection's YAML.",
        ) from error


def _csv_rows(content: bytes, path_column: str, record_id_column: str | None) -> Iterator[_Row]:
    try:
        text = decode(content).text
    except NotReadable as refusal:
        raise SourceError(f"The manifest is neither CSV nor Parquet: {refusal.detail}.") from None
    wanted = [name for name in (path_column, record_id_column) if name is not None]
    first_line = text.partition("\n")[0]
    # The delimiter is the one that makes the named columns appear.
    delimiter = next(
        (
            candidate
            for candidate in _DELIMITERS
            if set(wanted) <= set(_header([first_line], candidate))
        ),
        None,
    )
    if delimiter is None:
        raise _missing_columns(wanted, _header([first_line], ","))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        header = [name.strip() for name in next(reader)]
        positions = [header.index(name) for name in wanted]
        for cells in reader:
            if any(cells):
                values = [cells[at] if at < len(cells) else "" for at in positions]
                yield _Row(reader.line_num, values[0], values[1] if len(values) > 1 else None)
    except csv.Error as error:
        raise SourceError(
            f"Line {reader.line_num} of the manifest is no valid CSV: {error}."
        ) from None


def _header(lines: list[str], delimiter: str) -> list[str]:
    return [name.strip() for name in next(csv.reader(lines, delimiter=delimiter), [])]


def _parquet_rows(content: bytes, path_column: str, record_id_column: str | None) -> Iterator[_Row]:
    # Half a second of every process's start, for the few that read such a manifest.
    import pyarrow as pa
    import pyarrow.parquet as pq

    wanted = [name for name in (path_column, record_id_column) if name is not None]
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        names = list(file.schema_arrow.names)
        if not set(wanted) <= set(names):
            raise _missing_columns(wanted, names)
        number = 0
        for batch in file.iter_batches(columns=wanted):
            for values in batch.to_pylist():
                number += 1
                yield _Row(
                    number,
                    values[path_column],
                    values[record_id_column] if record_id_column is not None else None,
                )
    except pa.ArrowException as error:
        raise SourceError(
            f"The manifest is a damaged Parquet file ({type(error).__name__})."
        ) from None


def _missing_columns(wanted: list[str], found: list[str]) -> SourceError:
    missing = ", ".join(repr(name) for name in wanted if name not in found)
    there = ", ".join(repr(name) for name in found) or "none"
    return SourceError(
        f"The manifest has no column {missing}; its columns are {there}.",
        remedy="Set `path_column` and `record_id_column` in the collection's YAML.",
    )


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        # A column of whole numbers with a gap in it is stored as floating point.
        return str(int(value)) if value.is_integer() else "" if value != value else str(value)
    return str(value).strip()
