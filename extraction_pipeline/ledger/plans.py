"""By what costs PostgreSQL plans the statements of our sessions.

A statement here asks of a thousand rows, and the tables that it asks lie in memory or on a disk
without moving parts. By the server's first settings a page out of its turn costs four times as
much as the next one, and a thousand rows are then found by reading a hundred thousand: measured
on 100,000 published documents, 28.7 s instead of 0.5 for the claim of 1,000 new ones.
"""

from collections.abc import Mapping
from typing import Any

COSTS: Mapping[str, str] = {"random_page_cost": "1.1"}
"""Settings of a session, which any role may set for itself."""


def plan_by_index(connection: Any, _record: object) -> None:
    """Set them for the life of a connection of the driver's."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config(name, value, false) FROM unnest(%s, %s) AS costs (name, value)",
            (list(COSTS), list(COSTS.values())),
        )
    connection.commit()
