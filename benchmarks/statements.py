"""Which statements a database is busy with: looked at every few milliseconds, and counted."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import NullPool, create_engine, text

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
    ended = threading.Event()

    def look() -> None:
        engine = create_engine(database_url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            while not ended.wait(GLANCE):
                seen.update(connection.execute(ACTIVE, {"beginning": BEGINNING}).scalars())

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield
    finally:
        ended.set()
        looking.join()
    for statement, count in seen.most_common(SHOWN):
        say(f"{count * GLANCE:8.2f} s  {statement}")
