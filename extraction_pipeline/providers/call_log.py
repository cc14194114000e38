"""Which calls a piece of work made: what each answer said of itself, in the order of the calls.

The work is what runs in this thread between the begin and the end of `calls_kept`; outside of it
nothing is kept.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

MOST_CALLS = 20
"""Calls that are kept: a search may read a thousand pages, and the last of them will do."""


@dataclass(frozen=True)
class CallMade:
    """One call, by method and path without its query. No status: no whole answer came."""

    call: str
    http_status: int | None
    request_id: str | None


_KEPT: ContextVar[deque[CallMade] | None] = ContextVar("calls of this piece of work", default=None)


@contextmanager
def calls_kept() -> Iterator[None]:
    """Keep the calls that are made until the end, apart from those of any work around it."""
    token = _KEPT.set(deque(maxlen=MOST_CALLS))
    try:
        yield
    finally:
        _KEPT.reset(token)


def keep(call: CallMade) -> None:
    """Add a call that was made."""
    kept = _KEPT.get()
    if kept is not None:
        kept.append(call)


def taken_calls() -> list[CallMade]:
    """The calls that were made since this was asked last."""
    kept = _KEPT.get()
    calls = list(kept or ())
    if kept is not None:
        kept.clear()
    return calls
