"""Whose turn it is: a provider that lets callers wait does not keep the others from theirs.

A reading that is never answered takes longer than all the time that a tick has. What a provider
took last is remembered in the process, for the ticks that follow; after a start nobody is known to
be slow, and each costs one tick at most.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock

SLOW_SECONDS = 1.0
"""A provider whose last reading took as long comes after all that are quicker."""

LEFT_OUT_SECONDS = 60.0
"""One that quicker ones have left no time for so long is no longer kept behind them."""


@dataclass(frozen=True)
class _Last:
    seconds: float
    ended: float


class Turns:
    """What the last reading of each provider took. `now` gives seconds that never go back."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._last: dict[str, _Last] = {}
        self._lock = Lock()

    def took(self, provider: str, seconds: float) -> None:
        """A reading of this provider has ended."""
        with self._lock:
            self._last[provider] = _Last(seconds, self._now())

    def order(self, providers: Iterable[str]) -> dict[str, bool]:
        """These providers, each with whether it is slow: the quick before the slow, and of each the
        longest unread first."""
        never = _Last(0.0, float("-inf"))
        with self._lock:
            last = {one: self._last.get(one, never) for one in providers}
            since = self._now() - LEFT_OUT_SECONDS
        slow = {
            name: one.seconds >= SLOW_SECONDS and one.ended > since for name, one in last.items()
        }
        return {
            name: slow[name] for name in sorted(slow, key=lambda one: (slow[one], last[one].ended))
        }
