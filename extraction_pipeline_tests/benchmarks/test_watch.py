"""What a benchmark tells of processes."""

import subprocess
import sys
import threading
import time

import psutil

from benchmarks.watch import cpu_seconds


def test_the_seconds_of_a_process_that_is_just_ending_are_not_lost() -> None:
    before = cpu_seconds()["pipeline"]
    child = subprocess.Popen([sys.executable, "-c", "sum(range(10_000_000))"])
    while psutil.Process(child.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    taking = threading.Timer(0.1, child.wait)
    taking.start()
    assert cpu_seconds()["pipeline"] - before > 0.1
    taking.join()
