"""A body that is not sent for longer than a bound: whoever waits for its end can count on it."""

import time
from collections.abc import Callable
from typing import Protocol


class SizedBody(Protocol):
    """What is streamed as the body of a call."""

    def __len__(self) -> int:
        """Bytes in all."""

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes more; empty at the end."""


class BoundedBody:
    """The same body; reading it raises `OSError` once `seconds` have passed since it was made.

    Before its first byte, `last_look` is called, which may raise. The clock of the day counts as
    well: the other one stands still while a machine is suspended.
    """

    def __init__(self, body: SizedBody, seconds: float, last_look: Callable[[], None]) -> None:
        self._body = body
        self._until = time.monotonic() + seconds
        self._until_of_day = time.time() + seconds
        self._last_look: Callable[[], None] | None = last_look

    def __len__(self) -> int:
        return len(self._body)

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes more; empty at the end."""
        piece = self._body.read(size)
        if self._last_look is not None:
            self._last_look()
            self._last_look = None
        if time.monotonic() > self._until or time.time() > self._until_of_day:
            raise OSError("the call lasts too long")
        return piece
