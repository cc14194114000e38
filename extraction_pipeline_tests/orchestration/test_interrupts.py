"""A signal that comes while Dagster holds the handlers is heeded after it."""

import os
import signal
from collections.abc import Iterator

import pytest
from dagster._utils.interrupts import capture_interrupts

from extraction_pipeline.orchestration.interrupts import no_signal_lost


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Those of before, which Dagster changes."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_dagster_keeps_is_heeded_after_the_run(number: signal.Signals) -> None:
    reached = False
    with pytest.raises(KeyboardInterrupt), no_signal_lost():
        with capture_interrupts():
            os.kill(os.getpid(), number)
        reached = True
    assert reached


def test_one_that_is_ignored_stays_so_and_none_is_none() -> None:
    signal.signal(signal.SIGINT, lambda *_: None)
    with no_signal_lost(), capture_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
    with no_signal_lost():
        pass


def test_an_exception_of_the_block_passes_as_it_is() -> None:
    with pytest.raises(LookupError), no_signal_lost():
        with capture_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
        raise LookupError
