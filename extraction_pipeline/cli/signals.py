"""What Ctrl-C, a supervisor's SIGTERM and a closed terminal (SIGHUP) do to a command.

While code is imported nothing was started, and a signal ends the process at once: raised in the
middle of an import, KeyboardInterrupt can be lost or come out as something else. From then on each
is a KeyboardInterrupt, so that what was started is ended in order.

In the background of a script a shell has Ctrl-C ignored. Dagster, after each run that it executes,
gives SIGTERM the handler of SIGINT: so that one is ignored by a handler of ours, which knows them
apart.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MESSAGE = "Interrupted. What a provider has is kept and found again."

_received: list[int] = []


def end_at_once() -> None:
    """From here on a signal ends the process. One that it was told to ignore stays ignored."""
    for number in ENDING_SIGNALS:
        if not _is_ignored(number):
            signal.signal(number, _exit)


def end_in_order(*, even_if_ignored: bool = False) -> None:
    """From here on the first signal is a KeyboardInterrupt, and so is every further Ctrl-C.

    `even_if_ignored` makes it heed SIGINT in the background too, where a shell has it ignored.
    """
    for number in ENDING_SIGNALS:
        if not _is_ignored(number) or (even_if_ignored and number == signal.SIGINT):
            signal.signal(number, _raise)
        elif number == signal.SIGINT:
            signal.signal(number, _raise_but_for_ctrl_c)


def _is_ignored(number: int) -> bool:
    handler = signal.getsignal(number)
    ours = number == signal.SIGINT and handler is _raise_but_for_ctrl_c
    return ours or handler is signal.SIG_IGN


@contextmanager
def importing() -> Iterator[None]:
    """Around the imports of a command: after them, what it starts is ended in order."""
    yield
    if signal.getsignal(signal.SIGTERM) is _exit:
        end_in_order()


def interrupted() -> bool:
    """Whether a signal came."""
    return bool(_received)


def exit_code() -> int:
    """What a shell makes of a process that the signal ended: 130 for Ctrl-C."""
    return 128 + (_received[0] if _received else signal.SIGINT)


def _exit(number: int, frame: FrameType | None) -> None:
    os.write(2, f"{MESSAGE}\n".encode())
    os._exit(128 + number)


def _raise(number: int, frame: FrameType | None) -> None:
    again = bool(_received)
    _received.append(number)
    # A closing terminal and some supervisors send theirs twice; that must not break off the ending.
    if not again or number == signal.SIGINT:
        raise KeyboardInterrupt


def _raise_but_for_ctrl_c(number: int, frame: FrameType | None) -> None:
    if number != signal.SIGINT:
        _raise(number, frame)
