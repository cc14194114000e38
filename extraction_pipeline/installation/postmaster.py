"""A PostgreSQL server as its data folder tells of it: the file postmaster.pid."""

import signal
from dataclasses import dataclass
from pathlib import Path

import psutil

from extraction_pipeline.installation.ending import end_process

FAST_STOP_SECONDS = 30.0
IMMEDIATE_STOP_SECONDS = 5.0

_SOCKET_FOLDER_LINE = 4
_STATUS_LINE = 7


@dataclass(frozen=True)
class Postmaster:
    """A server process that wrote its file into a data folder; it may have ended since."""

    pid: int
    data: Path
    socket_folder: Path | None
    ready: bool

    @property
    def alive(self) -> bool:
        """Whether this process is a server over this folder: another may have got its number."""
        try:
            process = psutil.Process(self.pid)
            return (
                process.status() != psutil.STATUS_ZOMBIE
                and process.name().startswith("postgres")
                and Path(process.cwd()) == self.data.resolve()
            )
        except psutil.Error:
            return False

    def stop(self) -> None:
        """End it, and return when it is gone. Sessions break off; what is committed stays."""
        # By itself a fast stop takes as long as writing out what is in memory. What an immediate
        # one leaves undone, the next start repairs.
        end_process(
            self.pid,
            lambda: self.alive,
            (signal.SIGINT, FAST_STOP_SECONDS),
            (signal.SIGQUIT, IMMEDIATE_STOP_SECONDS),
        )


def read_postmaster(data: Path) -> Postmaster | None:
    """What the folder's file says; `None` where there is none, or one that is being written."""
    try:
        lines = (data / "postmaster.pid").read_text(errors="surrogateescape").splitlines()
        pid = int(lines[0])
    except (OSError, ValueError, IndexError):
        return None
    lines += [""] * (_STATUS_LINE + 1 - len(lines))
    socket_folder = lines[_SOCKET_FOLDER_LINE].strip()
    return Postmaster(
        pid=pid,
        data=data,
        socket_folder=Path(socket_folder) if socket_folder else None,
        ready=lines[_STATUS_LINE].strip() == "ready",
    )
