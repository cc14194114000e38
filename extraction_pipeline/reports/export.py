"""Published records as a file: Parquet, CSV or JSON lines, written in chunks through pandas.

Every format holds the same columns: where a record came from, then the fields of the schema that
its version was asked with. In Parquet and CSV an object or a list is JSON text; in JSON lines it is
what it is. CSV has a sign of its own for null, because "" is a value here: the document has a place
for it and leaves it blank.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import mkstemp
from typing import Any, BinaryIO

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.ledger.published import PublishedRow
from extraction_pipeline.prices.price_list import exact
from extraction_pipeline.reports.export_format import ExportFormat
from extraction_pipeline.reports.schema_columns import in_order, record_columns

ROWS_AT_ONCE = 1000
CSV_NULL = "\\N"
"""Null in CSV, as in PostgreSQL's own text format; what is empty is an empty text."""

Row = dict[str, Any]


_PROVENANCE: dict[str, pa.DataType] = {
    "collection": pa.string(),
    "document_hash": pa.string(),
    "extraction_version": pa.string(),
    "schema_version": pa.string(),
    "provider": pa.string(),
    "model": pa.string(),
    "job_key": pa.string(),
    "job_id": pa.string(),
    "request_id": pa.string(),
    "raw_hash": pa.string(),
    "extraction_hash": pa.string(),
    "published_at": pa.timestamp("us", tz="UTC"),
    "evidence_found": pa.int64(),
    "evidence_total": pa.int64(),
    "cost": pa.string(),  # text keeps money exact in every format
    "currency": pa.string(),
}
_PATH = {"path": pa.string()}


@dataclass(frozen=True)
class Export:
    """What the rows of one collection and version look like.

    `json_schema` is the schema that the version's requests carried. A field that is called like a
    column of provenance gets `record_` before its name.
    """

    json_schema: Mapping[str, Any]
    with_paths: bool

    @property
    def columns(self) -> dict[str, pa.DataType]:
        """Names and Arrow types of all columns, which do not depend on the rows."""
        fields = record_columns(self.json_schema)
        return self._provenance | {self._named(name): kind for name, kind in fields.items()}

    def row(self, published: PublishedRow) -> Row:
        """One record with its provenance; objects and lists as they are."""
        given = {
            **vars(published),
            "extraction_version": published.version,
            "cost": None if published.cost is None else exact(published.cost),
        }
        record = in_order(self.json_schema, published.body)
        return {name: given[name] for name in self._provenance} | {
            self._named(name): record.get(name) for name in record_columns(self.json_schema)
        }

    @property
    def _provenance(self) -> dict[str, pa.DataType]:
        return _PROVENANCE | (_PATH if self.with_paths else {})

    def _named(self, field: str) -> str:
        return f"record_{field}" if field in _PROVENANCE | _PATH else field


def write_export(
    export: Export, published: Iterable[PublishedRow], path: Path, form: ExportFormat
) -> int:
    """Write the rows whole or not at all, readable by this user alone; returns how many.

    Whatever was at `path` is replaced in one step. Raises `ConfigurationError` where it cannot be
    written.
    """
    write = {
        ExportFormat.PARQUET: _write_parquet,
        ExportFormat.CSV: _write_csv,
        ExportFormat.JSONL: _write_jsonl,
    }[form]
    rows = map(export.row, published)
    written = 0

    def chunks() -> Iterator[list[Row]]:
        nonlocal written
        while chunk := list(islice(rows, ROWS_AT_ONCE)):
            written += len(chunk)
            yield chunk

    with _replacing(path) as file:
        write(export, chunks(), file)
    return written


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A file beside `path`, of mode 0600, that takes its place at the end of the block."""
    try:
        descriptor, name = mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
        partial = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be written ({error.strerror or type(error).__name__}).",
            remedy="Check the folder's permissions and its disk, or name another file.",
        ) from None


def _frame(export: Export, chunk: Sequence[Row]) -> pd.DataFrame:
    """A chunk as a frame of plain objects, with JSON text for what is not a plain value."""
    flat = [{name: _plain(value) for name, value in row.items()} for row in chunk]
    return pd.DataFrame(flat, columns=list(export.columns), dtype=object)


def _plain(value: object) -> object:
    return orjson.dumps(value).decode() if isinstance(value, dict | list) else value


def _write_parquet(export: Export, chunks: Iterable[Sequence[Row]], file: BinaryIO) -> None:
    schema = pa.schema(list(export.columns.items()))
    with pq.ParquetWriter(file, schema) as writer:
        for chunk in chunks:
            try:
                table = pa.Table.from_pandas(_frame(export, chunk), schema, preserve_index=False)
            except pa.ArrowInvalid:
                raise ConfigurationError(
                    "A number of a record does not fit into the 64 bits of a Parquet column.",
                    remedy="Export as JSON lines.",
                ) from None
            writer.write_table(table)


def _write_csv(export: Export, chunks: Iterable[Sequence[Row]], file: BinaryIO) -> None:
    _csv(pd.DataFrame(columns=list(export.columns)), file, header=True)
    for chunk in chunks:
        _csv(_frame(export, chunk), file, header=False)


def _csv(frame: pd.DataFrame, file: BinaryIO, *, header: bool) -> None:
    frame["published_at"] = [at.isoformat() for at in frame["published_at"]]
    file.write(frame.to_csv(index=False, header=header, na_rep=CSV_NULL).encode())


def _write_jsonl(export: Export, chunks: Iterable[Sequence[Row]], file: BinaryIO) -> None:
    for chunk in chunks:
        for row in chunk:
            file.write(orjson.dumps(row) + b"\n")
