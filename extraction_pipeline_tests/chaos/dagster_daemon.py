"""The daemon as it is installed: a process that starts a code server and run workers of its own.

It takes many seconds to load, so most of a campaign is done by processes that are forked; this one
runs beside them, as a second daemon would by mistake.
"""

import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

LIVES_SECONDS = (20.0, 45.0)
"""The shortest and the longest time until one of its processes is killed."""


@dataclass
class DagsterDaemon:
    """`dagster-daemon run`, started again whenever it was killed."""

    environment: Mapping[str, str]
    log: Path
    seed: int
    _drawn: random.Random = field(init=False)
    _process: subprocess.Popen[bytes] | None = None
    _all: set[psutil.Process] = field(default_factory=set)
    _dies_at: float = 0.0
    alone: bool = False
    """Whether the forked daemon is to rest while this one runs."""

    def __post_init__(self) -> None:
        """Draw from the seed."""
        self._drawn = random.Random(f"{self.seed}/dagster-daemon")

    def keep_running(self) -> None:
        """Start it where it is not running: runs that it has queued are begun by nobody else."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        assert self._process is not None
        with suppress(psutil.Error):
            parent = psutil.Process(self._process.pid)
            self._all.update([parent, *parent.children(recursive=True)])

    def turn(self) -> str | None:
        """Keep it running, and kill what is due; what was killed, if anything was."""
        self.keep_running()
        if time.monotonic() < self._dies_at:
            return None
        self._dies_at = time.monotonic() + self._drawn.uniform(*LIVES_SECONDS)
        living = sorted(filter(_runs, self._all), key=lambda one: one.pid)
        workers = [one for one in living if _role(one) == "real run worker"]
        victim = self._drawn.choice(workers or [one for one in living if _role(one)])
        role = _role(victim)
        with suppress(psutil.Error):
            victim.kill()
        return role

    def stop(self) -> None:
        """End it and all that it has started."""
        for one in self._all:
            with suppress(psutil.Error):
                one.kill()
        if self._process is not None:
            self._process.wait()
        psutil.wait_procs(list(self._all), timeout=10)

    def _start(self) -> None:
        self.alone = self._drawn.random() < 0.5
        self._dies_at = time.monotonic() + self._drawn.uniform(*LIVES_SECONDS)
        words = ["-m", "dagster._daemon", "run", "-m", "extraction_pipeline.definitions"]
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                [sys.executable, *words],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )


def _role(process: psutil.Process) -> str | None:
    """What one of its processes is, by its command line; `None` for a helper of Python's own."""
    with suppress(psutil.Error):
        line = process.cmdline()
        if "execute_run" in line:
            return "real run worker"
        if "grpc" in line:
            return "real code server"
        if "dagster._daemon" in line:
            return "real daemon"
    return None


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


@contextmanager
def dagster_daemon(environment: Mapping[str, str], log: Path, seed: int) -> Iterator[DagsterDaemon]:
    """The daemon; with the block, all its processes end. It is started at its first turn."""
    daemon = DagsterDaemon(environment, log, seed)
    try:
        yield daemon
    finally:
        daemon.stop()
