"""How much more the cores of this machine do together than one does alone.

    python -m benchmarks.cores

A core of a virtual machine may be half of a real one, and all share caches and memory. The same
work, hashing, parsing of JSON and sorting, is done by one process, and then by one a core at once.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from statistics import median

from benchmarks.arguments import positive
from benchmarks.ending import ended_in_order
from extraction_pipeline.reports.table import render_table

ROUNDS = 5


def work(repetitions: int) -> float:
    """Seconds that one piece of work takes."""
    started = time.perf_counter()
    for number in range(repetitions):
        value = {str(key): [key * number, "text " * 20] for key in range(2000)}
        data = json.dumps(value).encode()
        hashlib.sha256(data).digest()
        sorted(json.loads(data).items(), key=lambda item: item[0][::-1])
    return time.perf_counter() - started


def measure(repetitions: int) -> tuple[float, float, int]:
    """Seconds alone, seconds where every core does it, and how many cores that are; medians."""
    cores = os.cpu_count() or 1
    with ProcessPoolExecutor(cores, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(work, [1] * cores * 2))  # the processes have started
        alone = [pool.submit(work, repetitions).result() for _ in range(ROUNDS)]
        together = [max(pool.map(work, [repetitions] * cores)) for _ in range(ROUNDS)]
    return median(alone), median(together), cores


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repetitions", type=positive, nargs="?", default=100)
    alone, together, cores = measure(parser.parse_args().repetitions)
    rows: list[list[str | int | float | None]] = [
        [cores, round(alone, 2), round(together, 2), round(cores * alone / together, 2)]
    ]
    header = ["cores", "seconds alone", "seconds at once", "work of so many single cores"]
    print(render_table(header, rows))  # noqa: T201


if __name__ == "__main__":
    ended_in_order(main)
