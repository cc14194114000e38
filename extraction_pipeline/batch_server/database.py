"""The server's SQLite file: its tables, and how rows become records."""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from extraction_pipeline.batch_server.dialects import Dialect
from extraction_pipeline.batch_server.records import (
    Batch,
    BatchState,
    InputFault,
    NewBatch,
    StoredFile,
    Tally,
)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS files (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    created_at REAL NOT NULL,
    filename TEXT NOT NULL,
    purpose TEXT NOT NULL,
    uploaded INTEGER NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS batches (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    completion_window TEXT NOT NULL,
    input_file_id TEXT NOT NULL REFERENCES files (id),
    metadata TEXT,
    created_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    reached TEXT NOT NULL DEFAULT '{}',
    model TEXT,
    total INTEGER,
    tally TEXT NOT NULL DEFAULT '{}',
    faults TEXT NOT NULL DEFAULT '[]',
    output_file_id TEXT REFERENCES files (id),
    error_file_id TEXT REFERENCES files (id)
);
CREATE TABLE IF NOT EXISTS answered (
    dialect TEXT NOT NULL,
    digest BLOB NOT NULL,
    times INTEGER NOT NULL,
    PRIMARY KEY (dialect, digest)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS faults_applied (name TEXT PRIMARY KEY, times INTEGER NOT NULL);
"""
_LATER_COLUMNS = {
    "files": {
        "dialect": "TEXT NOT NULL DEFAULT 'openai'",
        "media_type": "TEXT",
        "sha256": "TEXT",
    },
    "batches": {
        "dialect": "TEXT NOT NULL DEFAULT 'openai'",
        "job_key": "TEXT",
        "digest": "TEXT",
        "source_file_id": "TEXT",
        "keeps_order": "INTEGER NOT NULL DEFAULT 0",
        "deleted": "INTEGER NOT NULL DEFAULT 0",
    },
}
"""What state folders of earlier releases lack; it is added when they are opened."""
_INDEXES = """
CREATE INDEX IF NOT EXISTS batches_state ON batches (state);
CREATE INDEX IF NOT EXISTS batches_job_key ON batches (dialect, job_key);
"""


def open_database(path: Path) -> sqlite3.Connection:
    """The database with all its tables. Statements commit by themselves, synced to the disk."""
    database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    database.row_factory = sqlite3.Row
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.executescript(_SCHEMA)
    for table, columns in _LATER_COLUMNS.items():
        there = {row["name"] for row in database.execute(f"PRAGMA table_info({table})")}
        for name, kind in columns.items():
            if name not in there:
                database.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind}")
    database.executescript(_INDEXES)
    return database


def insert_file(database: sqlite3.Connection, file: StoredFile, *, uploaded: bool) -> None:
    """Add a file's record."""
    database.execute(
        "INSERT INTO files (id, size, created_at, filename, purpose, uploaded, dialect, media_type,"
        " sha256) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            file.id,
            file.size,
            file.created_at,
            file.filename,
            file.purpose,
            uploaded,
            file.dialect.value,
            file.media_type,
            file.sha256,
        ),
    )


def insert_batch(
    database: sqlite3.Connection, batch_id: str, asked: NewBatch, now: float, window: float
) -> None:
    """Add a batch's record."""
    database.execute(
        "INSERT INTO batches (id, state, endpoint, completion_window, input_file_id, metadata,"
        " created_at, expires_at, dialect, job_key, digest, source_file_id, total, keeps_order)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            batch_id,
            BatchState.VALIDATING.value,
            asked.endpoint,
            asked.completion_window,
            asked.input_file_id,
            None if asked.metadata is None else json.dumps(dict(asked.metadata)),
            now,
            now + window,
            asked.dialect.value,
            asked.job_key,
            asked.digest,
            asked.source_file_id,
            asked.total,
            asked.keeps_order,
        ),
    )


def count_answered(
    database: sqlite3.Connection, dialect: Dialect, digests: Iterable[bytes]
) -> None:
    """Count questions that a model answered, by the digest of what was asked."""
    database.executemany(
        "INSERT INTO answered (dialect, digest, times) VALUES (?, ?, 1)"
        " ON CONFLICT DO UPDATE SET times = times + 1",
        ((dialect.value, digest) for digest in digests),
    )


def as_file(row: sqlite3.Row) -> StoredFile:
    """A row of `files`."""
    return StoredFile(
        id=row["id"],
        size=row["size"],
        created_at=row["created_at"],
        filename=row["filename"],
        purpose=row["purpose"],
        dialect=Dialect(row["dialect"]),
        media_type=row["media_type"],
        sha256=row["sha256"],
    )


def as_batch(row: sqlite3.Row) -> Batch:
    """A row of `batches`."""
    metadata = row["metadata"]
    return Batch(
        id=row["id"],
        state=BatchState(row["state"]),
        asked=NewBatch(
            endpoint=row["endpoint"],
            completion_window=row["completion_window"],
            input_file_id=row["input_file_id"],
            metadata=None if metadata is None else json.loads(metadata),
            dialect=Dialect(row["dialect"]),
            job_key=row["job_key"],
            digest=row["digest"],
            source_file_id=row["source_file_id"],
            keeps_order=bool(row["keeps_order"]),
        ),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        reached={BatchState(name): at for name, at in json.loads(row["reached"]).items()},
        model=row["model"],
        total=row["total"],
        tally=Tally(**json.loads(row["tally"])),
        faults=tuple(InputFault(**fault) for fault in json.loads(row["faults"])),
        output_file_id=row["output_file_id"],
        error_file_id=row["error_file_id"],
        deleted=bool(row["deleted"]),
    )


def tally_json(tally: Tally) -> str:
    """A tally as its column holds it."""
    return json.dumps(asdict(tally))
