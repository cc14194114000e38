"""Why a database cannot be reached, from what the driver says when it connects. Pure.

Nothing of a record is in such a sentence, but a user's name can be: it is read and never repeated.
"""

import re
from dataclasses import dataclass

from sqlalchemy import URL

DEFAULT_PORT = 5432
_VARIABLE = "EXTRACTION_DATABASE_URL"
_NAMES = re.compile(r'"[^"]*"')
"""Of hosts, users, databases and files: they may be called anything, and say nothing of a cause."""
_OF_SSL = ("ssl", "certificate", "private key")


@dataclass(frozen=True)
class Unreachable:
    """What is wrong, and what to do about it."""

    message: str
    remedy: str


def place_of(url: URL) -> str:
    """Which database a URL names: host, port and name, without user and password."""
    name = url.database or url.username or "postgres"
    host = url.host or url.query.get("host") or "the local socket"
    port = url.port or url.query.get("port") or DEFAULT_PORT
    return f"database {name} at {host if isinstance(host, str) else ', '.join(host)}, port {port}"


def why_unreachable(url: URL, said: str) -> Unreachable:
    """The cause of a failed connection. `said` is the driver's sentence in English; of one in
    another language only the place is told."""
    said = _NAMES.sub("", said)
    place = place_of(url)
    place = place[0].upper() + place[1:]
    if "too many c" in said or "connection slots" in said:
        return Unreachable(
            f"{place} takes no more connections.",
            "Raise max_connections or the limit of its role, or let fewer work at once. Nothing "
            "was changed; what was under way is repeated safely.",
        )
    if "starting up" in said or "shutting down" in said or "recovery" in said:
        return Unreachable(
            f"{place} is starting or stopping.",
            "Wait until it is there. Nothing was changed; what was under way is repeated safely.",
        )
    if "pg_hba.conf" in said:
        return Unreachable(
            f"{place} lets nobody in from here in this way.",
            f"Let its pg_hba.conf do so, or set sslmode in {_VARIABLE} as it asks.",
        )
    if any(word in said.lower() for word in _OF_SSL):
        return Unreachable(
            f"{place} and this side do not agree on SSL.",
            f"Correct sslmode and its certificates in {_VARIABLE}.",
        )
    if "password" in said or "authentication" in said or "role " in said:
        return Unreachable(
            f"{place} refuses the user or the password.", f"Correct them in {_VARIABLE}."
        )
    if "database " in said and "does not exist" in said:
        return Unreachable(
            f"{place} does not exist; the server answers.",
            f"Create it with createdb, or correct its name in {_VARIABLE}.",
        )
    if "translate host name" in said:
        return Unreachable(
            f"{place} cannot be reached: the host name does not resolve.",
            f"Correct it in {_VARIABLE}.",
        )
    if "timeout" in said:
        what = "no answer within 10 seconds"
    elif "refused" in said or "No such file" in said:
        what = "no server listens there"
    else:
        what = "no connection"
    return Unreachable(
        f"{place} cannot be reached: {what}.",
        f"Start the server, or correct {_VARIABLE}. Nothing was changed; what was under way is "
        "repeated safely.",
    )
