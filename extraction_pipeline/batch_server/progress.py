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

from extraction_pipeline.batch_server.input_lines import LinePlace
from extraction_pipeline.batch_server.records import Tally

_SCHEMA = """
CREATE TABLE requests (
    position INTEGER PRIMARY KEY,
    custom_id TEXT NOT NULL,
    offset INTEGER NOT NULL,
    length INTEGER NOT NULL,
    succeeded INTEGER,
    line BLOB,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0
)
"""


class BatchProgress:
    """The requests of one batch and the result lines there are. Used from one thread."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    @classmethod
    def open(cls, path: Path) -> Self:
        """What was made before."""
        return cls(_connect(path))

    @classmethod
    @contextmanager
    def make(cls, path: Path) -> Iterator[Callable[[LinePlace], None]]:
        """Make it anew, out of the places of requests that are handed to the given function."""
        remove_progress(path)
        with closing(_connect(path)) as database:
            database.execute("BEGIN")
            database.execute(_SCHEMA)

            def accept(place: LinePlace) -> None:
                database.execute(
                    "INSERT INTO requests (position, custom_id, offset, length)"
                    " VALUES (?, ?, ?, ?)",
                    (place.position, place.custom_id, place.offset, place.length),
                )

            yield accept
            database.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def unanswered(self) -> list[LinePlace]:
        """The requests without an answer, in the order of the input."""
        rows = self._database.execute(
            "SELECT position, custom_id, offset, length FROM requests WHERE line IS NULL"
            " ORDER BY position"
        )
        return [LinePlace(*row) for row in rows]

    def record(self, position: int, *, succeeded: bool, line: bytes, tally: Tally) -> None:
        """Keep the answer to one request."""
        self._database.execute(
            "UPDATE requests SET succeeded = ?, line = ?, input_tokens = ?, output_tokens = ?"
            " WHERE position = ?",
            (succeeded, line, tally.input_tokens, tally.output_tokens, position),
        )

    def tally(self) -> Tally:
        """What was answered so far."""
        row = self._database.execute(
            "SELECT coalesce(sum(succeeded), 0), coalesce(sum(NOT succeeded), 0),"
            " sum(input_tokens), sum(output_tokens) FROM requests WHERE line IS NOT NULL"
        ).fetchone()
        return Tally(*(value or 0 for value in row))

    def lines(self, *, succeeded: bool, seed: str) -> Iterator[bytes]:
        """The result lines of one kind, in a fixed order that is not the input's."""
        positions = [
            position
            for (position,) in self._database.execute(
                "SELECT position FROM requests WHERE succeeded = ? ORDER BY position", (succeeded,)
            )
        ]
        for position in shuffled(positions, seed):
            row = self._database.execute(
                "SELECT line FROM requests WHERE position = ?", (position,)
            ).fetchone()
            yield row[0]


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
