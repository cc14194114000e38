"""How a benchmark ends: whoever ends it, nothing that it started stays."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import psutil

from extraction_pipeline.cli.signals import (
    ENDING_SIGNALS,
    MESSAGE,
    end_at_once,
    end_in_order,
    exit_code,
    interrupted,
)

PATIENCE_SECONDS = 5.0
"""For a benchmark that is broken off, and for each process of it that is asked to end."""


def ended_in_order(main: Callable[[], int | None], patience: float = PATIENCE_SECONDS) -> None:
    """Do `main` and exit with what it gives. Ctrl-C, and SIGTERM as `timeout` sends it, break it
    off, and what it opened is closed in order; processes that are left after that, or after
    `patience`, are ended."""
    end_in_order(even_if_ignored=True)
    _end_children_after_a_signal(patience)
    try:
        code = main()
    except BaseException:
        if not interrupted():
            raise
        print(MESSAGE.split(".")[0], file=sys.stderr)  # noqa: T201
        code = exit_code()
    finally:
        end_children()
        end_at_once()
    sys.exit(code)


def _end_children_after_a_signal(patience: float) -> None:
    """Python heeds a signal between two steps of the main thread, and a statement that the database
    works on for minutes is one step: it ends with the session that works on it."""
    heard, told = socket.socketpair()
    told.setblocking(False)
    signal.set_wakeup_fd(told.detach(), warn_on_full_buffer=False)

    def wait() -> None:
        while heard.recv(1)[0] not in ENDING_SIGNALS:
            pass
        time.sleep(patience)
        end_children()

    threading.Thread(target=wait, daemon=True).start()


@contextmanager
def temporary_folder(name: str) -> Iterator[Path]:
    """A new folder, which is gone after the block. Of hundreds of thousands of files that takes a
    minute: where the block is broken off, nobody waits for it, and a process that ends with it does
    it."""
    folder = Path(mkdtemp(prefix=f"extraction-{name}-"))
    try:
        yield folder
        rmtree(folder)
    except BaseException:
        _remove_meanwhile(folder)
        raise


def _remove_meanwhile(folder: Path) -> None:
    subprocess.run(
        ["sh", "-c", 'rm -rf -- "$1" &', "sh", str(folder)],
        env={"PATH": os.defpath},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # no child of ours, and none that Ctrl-C reaches
        check=False,
    )


def end_children() -> None:
    """End every process that this one, or one of its own, has started."""
    left = psutil.Process().children(recursive=True)
    for process in left:
        with suppress(psutil.Error):
            process.terminate()
    _, deaf = psutil.wait_procs(left, PATIENCE_SECONDS)
    for process in deaf:
        with suppress(psutil.Error):
            process.kill()
