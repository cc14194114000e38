"""Log files of what a home runs: for this user alone."""

import os
from pathlib import Path
from typing import IO

_OURS = 0o600


def open_log(path: Path) -> IO[bytes]:
    """Open a log to append to; one that others could read is closed to them. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _OURS)
    os.fchmod(descriptor, _OURS)
    return os.fdopen(descriptor, "ab")
