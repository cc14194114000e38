"""The folder that is a server's memory, and the lock on it."""

import fcntl
import os
import shutil
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from extraction_pipeline.errors import ConfigurationError

_DATABASE = "server.sqlite3"
_LOCK = "lock"
_OWN = frozenset({_DATABASE, _LOCK, "files", "incoming", "progress"})


@dataclass(frozen=True)
class Holder:
    """The process that holds a state folder. `instance` is what its health route says as well, so
    that who finds a server can tell whether it is the one of the folder."""

    pid: int
    instance: str


class StateFolder:
    """The folder that is the server's memory. Held by one process at a time.

    Raises `ConfigurationError` for a folder that cannot be used, that another server uses, or that
    holds something else: what the server takes for its leftovers, it removes.
    """

    def __init__(self, root: Path) -> None:
        self.database = root / _DATABASE
        self.files = root / "files"
        self.incoming = root / "incoming"
        self.progress = root / "progress"
        self.instance = uuid.uuid4().hex
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            names = {path.name for path in root.iterdir()}
            if _DATABASE not in names and not names <= _OWN:
                raise ConfigurationError(
                    f"The folder {root} holds something else than a batch server's state.",
                    remedy="Name a new or empty folder with --state.",
                )
            self._lock = _lock(root, self.instance)
            shutil.rmtree(self.incoming, ignore_errors=True)
            for folder in (self.files, self.incoming, self.progress):
                folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(
                f"The state folder {root} cannot be used: {error.strerror}.",
                remedy="Name a folder that can be written with --state.",
            ) from None

    def file(self, file_id: str) -> Path:
        """Where a file's content lies."""
        return self.files / file_id

    def batch_progress(self, batch_id: str) -> Path:
        """Where a batch's answers lie while it is worked on."""
        return self.progress / f"{batch_id}.sqlite3"

    def keep(self, content: Path, file_id: str) -> None:
        """Move a finished content to its place, so that a crash leaves all of it or nothing."""
        with content.open("rb") as written:
            os.fsync(written.fileno())
        content.replace(self.file(file_id))
        descriptor = os.open(self.files, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sweep(self, known_file: Callable[[str], bool], open_batches: Iterable[str]) -> None:
        """Remove what a killed process left: contents without a record, ended batches' progress."""
        for content in self.files.iterdir():
            if not known_file(content.name):
                content.unlink()
        unfinished = {self.batch_progress(batch_id).name for batch_id in open_batches}
        for progress in self.progress.iterdir():
            # SQLite's own files beside it may have outlived it.
            if progress.name.removesuffix("-wal").removesuffix("-shm") not in unfinished:
                progress.unlink()

    def close(self) -> None:
        """Let another process have the folder."""
        self._lock.close()


def holder(root: Path) -> Holder | None:
    """Who holds a state folder now; `None` if nobody does, or is only about to."""
    try:
        with (root / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        words = (root / _LOCK).read_text().split()
        return Holder(int(words[0]), words[1]) if len(words) == 2 else None
    except OSError:
        return None
    return None


def _lock(root: Path, instance: str) -> IO[bytes]:
    lock = (root / _LOCK).open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise ConfigurationError(
            f"Another batch server is using the state folder {root}.",
            remedy="Stop it, or name another folder with --state.",
        ) from None
    lock.truncate(0)
    lock.write(f"{os.getpid()} {instance}".encode())
    lock.flush()
    return lock
