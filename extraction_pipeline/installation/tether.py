"""`python -m extraction_pipeline.installation.tether COMMAND…`: a command that ends with its
starter, however that ends.

The starter keeps our standard input open. When it is closed, or the starter was killed, the
command's whole process group is asked to end, and made to if it does not in time. SIGTERM makes it
end without being asked. We are gone when the whole group is.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress

POLL_SECONDS = 0.1
ASKED_SECONDS = 30.0
GRACE_SECONDS = 3.0

_PR_SET_CHILD_SUBREAPER = 36


def main(command: list[str]) -> int:
    """Run a command; its exit code."""
    _adopt_orphans()
    # The command would inherit it if signals were ignored, as in a shell's background jobs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(
        signal.SIGTERM, lambda number, frame: _signal(os.killpg, child.pid, signal.SIGKILL)
    )
    while child.poll() is None:
        readable, _, _ = select.select([sys.stdin], [], [], POLL_SECONDS)
        if readable and not os.read(sys.stdin.fileno(), 1):
            break
    _end_group(child.pid)
    return child.poll() or 0


def _end_group(group: int) -> None:
    # The leader first: it ends the others in order, and none of them breaks off with a traceback.
    # SIGTERM and not SIGINT: while it is still importing, it ends without one itself.
    _signal(os.kill, group, signal.SIGTERM)
    _wait_until_gone(group, ASKED_SECONDS, leader_only=True)
    for number in (signal.SIGTERM, signal.SIGKILL):
        _wait_until_gone(group, GRACE_SECONDS)
        _signal(os.killpg, group, number)
    _wait_until_gone(group, GRACE_SECONDS)


def _signal(send: Callable[[int, int], None], target: int, number: int) -> None:
    with suppress(ProcessLookupError):
        send(target, number)


def _wait_until_gone(group: int, seconds: float, *, leader_only: bool = False) -> None:
    until = time.monotonic() + seconds
    while _exists(group, leader_only) and time.monotonic() < until:
        time.sleep(POLL_SECONDS)  # a group has nothing that could be waited for


def _exists(group: int, leader_only: bool) -> bool:
    """Whether a process of the group, or its leader, runs. Those that have ended are let go."""
    try:
        while os.waitpid(-group, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        pass
    try:
        (os.kill if leader_only else os.killpg)(group, 0)
    except ProcessLookupError:
        return False
    return True


def _adopt_orphans() -> None:
    """Where a container's first process lets nobody go, ended grandchildren would stay for ever."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
