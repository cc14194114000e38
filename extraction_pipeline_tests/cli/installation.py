"""A home of its own and a corpus, in which commands are typed: real processes throughout."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from extraction_pipeline_tests.batch_server.process import wait_until
from extraction_pipeline_tests.cli.warm_command import WarmCommand, run_warm
from extraction_pipeline_tests.faults.signals import heed_signals

LOOK_SECONDS = 0.2
"""Between two looks at all processes of the machine, each of which is work for it."""
V1 = "  v1: {provider: local, model: rules-baseline, max_attempts: 2}\n"
V2 = "  v2: {provider: local, model: rules-baseline, max_attempts: 2, max_output_tokens: 2048}\n"
COLLECTION = """\
name: letters
description: Fictional letters.
document_type: discharge_summary
source: {{kind: folder, path: "{documents}"}}
active_version: v1
extraction_versions:
"""


class Installation:
    """A home, a collection of fictional letters, and the commands of a person.

    They are typed in `folder`. `environment` is added to a clean one.
    """

    def __init__(self, root: Path, letters: int, **environment: str) -> None:
        self.folder = root
        self._warm: list[WarmCommand] = []
        self.home = root / "home"
        self.log = root / "log"
        self.yaml = root / "collections" / "letters.yaml"
        documents = root / "documents"
        documents.mkdir()
        self.yaml.parent.mkdir()
        for number in range(letters):
            (documents / f"letter-{number:02}.txt").write_text(
                f"DISCHARGE SUMMARY\n\nRecord {number}\n\nDISCHARGE DIAGNOSES:\n"
                f"1. Fictional condition {number}.\n"
            )
        self.yaml.write_text(COLLECTION.format(documents=documents) + V1)
        self.environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("EXTRACTION_", "DAGSTER_", "OPENAI_"))
            },
            "EXTRACTION_HOME": str(self.home),
            "EXTRACTION_COLLECTIONS": str(self.yaml.parent),
            "EXTRACTION_POLL_SECONDS": "0.5",
            **environment,
        }

    def declare_second_version(self) -> None:
        self.yaml.write_text(self.yaml.read_text() + V2)

    def activate_second_version(self) -> None:
        text = self.yaml.read_text()
        self.yaml.write_text(text.replace("active_version: v1", "active_version: v2"))

    def command(self, *words: str) -> str:
        """Run a command to its good end; its standard output."""
        done = self.try_command(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def try_command(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command to whatever end."""
        return run_warm(words, self.folder, self.environment, self.folder / "said", 120)

    @contextmanager
    def started(self, *words: str) -> Iterator[WarmCommand]:
        """A command that goes on by itself and writes to `log`, in a process that has imported it
        already. At the end of the block it gets Ctrl-C if it is there yet, and whatever it left
        behind is killed."""
        command = WarmCommand(words, self.folder, self.environment, self.log, self.log)
        self._warm.append(command)
        with self._ended(command):
            yield command

    @contextmanager
    def started_from_nothing(
        self, *words: str, beginning: Callable[[], None] = heed_signals
    ) -> Iterator["subprocess.Popen[bytes]"]:
        """As `started`, but as a person's shell starts it: from its first import on. `beginning` is
        done in its process before it is called."""
        with self.log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "extraction_pipeline.cli", *words],
                cwd=self.folder,
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=beginning,
            )
        with self._ended(process):
            yield process

    @contextmanager
    def _ended(self, process: "WarmCommand | subprocess.Popen[bytes]") -> Iterator[None]:
        try:
            yield
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(60)
            self.kill_processes()

    @contextmanager
    def at_a_terminal(self, *words: str) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
        """A command at a terminal of its own, and the terminal: what is written there is typed, and
        a Ctrl-C reaches every process that the command has not set apart."""
        terminal, side = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "extraction_pipeline.cli", *words],
            env=self.environment,
            stdin=side,
            stdout=side,
            stderr=side,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(side)
        try:
            yield process, terminal
        finally:
            os.close(terminal)
            self.kill_processes()
            process.wait(10)

    def kill_processes(self) -> None:
        """SIGKILL to all that runs in this home, as when a machine goes down."""
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def wait_for(self, word: str) -> int:
        """The process that `process_of` finds, once there is one."""
        return int(wait_until(lambda: self.process_of(word), 60, LOOK_SECONDS))

    def wait_for_none(self, *words: str) -> None:
        """Return when there is no such process, or none at all if no word is given."""
        wait_until(
            lambda: not (any(map(self.process_of, words)) if words else self.processes()),
            40,
            LOOK_SECONDS,
        )

    def process_of(self, word: str) -> int:
        """A process of this home by a word of its command line or the name of its program; 0 for
        none."""
        for pid in self.processes():
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                if word in process.cmdline() or process.name() == word:
                    return pid
        return 0

    def processes(self) -> list[int]:
        """Every process of this machine that was started with, or in, this home."""
        mark = str(self.home)
        # A process that was forked shows the environment of the one that it was forked from.
        found = [command.pid for command in self._warm if command.poll() is None]
        for process in psutil.process_iter():
            with suppress(psutil.Error):  # it has ended meanwhile, or is nothing of ours
                told = [*process.cmdline(), *process.environ().values()]
                ended = process.status() == psutil.STATUS_ZOMBIE
                if any(mark in one for one in told) and not ended and process.pid != os.getpid():
                    found.append(process.pid)
        return found
