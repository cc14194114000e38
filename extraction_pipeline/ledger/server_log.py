"""What PostgreSQL writes to its own log of a session: nothing of a statement, which holds records.

The driver puts values into a statement, and the server logs the statement of one that failed or was
ended; the lines DETAIL and CONTEXT quote rows.
"""

from collections.abc import Mapping
from typing import Any

QUIET: Mapping[str, str] = {
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_statement": "none",
    "log_min_duration_statement": "-1",
}
"""Settings by which no content of a statement or row is logged; only a superuser, or who was
granted them, may set them."""

_PRIVILEGES_SINCE = 150000
_MAY_SET = "has_parameter_privilege(current_user, name, 'SET')"
_IS_SUPERUSER = "(SELECT rolsuper FROM pg_roles WHERE rolname = current_user)"


def keep_out_of_log(connection: Any, _record: object) -> None:
    """Set those that the role may set, for the life of a connection of the driver's."""
    may = _MAY_SET if connection.server_version >= _PRIVILEGES_SINCE else _IS_SUPERUSER
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config(name, value, false)"
            f" FROM unnest(%s, %s) AS quiet (name, value) WHERE {may}",
            (list(QUIET), list(QUIET.values())),
        )
    connection.commit()
