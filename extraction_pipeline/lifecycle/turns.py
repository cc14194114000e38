"""Whose turn it is: a provider that lets callers wait does not keep the others from theirs.

A reading that is never answered takes longer than all the time that a tick has. What a provider
took last is remembered in the process, for the ticks that follow. Of a process that has just
started the ledger knows who could not be read by the one before: that one waits too. So only a
provider that begins to hang now costs the others a tick.

A shared folder that is not there any more may hold a reading for good, and the tick that made it.
The ticks after it leave that provider alone.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

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
        self._under_way: Counter[str] = Counter()
        self._lock = Lock()

    @contextmanager
    def reading(self, provider: str) -> Iterator[None]:
        """Around a reading of this provider."""
        with self._lock:
            self._under_way[provider] += 1
            began = self._now()
        try:
            yield
        finally:
            with self._lock:
                self._under_way[provider] -= 1
                ended = self._now()
                self._last[provider] = _Last(ended - began, ended)

    def order(self, providers: Mapping[str, bool], share: float) -> dict[str, bool]:
        """These providers, each with whether it is slow: the quick before the slow, and of each the
        longest unread first. Slow is one whose last reading took its `share` of the time, in
        seconds, or longer: the others would have less than theirs.

        They come with whether the ledger has readings of them that failed: one that was never read
        here counts as slow then, as if from now on. Left out is one of which another tick waits for
        a reading."""
        never = _Last(0.0, float("-inf"))
        with self._lock:
            now = self._now()
            for name, failing in providers.items():
                if failing and name not in self._last:
                    self._last[name] = _Last(float("inf"), now)
            last = {
                one: self._last.get(one, never) for one in providers if not self._under_way[one]
            }
            since = now - LEFT_OUT_SECONDS
        slow = {name: one.seconds >= share and one.ended > since for name, one in last.items()}
        return {
            name: slow[name] for name in sorted(slow, key=lambda one: (slow[one], last[one].ended))
        }
