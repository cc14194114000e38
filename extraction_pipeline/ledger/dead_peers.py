"""How soon both ends of a connection know that the other one is gone.

A host that is cut off, or loses its power, sends no farewell. By the defaults of Linux its
sessions, and with them the locks and rows that they hold, would live on for two hours at the
server, and its own statements would wait as long for an answer.

The client gives up before the server does: by the time that a lock of a host that was cut off is
free, that host knows that it lost it. On a unix socket none of this means anything, and does
nothing.
"""

from collections.abc import Mapping
from typing import Any

CLIENT_SECONDS = 20
"""After so long without a sign of the server a connection is broken for who uses it."""

SERVER_SECONDS = 30
"""After so long without a sign of the client the server ends its session, and frees its locks."""

_IDLE_SECONDS = 10
_INTERVAL_SECONDS = 5

CLIENT: Mapping[str, int] = {
    "keepalives_idle": _IDLE_SECONDS,
    "keepalives_interval": _INTERVAL_SECONDS,
    "keepalives_count": (CLIENT_SECONDS - _IDLE_SECONDS) // _INTERVAL_SECONDS,
    "tcp_user_timeout": CLIENT_SECONDS * 1000,
}
"""Parameters of a connection, as libpq calls them."""

SERVER: Mapping[str, str] = {
    "tcp_keepalives_idle": str(_IDLE_SECONDS),
    "tcp_keepalives_interval": str(_INTERVAL_SECONDS),
    "tcp_keepalives_count": str((SERVER_SECONDS - _IDLE_SECONDS) // _INTERVAL_SECONDS),
    "tcp_user_timeout": f"{SERVER_SECONDS}s",
    # Also while it works on a statement, or waits for somebody else's lock.
    "client_connection_check_interval": f"{_INTERVAL_SECONDS}s",
}
"""Settings of a session, which any role may set for itself."""


AS_LONG_AS_CLIENT: Mapping[str, str] = {
    "idle_session_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}
"""The same, of a connection that holds a lock while its process talks to a provider: that it is
idle says nothing, and its job would lose the lock at each try anew."""


def end_with_client(connection: Any, _record: object) -> None:
    """Have the server end the session of a connection of the driver's soon after its client."""
    _set(connection, SERVER)


def end_with_client_alone(connection: Any, _record: object) -> None:
    """The same, and for no other reason than that."""
    _set(connection, {**SERVER, **AS_LONG_AS_CLIENT})


def _set(connection: Any, wanted: Mapping[str, str]) -> None:
    with connection.cursor() as cursor:
        # Not as options of the connection: poolers refuse those. Servers before 14 lack one.
        cursor.execute(
            "SELECT set_config(name, value, false) FROM unnest(%s, %s) AS wanted (name, value)"
            " WHERE current_setting(name, true) IS NOT NULL",
            (list(wanted), list(wanted.values())),
        )
    connection.commit()
