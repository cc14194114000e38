"""What the server has accepted, on disk: SQLite for records, plain files for contents.

A record is committed, and synced, before the client hears of it; a file is in its place before its
record is. So what was accepted survives a killed process, and what was not never appears.
"""

import json
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from extraction_pipeline.batch_server.records import (
    Batch,
    BatchState,
    InputFault,
    NewBatch,
    Statistics,
    StoredFile,
    Tally,
)
from extraction_pipeline.batch_server.state_folder import StateFolder

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
CREATE INDEX IF NOT EXISTS batches_state ON batches (state);
"""
_ENDS = tuple(state.value for state in BatchState if state.is_end)
_NOT_ENDED = f"state NOT IN ({', '.join('?' for _ in _ENDS)})"


class UnknownCursor(Exception):
    """A list was to go on after an id that is not in it."""


class FileInUse(Exception):
    """A file cannot be deleted while a batch works on it."""


class Store:
    """Files and batches. Methods are short transactions and may be called from any thread."""

    def __init__(self, folder: StateFolder) -> None:
        self._lock = threading.RLock()
        self._database = sqlite3.connect(
            folder.database, check_same_thread=False, isolation_level=None
        )
        self._database.row_factory = sqlite3.Row
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._database.close()

    def add_upload(self, file: StoredFile) -> None:
        """Accept an uploaded file whose content is in its place."""
        with self._lock:
            self._add_file(file, uploaded=True)

    def file(self, file_id: str) -> StoredFile | None:
        """A file that was not deleted."""
        rows = self._rows("SELECT * FROM files WHERE id = ? AND NOT deleted", file_id)
        return _file(rows[0]) if rows else None

    def list_files(
        self, *, purpose: str | None, descending: bool, after: str | None, limit: int
    ) -> tuple[list[StoredFile], bool]:
        """One page, and whether more follow. Raises `UnknownCursor`."""
        where, arguments = "NOT deleted", list[Any]()
        if purpose is not None:
            where += " AND purpose = ?"
            arguments.append(purpose)
        rows, more = self._page("files", where, arguments, descending, after, limit)
        return [_file(row) for row in rows], more

    def delete_file(self, file_id: str) -> bool:
        """Forget a file; whether it was there. Raises `FileInUse`."""
        with self._lock:
            if self._rows(
                f"SELECT 1 FROM batches WHERE input_file_id = ? AND {_NOT_ENDED}", file_id, *_ENDS
            ):
                raise FileInUse
            changed = self._database.execute(
                "UPDATE files SET deleted = 1 WHERE id = ? AND NOT deleted", (file_id,)
            )
            return changed.rowcount == 1

    def add_batch(self, asked: NewBatch, window: float) -> Batch:
        """Accept a batch: it is on disk when this returns."""
        now = time.time()
        batch_id = f"batch_{uuid.uuid4().hex}"
        metadata = None if asked.metadata is None else json.dumps(dict(asked.metadata))
        with self._lock:
            self._database.execute(
                "INSERT INTO batches (id, state, endpoint, completion_window, input_file_id,"
                " metadata, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    batch_id,
                    BatchState.VALIDATING.value,
                    asked.endpoint,
                    asked.completion_window,
                    asked.input_file_id,
                    metadata,
                    now,
                    now + window,
                ),
            )
        return self.batch(batch_id)

    def find_batch(self, batch_id: str) -> Batch | None:
        """A batch, if there is one of this id."""
        rows = self._rows("SELECT * FROM batches WHERE id = ?", batch_id)
        return _batch(rows[0]) if rows else None

    def batch(self, batch_id: str) -> Batch:
        """A batch that is known to be there; none is ever deleted."""
        return _batch(self._rows("SELECT * FROM batches WHERE id = ?", batch_id)[0])

    def list_batches(self, *, after: str | None, limit: int) -> tuple[list[Batch], bool]:
        """One page, newest first, and whether more follow. Raises `UnknownCursor`."""
        rows, more = self._page("batches", "TRUE", [], True, after, limit)
        return [_batch(row) for row in rows], more

    def open_batches(self) -> list[Batch]:
        """The batches that are not at their end, oldest first."""
        rows = self._rows(f"SELECT * FROM batches WHERE {_NOT_ENDED} ORDER BY position", *_ENDS)
        return [_batch(row) for row in rows]

    def start(self, batch_id: str, model: str | None, total: int) -> bool:
        """Validated: work begins. False if the batch was cancelled meanwhile."""
        return self._move(
            batch_id, BatchState.VALIDATING, BatchState.IN_PROGRESS, model=model, total=total
        )

    def fail(self, batch_id: str, faults: Iterable[InputFault]) -> bool:
        """Not valid: the batch ends without results. False if it was cancelled meanwhile."""
        listed = json.dumps([asdict(fault) for fault in faults])
        return self._move(batch_id, BatchState.VALIDATING, BatchState.FAILED, faults=listed)

    def move(self, batch_id: str, expected: BatchState, to: BatchState) -> bool:
        """Change the state from what is expected; false if it was another."""
        return self._move(batch_id, expected, to)

    def count(self, batch_id: str, tally: Tally) -> None:
        """Show how far a batch is."""
        with self._lock:
            self._database.execute(
                "UPDATE batches SET tally = ? WHERE id = ?", (json.dumps(asdict(tally)), batch_id)
            )

    def finish(
        self,
        batch_id: str,
        expected: BatchState,
        to: BatchState,
        *,
        tally: Tally,
        output: StoredFile | None,
        error: StoredFile | None,
    ) -> bool:
        """End a batch that was worked on, its files with it; false if its state was another.

        Together with `fail`, the only way to an end.
        """
        with self._lock, self._database:
            self._database.execute("BEGIN")
            for file in (output, error):
                if file is not None:
                    self._add_file(file, uploaded=False)
            moved = self._move(
                batch_id,
                expected,
                to,
                tally=json.dumps(asdict(tally)),
                output_file_id=output.id if output else None,
                error_file_id=error.id if error else None,
            )
            if not moved:
                self._database.execute("ROLLBACK")
            return moved

    def statistics(self) -> Statistics:
        """What was accepted so far."""
        with self._lock:
            uploaded = self._rows("SELECT count(*) FROM files WHERE uploaded")[0][0]
            states = self._rows("SELECT state, count(*) FROM batches GROUP BY state")
            requests = self._rows("SELECT coalesce(sum(total), 0) FROM batches")[0][0]
            pairs = self._rows(
                "SELECT pair.key, pair.value, count(*) FROM batches, json_each(metadata) AS pair"
                " WHERE metadata IS NOT NULL GROUP BY 1, 2"
            )
        by_metadata: dict[str, dict[str, int]] = {}
        for key, value, number in pairs:
            by_metadata.setdefault(key, {})[value] = number
        by_state = dict(map(tuple, states))
        return Statistics(uploaded, sum(by_state.values()), requests, by_state, by_metadata)

    def _rows(self, statement: str, *arguments: Any) -> list[sqlite3.Row]:
        with self._lock:
            return self._database.execute(statement, arguments).fetchall()

    def _page(
        self,
        table: str,
        where: str,
        arguments: list[Any],
        descending: bool,
        after: str | None,
        limit: int,
    ) -> tuple[list[sqlite3.Row], bool]:
        with self._lock:
            if after is not None:
                found = self._rows(f"SELECT position FROM {table} WHERE id = ?", after)
                if not found:
                    raise UnknownCursor
                where += f" AND position {'<' if descending else '>'} ?"
                arguments = [*arguments, found[0][0]]
            rows = self._rows(
                f"SELECT * FROM {table} WHERE {where}"
                f" ORDER BY position {'DESC' if descending else 'ASC'} LIMIT ?",
                *arguments,
                limit + 1,
            )
        return rows[:limit], len(rows) > limit

    def _move(
        self, batch_id: str, expected: BatchState, to: BatchState, **columns: str | int | None
    ) -> bool:
        """One statement, so that a state never stands without what belongs to it."""
        assignments = "".join(f", {name} = ?" for name in columns)
        with self._lock:
            changed = self._database.execute(
                f"UPDATE batches SET state = ?, reached = json_set(reached, '$.' || ?, ?)"
                f"{assignments} WHERE id = ? AND state = ?",
                (to.value, to.value, time.time(), *columns.values(), batch_id, expected.value),
            )
            return changed.rowcount == 1

    def _add_file(self, file: StoredFile, *, uploaded: bool) -> None:
        self._database.execute(
            "INSERT INTO files (id, size, created_at, filename, purpose, uploaded)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (file.id, file.size, file.created_at, file.filename, file.purpose, uploaded),
        )


def _file(row: sqlite3.Row) -> StoredFile:
    return StoredFile(row["id"], row["size"], row["created_at"], row["filename"], row["purpose"])


def _batch(row: sqlite3.Row) -> Batch:
    metadata = row["metadata"]
    return Batch(
        id=row["id"],
        state=BatchState(row["state"]),
        asked=NewBatch(
            endpoint=row["endpoint"],
            completion_window=row["completion_window"],
            input_file_id=row["input_file_id"],
            metadata=None if metadata is None else json.loads(metadata),
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
    )
