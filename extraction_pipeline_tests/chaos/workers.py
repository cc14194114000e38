"""The processes of a campaign, as the campaign sees them: started, killed, ended."""

import json
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

START_SECONDS = 90.0
KILLED = -signal.SIGKILL


@dataclass
class Workers:
    """Processes made by the zygote at the other end of `channel`."""

    channel: socket.socket
    alive: set[int] = field(default_factory=set)
    _last: int = 0
    _waiting: bytes = b""

    def start(self, role: str, crash_at: Mapping[str, str], **arguments: Any) -> int:
        """Start a process; its number. `crash_at` is added to its environment."""
        self._last += 1
        order = {
            "id": self._last,
            "role": role,
            "environment": dict(crash_at),
            "arguments": arguments,
        }
        self.channel.sendall(json.dumps(order).encode() + b"\n")
        self.alive.add(self._last)
        return self._last

    def kill(self, number: int) -> None:
        """SIGKILL, if it is still there: no chance to tidy up."""
        self.channel.sendall(json.dumps({"kill": number}).encode() + b"\n")

    def ended(self, seconds: float) -> Iterator[tuple[int, int]]:
        """(number, exit code) of processes that have ended, waiting so long for the first."""
        ready, _, _ = select.select([self.channel], [], [], seconds)
        if not ready:
            return
        came = self.channel.recv(1 << 16)
        if not came:
            raise RuntimeError("the process that makes the others has ended")
        *lines, self._waiting = (self._waiting + came).split(b"\n")
        for line in map(json.loads, lines):
            self.alive.discard(line["id"])
            yield line["id"], line["status"]


@contextmanager
def warm_workers(environment: Mapping[str, str], log: Path) -> Iterator[Workers]:
    """Everything loaded once, and ready to be forked; all processes end with the block."""
    ours, theirs = socket.socketpair()
    with log.open("ab") as out, ours:
        zygote = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "extraction_pipeline_tests.chaos.zygote",
                str(theirs.fileno()),
            ],
            env=environment,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
        theirs.close()
        try:
            ready, _, _ = select.select([ours], [], [], START_SECONDS)
            if not ready or not ours.recv(3):
                raise RuntimeError(f"the workers could not be loaded, see {log}")
            yield Workers(ours)
        finally:
            ours.close()
            _end(zygote)


def _end(zygote: "subprocess.Popen[bytes]") -> None:
    """Wait for its end, which follows that of the channel and takes time on a busy machine."""
    try:
        zygote.wait(START_SECONDS)
    except subprocess.TimeoutExpired:
        zygote.kill()
        zygote.wait()
