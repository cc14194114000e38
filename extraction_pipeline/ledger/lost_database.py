"""A database that went away, told from whatever error became of it.

Engines that are not ours, such as Dagster's, raise the driver's errors as they are.
"""

from collections.abc import Iterator

from sqlalchemy.exc import InterfaceError, OperationalError

from extraction_pipeline.errors import DatabaseUnavailable

PASSING = ("08", "40", "53", "57P")
"""Classes of PostgreSQL's codes that pass by themselves: connection, deadlock, resources,
shutdown."""

_DISK_FULL = "53100"
_FILES = "58"


def lost_database(error: BaseException) -> DatabaseUnavailable | None:
    """The loss of the database that made `error` come about, if one did. Nothing of the driver's
    sentence is in it."""
    for one in chain_of(error):
        if isinstance(one, DatabaseUnavailable):
            return one
        if isinstance(one, OperationalError | InterfaceError):
            code = getattr(one.orig, "pgcode", None)
            if code is None or code.startswith((*PASSING, _FILES)):
                return _told(code)
    return None


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """An error, what it was raised from, and so on to the first."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def _told(code: str | None) -> DatabaseUnavailable:
    if code == _DISK_FULL:
        return DatabaseUnavailable(
            "The database's disk is full.",
            remedy="Make room; what was under way is repeated safely.",
        )
    return DatabaseUnavailable(
        f"The connection to the database broke off ({code or 'no code'}).",
        remedy="Check the server; what was under way is repeated safely.",
    )
