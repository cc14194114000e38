"""Signals of programs that tests start."""

import signal


def heed_signals() -> None:
    """Before a program begins: heed what the tests' own shell may have them ignore, which `nohup`
    and a place in the background do."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
