"""Which statements a database is busy with: looked at every few milliseconds, and counted."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, NullPool, create_engine, text

GLANCE = 0.02
"""Seconds between two looks."""
SHOWN = 8
BEGINNING = 160
"""Characters of a statement that are shown: without the values that follow."""

ACTIVE = text(r"""
    SELECT CASE WHEN leader_pid IS NULL THEN '' ELSE 'parallel: ' END
           || left(regexp_replace(query, '\s+', ' ', 'g'), :beginning)
    FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()
""")


@contextmanager
def busy_statements(database_url: str, say: Callable[[str], None]) -> Iterator[None]:
    """Say after a block for how many seconds which statements were seen, the longest first."""
    seen: Counter[str] = Counter()

    def look(connection: Connection) -> None:
        seen.update(connection.execute(ACTIVE, {"beginning": BEGINNING}).scalars())

    with looking(database_url, GLANCE, look):
        yield
    for statement, count in seen.most_common(SHOWN):
        say(f"{count * GLANCE:8.2f} s  {statement}")


@contextmanager
def looking(
    database_url: str, seconds: float, look: Callable[[Connection], None]
) -> Iterator[None]:
    """During a block take a look every so many seconds, over a connection of its own."""
    ended = threading.Event()

    def until_ended() -> None:
        engine = create_engine(database_url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            while not ended.wait(seconds):
                look(connection)

    thread = threading.Thread(target=until_ended, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
