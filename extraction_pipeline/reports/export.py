"""Published records as a data frame, and as a file: Parquet, CSV or JSON lines, through pandas."""

from enum import StrEnum
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
from sqlalchemy import Connection

from extraction_pipeline.ledger.published import PublishedRow, published_rows
from extraction_pipeline.reports.record_view import in_schema_order
from extraction_pipeline.schemas.document_type import DocumentType


class ExportFormat(StrEnum):
    """What a file is written as."""

    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"


def export_frame(
    connection: Connection, kind: DocumentType, collection: str, version: str, *, with_paths: bool
) -> pd.DataFrame:
    """One row a published document: provenance columns, then the record's fields.

    Fields that are objects or lists are JSON text, so that every format holds the same.
    """
    rows = [
        _flat(row, in_schema_order(kind, row.body), with_paths)
        for row in published_rows(connection, collection, version)
    ]
    return pd.DataFrame(rows)


def _flat(row: PublishedRow, body: dict[str, Any], with_paths: bool) -> dict[str, object]:
    flat: dict[str, object] = {
        "collection": row.collection,
        "document_hash": row.document_hash,
        "extraction_version": row.version,
        "schema_version": row.schema_version,
        "provider": row.provider,
        "model": row.model,
        "job_key": row.job_key,
        "job_id": row.job_id,
        "request_id": row.request_id,
        "raw_hash": row.raw_hash,
        "extraction_hash": row.extraction_hash,
        "published_at": row.published_at,
        "evidence_found": row.evidence_found,
        "evidence_total": row.evidence_total,
    }
    if with_paths:
        flat["path"] = row.path
    for name, value in body.items():
        flat[name] = orjson.dumps(value).decode() if isinstance(value, dict | list) else value
    return flat


def write_frame(frame: pd.DataFrame, path: Path, form: ExportFormat) -> None:
    """Write the frame whole or not at all: to a file beside it first, then moved."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        match form:
            case ExportFormat.PARQUET:
                frame.to_parquet(partial, index=False)
            case ExportFormat.CSV:
                frame.to_csv(partial, index=False)
            case ExportFormat.JSONL:
                frame.to_json(
                    partial, orient="records", lines=True, date_format="iso", force_ascii=False
                )
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
