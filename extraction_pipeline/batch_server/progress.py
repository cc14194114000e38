"""One batch's requests and answers while it is worked on: a small SQLite file of its own.

Every answer is written as it comes, so that a server that was killed asks for the rest only. The
file is removed with the batch's end, and with it the answers' second copy.
"""

import random
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Self

from extraction_pipeline.batch_server.records import LinePlace, Tally

_SCHEMA = """
CREATE TABLE requests (
    position INTEGER PRIMARY KEY,
    custom_id TEXT NOT NULL,
    offset INTEGER NOT NULL,
    length INTEGER NOT NULL,
    succeeded INTEGER,
    digest BLOB,
    line BLOB,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0
)
"""


ROWS_AT_ONCE = 1000


class BatchProgress:
    """The requests of one batch and the result lines there are. Used from one thread."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    @classmethod
    def open(cls, path: Path) -> Self | None:
        """What was made before; `None` if it was not, or a killed server was about to."""
        if not path.exists():
            return None
        database = _connect(path)
        columns = [row[1] for row in database.execute("PRAGMA table_info(requests)")]
        if columns:
            if "digest" not in columns:  # of an earlier release
                database.execute("ALTER TABLE requests ADD COLUMN digest BLOB")
            return cls(database)
        database.close()
        return None

    @classmethod
    @contextmanager
    def make(cls, path: Path) -> Iterator[Self]:
        """Make it anew, to be filled with the places of requests; all of them or none stay."""
        remove_progress(path)
        with closing(_connect(path)) as database:
            database.execute("BEGIN")
            database.execute(_SCHEMA)
            yield cls(database)
            database.execute("COMMIT")

    def accept(self, place: LinePlace) -> None:
        """Add a request."""
        self._database.execute(
            "INSERT INTO requests (position, custom_id, offset, length) VALUES (?, ?, ?, ?)",
            (place.position, place.custom_id, place.offset, place.length),
        )

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def unanswered(self) -> Iterator[LinePlace]:
        """The requests without an answer, in the order of the input; read piece by piece, so that
        answers can be recorded meanwhile."""
        last = -1
        while True:
            rows = self._database.execute(
                "SELECT position, custom_id, offset, length FROM requests"
                " WHERE line IS NULL AND position > ? ORDER BY position LIMIT ?",
                (last, ROWS_AT_ONCE),
            ).fetchall()
            yield from (LinePlace(*row) for row in rows)
            if len(rows) < ROWS_AT_ONCE:
                return
            last = rows[-1][0]

    def record(
        self, position: int, *, succeeded: bool, line: bytes, tally: Tally, digest: bytes | None
    ) -> None:
        """Keep the answer to one request; `digest` is of what the model was asked."""
        self._database.execute(
            "UPDATE requests SET succeeded = ?, line = ?, input_tokens = ?, output_tokens = ?,"
            " digest = ? WHERE position = ?",
            (succeeded, line, tally.input_tokens, tally.output_tokens, digest, position),
        )

    def answered(self) -> Iterator[bytes]:
        """The digest of every question that the model answered."""
        rows = self._database.execute(
            "SELECT digest FROM requests WHERE succeeded AND digest IS NOT NULL"
        )
        return (digest for (digest,) in rows)

    def tally(self) -> Tally:
        """What was answered so far."""
        row = self._database.execute(
            "SELECT coalesce(sum(succeeded), 0), coalesce(sum(NOT succeeded), 0),"
            " sum(input_tokens), sum(output_tokens) FROM requests WHERE line IS NOT NULL"
        ).fetchone()
        return Tally(*(value or 0 for value in row))

    def lines(self, *, succeeded: bool, seed: str) -> Iterator[bytes]:
        """The result lines of one kind, in a fixed order that is not the input's."""
        positions = self._positions("WHERE succeeded = ?", succeeded)
        for _, line in self._of(shuffled(positions, seed)):
            if line is not None:
                yield line

    def all_lines(
        self, unserved: Callable[[LinePlace], bytes], *, seed: str | None
    ) -> Iterator[bytes]:
        """A result line for every request, by `unserved` where there is no answer; in the order
        of the input without a `seed`."""
        positions = self._positions("")
        for place, line in self._of(positions if seed is None else shuffled(positions, seed)):
            yield unserved(place) if line is None else line

    def _positions(self, where: str, *arguments: object) -> list[int]:
        rows = self._database.execute(
            f"SELECT position FROM requests {where} ORDER BY position", arguments
        )
        return [position for (position,) in rows]

    def _of(self, positions: Iterable[int]) -> Iterator[tuple[LinePlace, bytes | None]]:
        for position in positions:
            *place, line = self._database.execute(
                "SELECT position, custom_id, offset, length, line FROM requests WHERE position = ?",
                (position,),
            ).fetchone()
            yield LinePlace(*place), line


def shuffled(positions: Iterable[int], seed: str) -> list[int]:
    """The positions in an order that depends on `seed` alone, and is not the given one if there
    are two or more: nobody who joins results by their place gets away with it."""
    given = list(positions)
    mixed = given.copy()
    random.Random(seed).shuffle(mixed)
    return mixed if mixed != given else mixed[1:] + mixed[:1]


def remove_progress(path: Path) -> None:
    """Remove a progress file with SQLite's own beside it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _connect(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    # Survives a killed process; a power cut may cost the last answers, which are asked for again.
    database.execute("PRAGMA synchronous = NORMAL")
    return database
