"""What Dagster's processes are started with."""

import os
import subprocess
import sys

import pytest

from extraction_pipeline.installation.dagster_processes import MEMORY_KEPT, environment_of_dagster

LARGE_THEN_LESS = """
import psutil
before = psutil.Process().memory_info().rss
for megabytes in (30, 25):
    piece = bytearray(megabytes * 2**20)
    del piece
print((psutil.Process().memory_info().rss - before) // 2**20)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the C library of Linux is asked")
def test_memory_that_was_freed_goes_back_to_the_system() -> None:
    given = {name: one for name, one in os.environ.items() if name not in MEMORY_KEPT}
    ran = subprocess.run(
        [sys.executable, "-c", LARGE_THEN_LESS],
        env=environment_of_dagster(given),
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(ran.stdout) < 10


def test_who_chose_another_amount_is_left_to_it() -> None:
    chosen = dict.fromkeys(MEMORY_KEPT, "1000000")
    assert environment_of_dagster(chosen).items() >= chosen.items()
