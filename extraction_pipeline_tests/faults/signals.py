"""Signals of the tests, and of programs that they start."""

import signal


def heed_signals() -> None:
    """Heed what the tests' own shell may have them ignore, which `nohup` and a place in the
    background do: programs would inherit it."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def ignore_ctrl_c() -> None:
    """As a script's shell starts what it puts in the background."""
    heed_signals()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
