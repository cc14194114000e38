"""The time of an event, for pages that tell the events of an asset apart by their millisecond.

Dagster's UI lists one event for each millisecond; of those that share one it shows the last. A
write of many records has fewer milliseconds than records.
"""

import time
from collections.abc import Callable
from threading import Lock

from dagster import AssetKey

AHEAD_AT_MOST_MS = 60_000


class EventClock:
    """Gives each event of an asset a millisecond of its own, in the order in which they are asked
    for: the present one, or else the next that is free.

    It runs ahead while records are written faster than a thousand a second, by a minute at most.
    After that, or after the system's clock was put back, it begins again at the present.
    `now` gives seconds since 1970.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._last: dict[AssetKey, int] = {}
        self._lock = Lock()

    def stamp(self, asset: AssetKey) -> float:
        """Seconds since 1970, for the next event of this asset."""
        with self._lock:
            now = int(self._now() * 1000)
            free = self._last.get(asset, 0) + 1
            taken = free if now < free <= now + AHEAD_AT_MOST_MS else now
            self._last[asset] = taken
        # In its middle, because Dagster cuts, and a float may lie just below the millisecond.
        return (taken + 0.5) / 1000
