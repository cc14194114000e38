"""A body that is not sent for longer than a bound: whoever waits for its end can count on it."""

import time
from typing import Protocol


class SizedBody(Protocol):
    """What is streamed as the body of a call."""

    def __len__(self) -> int:
        """Bytes in all."""

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes more; empty at the end."""


class BoundedBody:
    """The same body; reading it raises `OSError` once `seconds` have passed since it was made."""

    def __init__(self, body: SizedBody, seconds: float) -> None:
        self._body = body
        self._until = time.monotonic() + seconds

    def __len__(self) -> int:
        return len(self._body)

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes more; empty at the end."""
        if time.monotonic() > self._until:
            raise OSError("the call lasts too long")
        return self._body.read(size)
