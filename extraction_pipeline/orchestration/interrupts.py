"""Signals that come while Dagster executes a run in this process.

Dagster takes the handlers for the time of a run, hears a signal at certain moments of it, and
forgets one that comes after the last of them: Ctrl-C would be in vain.
"""

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

ENDING = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def no_signal_lost() -> Iterator[None]:
    """Hand a signal that came in a block to the handlers of before it, once it is left without an
    exception. Does nothing outside the main thread, where no handler is ever replaced."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard, told = socket.socketpair()
    with heard, told:
        heard.setblocking(False)
        told.setblocking(False)
        before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
        came = b""
        with suppress(BlockingIOError):
            came = heard.recv(4096)
    for number in ENDING:
        if number in came:
            signal.raise_signal(number)
