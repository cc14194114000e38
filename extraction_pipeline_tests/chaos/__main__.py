"""python -m extraction_pipeline_tests.chaos --kills 100 --seed 7 --provider openai

Starts PostgreSQL, a batch server, a daemon and run workers, kills them with SIGKILL at crash points
and at random moments, lets everything come to its end, and prints one line of counts. Exit code 1
on any duplicate, lost document, false or missing materialization.
"""

import argparse
import random
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from extraction_pipeline.providers.registry import ProviderName
from extraction_pipeline_tests.chaos.campaign import Orders, fight
from extraction_pipeline_tests.chaos.counting import Counts
from extraction_pipeline_tests.chaos.world import PROVIDERS, World


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--provider", type=ProviderName, choices=PROVIDERS, action="append")
    parser.add_argument("--minutes", type=float, default=60.0, help="no kills after this time")
    parser.add_argument(
        "--no-daemon", action="store_true", help="without the installed dagster-daemon"
    )
    parser.add_argument("--no-faults", action="store_true", help="the network never fails")
    parser.add_argument("--keep", action="store_true", help="keep the folder, and name it")
    parser.add_argument("--quiet", action="store_true", help="the line of counts alone")
    arguments = parser.parse_args()
    began = time.monotonic()

    def tell(line: str) -> None:
        if not arguments.quiet:
            print(f"{time.monotonic() - began:7.1f} {line}", file=sys.stderr)  # noqa: T201

    with ExitStack() as stack:
        if arguments.keep:
            folder = mkdtemp(prefix="extraction-chaos-")
            print(folder, file=sys.stderr)  # noqa: T201
        else:
            folder = stack.enter_context(TemporaryDirectory(prefix="extraction-chaos-"))
        counts = fight(
            World(Path(folder), tuple(arguments.provider or PROVIDERS)),
            Orders(
                arguments.kills,
                arguments.seed,
                arguments.minutes,
                with_daemon=not arguments.no_daemon,
                with_faults=not arguments.no_faults,
            ),
            tell,
        )
    return verdict(counts)


def verdict(counts: Counts) -> int:
    """Tell the counts in one line, and each promise that was broken in another; the exit code."""
    print(counts.line())  # noqa: T201
    for name, number in counts.broken.items():
        print(f"broken: {name} is {number} and must be 0", file=sys.stderr)  # noqa: T201
    return 1 if counts.broken else 0


if __name__ == "__main__":
    sys.exit(main())
