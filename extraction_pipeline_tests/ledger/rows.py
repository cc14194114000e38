"""Rows of the ledger, written as SQL: what the tables themselves allow and refuse."""

from typing import Any

from sqlalchemy import Connection, text

HASH = "a" * 64


def insert(connection: Connection, table: str, **values: Any) -> int:
    """Insert one row, with good values where none are given; its id."""
    complete = {**GOOD[table], **values}
    row = connection.execute(
        text(
            f"INSERT INTO extraction.{table} ({', '.join(complete)})"
            f" VALUES ({', '.join(f':{name}' for name in complete)}) RETURNING id"
        ),
        complete,
    )
    return int(row.scalar_one())


GOOD: dict[str, dict[str, Any]] = {
    "documents": {
        "collection": "notes",
        "document_hash": HASH,
        "state": "readable",
        "content_hash": HASH,
        "byte_size": 1,
        "text_hash": HASH,
        "payload_bytes": 3,
    },
    "document_sources": {"collection": "notes", "path": "a.txt", "problem": "unread"},
    "extraction_versions": {
        "collection": "notes",
        "name": "v1",
        "fingerprint": HASH,
        "recipe": "{}",
        "schema_version": "note/1",
        "provider": "local",
        "model": "m",
    },
    "batch_jobs": {
        "job_key": "key",
        "provider": "local",
        "base_url": "http://127.0.0.1/v1",
        "state": "preparing",
        "request_count": 1,
    },
    "batch_items": {"attempt": 1, "state": "claimed", "text_hash": HASH},
    "result_files": {
        "kind": "output",
        "reference": "file-1",
        "content_hash": HASH,
        "byte_size": 1,
    },
    "raw_responses": {
        "byte_offset": 0,
        "byte_length": 1,
        "body_hash": HASH,
        "schema_version": "note/1",
        "outcome": "completed",
    },
    "request_costs": {},
    "webhook_deliveries": {
        "provider": "openai",
        "delivery_id": "wh_1",
        "job_id": "batch-9",
        "outcome": "unknown_job",
    },
    "extractions": {
        "schema_version": "note/1",
        "text_hash": HASH,
        "body": "{}",
        "body_hash": HASH,
        "evidence_found": 0,
        "evidence_total": 0,
    },
}
