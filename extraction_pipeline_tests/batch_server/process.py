"""The batch server as a real process, for any test that needs one."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import requests

START_SECONDS = 20.0


class ServerProcess:
    """One server on one state folder; it can be killed and started again on the same port.

    `options` are those of the command line: `delay=0.5` is `--delay 0.5`. `environment` is added
    to this process's own.
    """

    def __init__(
        self, state: Path, options: Mapping[str, object], environment: Mapping[str, str]
    ) -> None:
        self.state = state
        self.root_url = ""
        self._options = {"port": 0, **options}
        self._environment = {**os.environ, **environment}
        self._process: subprocess.Popen[str] | None = None
        self.log = state.with_name(f"{state.name}.log")

    @property
    def base_url(self) -> str:
        """What a provider's endpoint is given."""
        return f"{self.root_url}/v1"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, **options: object) -> None:
        """Start, and wait until it listens. `options` replace those given before."""
        self._options.update(options)
        arguments = [
            part
            for name, value in self._options.items()
            for part in (f"--{name.replace('_', '-')}", str(value))
        ]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "extraction_pipeline.batch_server",
                    "--state",
                    str(self.state),
                    *arguments,
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment,
                text=True,
            )
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], START_SECONDS)
        line = self._process.stdout.readline() if ready else ""
        if not line.startswith("listening on "):
            self.kill()
            raise AssertionError(f"the server did not start: {self.log.read_text()[-2000:]}")
        self.root_url = line.removeprefix("listening on ").strip()
        self._options["port"] = int(self.root_url.rsplit(":", 1)[1])

    def kill(self) -> None:
        """SIGKILL: no chance to tidy up."""
        if self._process is not None:
            self._process.kill()
            self._end()

    def terminate(self, timeout: float = 10.0) -> int:
        """SIGTERM; the exit code."""
        assert self._process is not None
        self._process.terminate()
        try:
            return self._process.wait(timeout)
        finally:
            self.kill()

    def restart(self, **options: object) -> None:
        """Kill and start again on the same port, with changed options if any are given."""
        self.kill()
        self.start(**options)

    def statistics(self, headers: Mapping[str, str] | None = None) -> dict[str, object]:
        """What the server says that it accepted."""
        answer = requests.get(f"{self.root_url}/statistics", headers=headers, timeout=10)
        answer.raise_for_status()
        return dict(answer.json())

    def _end(self) -> None:
        assert self._process is not None
        self._process.wait(10)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None


@contextmanager
def running_server(
    state: Path, *, environment: Mapping[str, str] | None = None, **options: object
) -> Iterator[ServerProcess]:
    """A server that runs until the block ends."""
    server = ServerProcess(state, options, environment or {})
    server.start()
    try:
        yield server
    finally:
        server.kill()


def wait_until(condition, seconds: float = 15.0, pause: float = 0.02):
    """The condition's first true value; fails the test when there is none in time.

    A condition that is dear to look at, or a burden to what it waits for, is given a longer pause.
    """
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(pause)
    return value
