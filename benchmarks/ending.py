"""How a benchmark ends: whoever ends it, nothing that it started stays."""

import sys
from collections.abc import Callable
from contextlib import suppress

import psutil

from extraction_pipeline.cli.signals import MESSAGE, end_at_once, end_in_order, exit_code

PATIENCE_SECONDS = 10.0
"""For a process that was asked to end."""


def ended_in_order(main: Callable[[], int | None]) -> None:
    """Do `main` and exit with what it gives. Ctrl-C, and SIGTERM as `timeout` sends it, break it
    off, and what it opened is closed in order; processes that are left after that are ended."""
    end_in_order(even_if_ignored=True)
    try:
        code = main()
    except KeyboardInterrupt:
        print(MESSAGE.split(".")[0], file=sys.stderr)  # noqa: T201
        code = exit_code()
    finally:
        end_children()
        end_at_once()
    sys.exit(code)


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
