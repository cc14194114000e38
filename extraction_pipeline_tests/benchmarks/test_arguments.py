"""What a benchmark is told on its command line is refused in one line where it makes no sense."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("throughput", "10", "--workers", "0"), "argument --workers: 0 is less than 1"),
        (("hosts", "--keep", "docs"), "argument --keep: docs is not empty"),
        (("hosts", "--keep", "README.md/logs"), "argument --keep: README.md/logs: Not a directory"),
        (("backfill", "10", "--scattered", "50"), "--scattered is a number from 0 to that of"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused(words: tuple[str, ...], said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{words[0]}", *words[1:]],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]
