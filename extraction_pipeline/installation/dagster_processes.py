"""Dagster's UI and daemon as processes of this one: they end when it does."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import psutil

PACKAGES = str(Path(__file__).parent.parent.parent)
"""The folder that this package lies in."""

TETHER_SECONDS = 45.0
"""Longer than the tether itself takes to make Dagster end."""

ROLES: Mapping[str, str] = {
    "dagster_webserver": "the Dagster webserver",
    "dagster._daemon": "the Dagster daemon",
}
"""What is watched, by a word of its command line."""


MEMORY_KEPT = {"MALLOC_TRIM_THRESHOLD_": "131072"}
"""Bytes of freed memory that the C library keeps. By default it keeps as much as twice the largest
piece that was freed, which is the text of all statuses of an asset: 200 MB with 300,000 keys."""


class DagsterProcesses:
    """Running `dagster dev`. `keep` is a file, such as a lock, that stays open until all ended."""

    def __init__(self, host: str, port: int, keep: IO[bytes]) -> None:
        self._watched: dict[str, psutil.Process] = {}
        self._tether = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "extraction_pipeline.installation.tether"),
                *(sys.executable, "-m", "extraction_pipeline.installation.quiet_dagster", "dev"),
                *("--module-name", "extraction_pipeline.definitions"),
                *("--working-directory", PACKAGES),
                *("--host", host),
                *("--port", str(port)),
            ],
            env=environment_of_dagster(os.environ),
            stdin=subprocess.PIPE,
            pass_fds=[keep.fileno()],
            start_new_session=True,
        )

    def ended(self) -> str | None:
        """The name of a process that ended by itself."""
        for role, process in self._watched.items():
            if not _runs(process):
                return ROLES[role]
        if self._tether.poll() is not None:
            return f"Dagster (exit code {self._tether.returncode})"
        if len(self._watched) < len(ROLES):
            self._watched |= _find(self._tether.pid, ROLES)
        return None

    def stop(self) -> None:
        """Ask them to end, and return when all have. Ctrl-C meanwhile makes them end at once."""
        assert self._tether.stdin is not None
        try:
            self._tether.stdin.close()
            self._tether.wait(TETHER_SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            self._tether.terminate()
            self._tether.wait()


def environment_of_dagster(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment in which a file of the current folder hides no module that is installed, and
    memory that was freed goes back to the system."""
    # While Dagster loads definitions it leaves out the first place of all, which it takes for that
    # of a script. That must not be one of the user's.
    places = [PACKAGES, *filter(None, [environ.get("PYTHONPATH")])]
    return {**MEMORY_KEPT, **environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(places)}


def _find(parent: int, words: Sequence[str] | Mapping[str, str]) -> dict[str, psutil.Process]:
    found = {}
    with suppress(psutil.Error):
        for process in psutil.Process(parent).children(recursive=True):
            with suppress(psutil.Error):
                line = process.cmdline()
                found.update({word: process for word in words if word in line})
    return found


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
