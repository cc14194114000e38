"""Ending processes that need not be children of this one."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

POLL_SECONDS = 0.05
"""Another's process gives no signal when it ends or gets ready."""


def is_alive(pid: int) -> bool:
    """Whether a process runs. One that has ended and that nobody asked for the outcome does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def end_process(pid: int, alive: Callable[[], bool], *steps: tuple[signal.Signals, float]) -> None:
    """Send a process one signal after the other, each with seconds to end in, until it has ended.

    `alive` says whether the number still is that process's.
    """
    for number, seconds in steps:
        if not alive():
            return
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        until = time.monotonic() + seconds
        while alive() and time.monotonic() < until:
            time.sleep(POLL_SECONDS)  # it may be no child of ours to wait for
