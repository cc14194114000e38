"""A command in a process of its own that has imported everything already.

Starting Python and importing Dagster costs more than most commands do. So one process that did both
is kept (`multiprocessing`'s fork server), and each command is a fork of it. What the command starts
is started as ever.
"""

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import extraction_pipeline.cli

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(
    [
        "extraction_pipeline.cli.demonstration",
        "extraction_pipeline.cli.group",
        "extraction_pipeline.cli.one_collection",
        "extraction_pipeline.cli.standing",
        __name__,
    ]
)


_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
"""Append, since both outputs may go to one file."""


class WarmCommand:
    """A command under way, with what tests use of `subprocess.Popen`."""

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        said: Path,
        told: Path,
    ) -> None:
        self._words = list(words)
        for file in (said, told):
            file.touch()
        self._process = _forks.Process(
            target=_be_the_command, args=(self._words, folder, dict(environment), said, told)
        )
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises `subprocess.TimeoutExpired`."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._words, timeout or 0)
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()


def run_warm(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], output: Path, seconds: float
) -> "subprocess.CompletedProcess[str]":
    """Run a command in `folder` to whatever end; what it prints goes through files in `output`.

    Raises `subprocess.TimeoutExpired`, after it was killed, when it lasts longer than `seconds`.
    """
    output.mkdir(exist_ok=True)
    said, told = output / "stdout", output / "stderr"
    command = WarmCommand(words, folder, environment, said, told)
    try:
        code = command.wait(seconds)
    finally:
        command.kill()
    return subprocess.CompletedProcess(list(words), code, said.read_text(), told.read_text())


def _be_the_command(
    words: list[str], folder: Path, environment: dict[str, str], said: Path, told: Path
) -> None:
    for number, file, flags in (
        (0, Path(os.devnull), os.O_RDONLY),
        (1, said, _WRITE),
        (2, told, _WRITE),
    ):
        opened = os.open(file, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    called = Path(extraction_pipeline.cli.__file__).with_name("__main__.py")
    sys.argv = [str(called), *words]
    try:
        extraction_pipeline.cli.main()
    finally:
        # A fork of the server ends without what an interpreter does at its end.
        atexit._run_exitfuncs()
