"""A process that has loaded everything once, and makes the others by fork.

Loading Dagster costs four seconds of a processor, a fork some milliseconds. It makes no connection
and starts no thread of Python's before it forks. It ends when who started it does, and all with it.
"""

import ctypes
import json
import os
import random
import select
import signal
import socket
import sys
import threading
import traceback
from contextlib import suppress
from typing import Any

from extraction_pipeline_tests.chaos.roles import ROLES, prepare

GLANCE_SECONDS = 0.01
_PR_SET_PDEATHSIG = 1
"""Of Linux: a process ends with the one that made it, however that ended."""


def main(channel: socket.socket) -> None:
    """Take orders and tell of ends, a line of JSON each, until the channel is closed."""
    prepare()
    assert threading.active_count() == 1
    children: dict[int, int] = {}
    channel.sendall(b"{}\n")
    waiting = b""
    while True:
        ready, _, _ = select.select([channel], [], [], GLANCE_SECONDS)
        if ready:
            came = b""
            with suppress(ConnectionResetError):
                came = channel.recv(1 << 16)
            if not came:
                break
            *orders, waiting = (waiting + came).split(b"\n")
            for order in map(json.loads, orders):
                _obey(order, children, channel)
        _tell_ends(children, channel)
    for pid in children.values():
        os.kill(pid, signal.SIGKILL)


def _obey(order: dict[str, Any], children: dict[int, int], channel: socket.socket) -> None:
    if "kill" in order:
        if order["kill"] in children:  # not reaped, so the number is still its own
            os.kill(children[order["kill"]], signal.SIGKILL)
        return
    pid = os.fork()
    if pid == 0:
        channel.close()
        _be(order)
    children[order["id"]] = pid


def _be(order: dict[str, Any]) -> None:
    code = 70
    try:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches it through its parents' end
        random.seed()
        os.environ.update(order["environment"])
        code = ROLES[order["role"]](**order["arguments"])
    except BaseException:  # noqa: BLE001 - whatever it was, the log shows it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _tell_ends(children: dict[int, int], channel: socket.socket) -> None:
    for number, pid in list(children.items()):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            del children[number]
            said = {"id": number, "status": os.waitstatus_to_exitcode(status)}
            channel.sendall(json.dumps(said).encode() + b"\n")


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
