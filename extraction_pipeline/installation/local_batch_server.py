"""The local batch server as a process that the commands of one home share.

<home>/batch_server            the server's own folder; its lock names the process that holds it
<home>/batch_server.port       where it listens, while it runs
<home>/batch_server.log        what it says
<home>/batch_server.webhooks   whom it tells of the ends of batches, if anybody (`local_receiver`)
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import requests

from extraction_pipeline.batch_server.state_folder import Holder, holder
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.installation.ending import POLL_SECONDS, end_process, is_alive
from extraction_pipeline.installation.log_file import open_log
from extraction_pipeline.installation.sharing import shared

START_SECONDS = 30.0
ANSWER_SECONDS = 2.0
STOP_SECONDS = 10.0
KILL_SECONDS = 5.0


@contextmanager
def local_batch_server(state: Path) -> Iterator[str]:
    """The base URL of a batch server over `state`: the one that runs already, or one started here.

    The last process that uses it ends it. It keeps its state, so a batch that was not done goes on
    with the next start. Raises `ConfigurationError` if none can be started.
    """
    with shared(state, LocalBatchServer(state)) as base_url:
        yield base_url


def batch_server_runs(state: Path) -> bool:
    """Whether a server holds the state folder."""
    return holder(state) is not None


def webhooks_file(state: Path) -> Path:
    """What the server over `state` reads to know whom to tell of the ends of batches."""
    return state.with_name(f"{state.name}.webhooks")


class LocalBatchServer:
    """The server over one state folder, as a service to share."""

    def __init__(self, state: Path) -> None:
        self._state = state
        # Beside the state folder, which is the server's own.
        self._port_file = state.with_name(f"{state.name}.port")
        self._log = state.with_name(f"{state.name}.log")
        self._child: subprocess.Popen[bytes] | None = None

    def start(self, mutex: int) -> str:
        """The base URL of the running server; starts it if none runs, or none that answers."""
        base_url = self._base_url()
        if base_url is not None:
            return base_url
        self.stop()
        with open_log(self._log) as log:
            before = log.seek(0, os.SEEK_END)
            self._child = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "extraction_pipeline.batch_server"),
                    *("--state", str(self._state)),
                    *("--port", "0"),
                    *("--port-file", str(self._port_file)),
                    *("--webhooks", str(webhooks_file(self._state))),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Its own group: Ctrl-C reaches it through us, after those who use it have ended.
                start_new_session=True,
            )
        until = time.monotonic() + START_SECONDS
        while self._child.poll() is None and time.monotonic() < until:
            base_url = self._base_url()
            if base_url is not None:
                return base_url
            time.sleep(POLL_SECONDS)  # it tells by its file alone that it listens
        raise ConfigurationError(
            f"The batch server did not start: {self._cause(before)}",
            remedy=f"Its log is {self._log}; to use another one, set EXTRACTION_LOCAL_BASE_URL.",
        )

    def stop(self) -> None:
        """End the server, and return when it is gone. One that a person started is left alone."""
        if self._child is not None:
            self._end(self._child.pid)
            self._child.wait()
            self._child = None
        found = holder(self._state)
        if found is not None and self._is_ours(found):
            self._end(found.pid)
        self._port_file.unlink(missing_ok=True)

    def _end(self, pid: int) -> None:
        end_process(
            pid,
            lambda: is_alive(pid),
            (signal.SIGTERM, STOP_SECONDS),
            (signal.SIGKILL, KILL_SECONDS),
        )

    def _is_ours(self, found: Holder) -> bool:
        """Whether a command of this home started the holder: then it was told our port file."""
        try:
            return str(self._port_file) in psutil.Process(found.pid).cmdline()
        except psutil.Error:
            return False

    def _base_url(self) -> str | None:
        """Where the server of this folder answers. Another one on an old port is not taken for it:
        a server knows its instance only if it holds the folder."""
        try:
            # First the port: while a server starts there is none, and a look at the lock could
            # come in its way.
            origin = f"http://127.0.0.1:{int(self._port_file.read_text())}"
            found = holder(self._state)
            if found is None:
                return None
            answer = requests.get(f"{origin}/health", timeout=ANSWER_SECONDS)
            answer.raise_for_status()
            proven = answer.json()["instance"] == found.instance
        except (OSError, ValueError, KeyError, TypeError, requests.RequestException):
            return None
        return f"{origin}/v1" if proven else None

    def _cause(self, before: int) -> str:
        """The last thing that it wrote about an error of this start."""
        with self._log.open("rb") as log:
            log.seek(before)
            lines = log.read().decode(errors="replace").splitlines()
        errors = [line.removeprefix("Error: ") for line in lines if "Error: " in line]
        return errors[-1] if errors else "it does not answer."
