"""Statistics of the table of events, kept true while it grows by bulk.

PostgreSQL counts a table anew within some minutes. Until then it takes a hundred thousand new rows
for none, and joins them one by one: the grid of an asset's partitions then takes minutes, and the
webserver's statements are ended after seconds.
"""

from dagster._core.storage.event_log.schema import SqlEventLogStorageTable
from sqlalchemy import Connection, text

LOOK_AT_ROWS = 10_000
"""Written since the last look: fewer do no harm."""
GROWN_BY = 0.5
"""Share of what the table held when it was counted last, from which on it is counted anew."""


def analyze_if_grown(connection: Connection, written: int) -> bool:
    """Count the table anew if so many rows make a difference; whether it was done.

    A role that does not own the table is not let, and PostgreSQL's own way does it later.
    """
    known = connection.execute(
        text("SELECT reltuples FROM pg_class WHERE oid = CAST(:table AS regclass)"),
        {"table": SqlEventLogStorageTable.name},
    ).scalar_one()
    if written < GROWN_BY * known:
        return False
    connection.execute(text(f"ANALYZE {SqlEventLogStorageTable.name}"))
    return True
