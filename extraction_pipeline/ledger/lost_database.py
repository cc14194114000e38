"""A database that went away, told from whatever error became of it.

Engines that are not ours, such as Dagster's, raise the driver's errors as they are.
"""

from collections.abc import Iterator, Mapping

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from extraction_pipeline.errors import DatabaseUnavailable

PASSING = ("08", "40", "53", "57P", "57014", "55P03", "25006", "25P03", "25P04")
"""Beginnings of PostgreSQL's codes that pass by themselves, or by what is done at the server alone:
connection, conflict of two transactions, resources, shutdown, limits of time, a standby."""

_FILES = "58"

_AGAIN = "what was under way is repeated safely."

_CAUSES: Mapping[str, tuple[str, str]] = {
    "53100": ("The database's disk is full.", "Make room"),
    "53200": (
        "The database has no memory left (53200).",
        "Give it more, or let fewer work at once",
    ),
    "53300": (
        "The database takes no more connections (53300).",
        "Raise max_connections or the limit of its role, or let fewer work at once",
    ),
    "57014": (
        "The database ended a statement that took too long, or that somebody cancelled (57014).",
        "Raise statement_timeout of its role",
    ),
    "25P04": (
        "The database ended a transaction that took too long (25P04).",
        "Raise transaction_timeout of its role",
    ),
    "55P03": (
        "The database did not give a lock in time (55P03).",
        "See who holds it, or raise lock_timeout of its role",
    ),
    "25006": (
        "The database takes no writes: it is read-only (25006).",
        "Name the primary server in EXTRACTION_DATABASE_URL",
    ),
    "40": (
        "Another process wrote to the same rows at the same moment ({code}).",
        "Nothing is to be done",
    ),
}
"""Cause and remedy by the beginning of a code."""


def lost_database(error: BaseException) -> DatabaseUnavailable | None:
    """The loss of the database that made `error` come about, if one did. Nothing of the driver's
    sentence is in it."""
    for one in chain_of(error):
        if isinstance(one, DatabaseUnavailable):
            return one
        if isinstance(one, DBAPIError):
            code = getattr(one.orig, "pgcode", None)
            if code is None and not isinstance(one, OperationalError | InterfaceError):
                continue
            if code is None or code.startswith((*PASSING, _FILES)):
                return told(code)
    return None


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """An error, what it was raised from, and so on to the first."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def told(code: str | None, place: str = "the database") -> DatabaseUnavailable:
    """What a code of PostgreSQL means to whoever meets it, `None` being a connection that is gone.

    `place` is how the database is called where nothing but its connection is to blame."""
    for beginning, (cause, remedy) in _CAUSES.items():
        if code is not None and code.startswith(beginning):
            return DatabaseUnavailable(cause.format(code=code), remedy=f"{remedy}; {_AGAIN}")
    return DatabaseUnavailable(
        f"The connection to {place} broke off ({code or 'no code'}).",
        remedy=f"Check the server; {_AGAIN}",
    )
