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

from extraction_pipeline.batch_server.database import (
    as_batch,
    as_file,
    count_answered,
    insert_batch,
    insert_file,
    open_database,
    tally_json,
)
from extraction_pipeline.batch_server.dialects import Dialect
from extraction_pipeline.batch_server.records import (
    REQUESTS_PURPOSE,
    Batch,
    BatchState,
    InputFault,
    NewBatch,
    Statistics,
    StoredFile,
    Tally,
)
from extraction_pipeline.batch_server.state_folder import StateFolder
from extraction_pipeline.batch_server.statistics import read_statistics

_ENDS = tuple(state.value for state in BatchState if state.is_end)
_NOT_ENDED = f"state NOT IN ({', '.join('?' for _ in _ENDS)})"
_ID_PREFIXES = {
    Dialect.OPENAI: "batch_",
    Dialect.ANTHROPIC: "msgbatch_",
    # With "batch-" before it, the name of the result file is longer than the 40 characters that
    # Gemini's own files API takes, as it is at Google.
    Dialect.GEMINI: "localbatch",
    Dialect.INFRAI: "ib_",
}


class UnknownCursor(Exception):
    """A list was to go on after an id that is not in it."""


class FileInUse(Exception):
    """A file cannot be deleted while a batch works on it."""


class Store:
    """Files and batches. Methods are short transactions and may be called from any thread."""

    def __init__(self, folder: StateFolder) -> None:
        self._lock = threading.RLock()
        self._database = open_database(folder.database)

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._database.close()

    def add_upload(self, file: StoredFile) -> None:
        """Accept an uploaded file whose content is in its place."""
        with self._lock:
            insert_file(self._database, file, uploaded=True)

    def knows_file(self, file_id: str) -> bool:
        """Whether there is such a file, of any wire format, that was not deleted."""
        return bool(self._rows("SELECT 1 FROM files WHERE id = ? AND NOT deleted", file_id))

    def file(self, file_id: str, dialect: Dialect) -> StoredFile | None:
        """A file that was not deleted."""
        rows = self._rows(
            "SELECT * FROM files WHERE id = ? AND dialect = ? AND NOT deleted", file_id, dialect
        )
        return as_file(rows[0]) if rows else None

    def list_files(
        self,
        dialect: Dialect,
        *,
        purpose: str | None,
        descending: bool,
        after: str | None,
        limit: int,
    ) -> tuple[list[StoredFile], bool]:
        """One page, and whether more follow. Raises `UnknownCursor`."""
        where, arguments = "NOT deleted AND dialect = ?", list[Any]([dialect])
        if purpose is not None:
            where += " AND purpose = ?"
            arguments.append(purpose)
        rows, more = self._page("files", where, arguments, descending, after, limit)
        return [as_file(row) for row in rows], more

    def delete_file(self, file_id: str, dialect: Dialect) -> bool:
        """Forget a file; whether it was there. Raises `FileInUse`."""
        with self._lock:
            if self._rows(
                f"SELECT 1 FROM batches WHERE input_file_id = ? AND {_NOT_ENDED}", file_id, *_ENDS
            ):
                raise FileInUse
            changed = self._database.execute(
                "UPDATE files SET deleted = 1 WHERE id = ? AND dialect = ? AND NOT deleted",
                (file_id, dialect),
            )
            return changed.rowcount == 1

    def add_batch(
        self, asked: NewBatch, window: float, requests: StoredFile | None = None
    ) -> Batch:
        """Accept a batch: it is on disk when this returns, and `requests` with it, the file of the
        server's own that holds its input, if it is not an upload."""
        batch_id = f"{_ID_PREFIXES[asked.dialect]}{uuid.uuid4().hex}"
        with self._lock, self._database:
            self._database.execute("BEGIN")
            if requests is not None:
                insert_file(self._database, requests, uploaded=False)
            insert_batch(self._database, batch_id, asked, time.time(), window)
        return self.batch(batch_id)

    def add_batch_once(
        self, asked: NewBatch, window: float, requests: StoredFile, since: float
    ) -> tuple[Batch, bool]:
        """Accept a batch unless one of its job key was accepted after `since`: that one is given
        instead, and `False`."""
        with self._lock:
            found = self._rows(
                "SELECT * FROM batches WHERE dialect = ? AND job_key = ? AND created_at > ?"
                " ORDER BY position DESC LIMIT 1",
                asked.dialect,
                asked.job_key,
                since,
            )
            if found:
                return as_batch(found[0]), False
            return self.add_batch(asked, window, requests), True

    def find_batch(self, batch_id: str, dialect: Dialect) -> Batch | None:
        """A batch that was not deleted, if there is one of this id."""
        rows = self._rows(
            "SELECT * FROM batches WHERE id = ? AND dialect = ? AND NOT deleted", batch_id, dialect
        )
        return as_batch(rows[0]) if rows else None

    def batch(self, batch_id: str) -> Batch:
        """A batch that is known to be there; the record stays when it is deleted."""
        return as_batch(self._rows("SELECT * FROM batches WHERE id = ?", batch_id)[0])

    def list_batches(
        self, dialect: Dialect, *, after: str | None = None, before: str | None = None, limit: int
    ) -> tuple[list[Batch], bool]:
        """One page, newest first, and whether more follow: the next older ones than `after`, or
        the next newer ones than `before`. Raises `UnknownCursor`."""
        where, arguments = "NOT deleted AND dialect = ?", [dialect]
        if before is not None:
            rows, more = self._page("batches", where, arguments, False, before, limit)
            rows.reverse()
        else:
            rows, more = self._page("batches", where, arguments, True, after, limit)
        return [as_batch(row) for row in rows], more

    def open_batches(self) -> list[Batch]:
        """The batches that are not at their end, oldest first."""
        rows = self._rows(f"SELECT * FROM batches WHERE {_NOT_ENDED} ORDER BY position", *_ENDS)
        return [as_batch(row) for row in rows]

    def delete_batch(self, batch_id: str) -> list[str]:
        """Forget a batch with its results; one that is not at its end is cancelled.

        Gives the files whose contents are not needed any more.
        """
        with self._lock, self._database:
            self._database.execute("BEGIN")
            batch = self.batch(batch_id)
            self._database.execute("UPDATE batches SET deleted = 1 WHERE id = ?", (batch_id,))
            if not batch.state.is_end and batch.state is not BatchState.CANCELLING:
                self._move(batch_id, batch.state, BatchState.CANCELLING)
            results = [name for name in (batch.output_file_id, batch.error_file_id) if name]
            for file_id in results:
                self._database.execute("UPDATE files SET deleted = 1 WHERE id = ?", (file_id,))
        return results

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

    def cancel(self, batch_id: str) -> Batch:
        """Ask for the end of a batch if it is not near or at its end; what it is then."""
        for state in (BatchState.VALIDATING, BatchState.IN_PROGRESS):
            if self._move(batch_id, state, BatchState.CANCELLING):
                break
        return self.batch(batch_id)

    def count(self, batch_id: str, tally: Tally) -> None:
        """Show how far a batch is."""
        with self._lock:
            self._database.execute(
                "UPDATE batches SET tally = ? WHERE id = ?", (tally_json(tally), batch_id)
            )

    def finish(
        self,
        batch: Batch,
        to: BatchState,
        *,
        tally: Tally,
        output: StoredFile | None,
        error: StoredFile | None,
        answered: Iterable[bytes] = (),
    ) -> bool:
        """End a batch that was worked on, its files with it; false if it was changed meanwhile.

        Together with `fail`, the only way to an end. `answered` are digests of the questions that
        have an answer of the model's.
        """
        with self._lock, self._database:
            self._database.execute("BEGIN")
            if self.batch(batch.id).deleted != batch.deleted:
                return False
            for file in (output, error):
                if file is not None:
                    insert_file(self._database, file, uploaded=False)
            moved = self._move(
                batch.id,
                batch.state,
                to,
                tally=tally_json(tally),
                output_file_id=output.id if output else None,
                error_file_id=error.id if error else None,
            )
            if moved:
                count_answered(self._database, batch.asked.dialect, answered)
                self._database.execute(
                    "UPDATE files SET deleted = 1 WHERE id = ? AND purpose = ?",
                    (batch.asked.input_file_id, REQUESTS_PURPOSE),
                )
            else:
                self._database.execute("ROLLBACK")
            return moved

    def ordinal(self, batch: Batch, since: float) -> int:
        """Which one it is of its wire format's batches accepted after `since`, from 1; 0 or less
        for one from before."""
        (row,) = self._rows(
            "SELECT count(*) FROM batches"
            " WHERE dialect = ? AND created_at >= ? AND created_at <= ?",
            batch.asked.dialect,
            since,
            batch.created_at,
        )
        return int(row[0])

    def batch_with_results(self, file_id: str) -> Batch | None:
        """The batch that wrote a result file."""
        rows = self._rows(
            "SELECT * FROM batches WHERE output_file_id = ? OR error_file_id = ?", file_id, file_id
        )
        return as_batch(rows[0]) if rows else None

    def young(self, seconds: float) -> frozenset[str]:
        """The ids of batches and files that are not older than so many seconds."""
        since = time.time() - seconds
        rows = self._rows(
            "SELECT id FROM batches WHERE created_at > ? UNION ALL"
            " SELECT id FROM files WHERE created_at > ?",
            since,
            since,
        )
        return frozenset(row[0] for row in rows)

    def count_fault(self, name: str) -> None:
        """A planned fault was applied."""
        with self._lock:
            self._database.execute(
                "INSERT INTO faults_applied (name, times) VALUES (?, 1)"
                " ON CONFLICT DO UPDATE SET times = times + 1",
                (name,),
            )

    def statistics(self) -> Statistics:
        """What was accepted so far."""
        with self._lock:
            return read_statistics(self._database)

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
                found = self._rows(
                    f"SELECT position FROM {table} WHERE id = ? AND dialect = ?",
                    after,
                    arguments[0],
                )
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
