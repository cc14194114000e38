"""The same troubles for a plain batch script and for the pipeline, counted by the batch server.

    python -m benchmarks.plain_script               # every scenario, as a table
    python -m benchmarks.plain_script killed cut    # some of them

Each scenario has a batch server of its own, which fails on demand, and six documents. A program
that ends with an error is started again, as a person would, at most three times. Exit code 1 if the
pipeline pays for a request twice without need, has a second record, or leaves a document without
an end.
"""

import argparse
import sys

from benchmarks.ending import ended_in_order
from benchmarks.plain_script.outcomes import outcome
from benchmarks.plain_script.scenarios import SCENARIOS
from benchmarks.plain_script.subjects import Pipeline, PlainScript


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [scenario.name for scenario in SCENARIOS]
    parser.add_argument("scenario", nargs="*", metavar="scenario", help=", ".join(names))
    asked = parser.parse_args().scenario or names
    unknown = sorted(set(asked) - set(names))
    if unknown:
        parser.error(f"there is no scenario {', '.join(unknown)}")
    _print(
        "| six documents, and | script: jobs | paid | records | lost "
        "| pipeline: jobs | paid | records | lost |"
    )
    _print("|---|" + "---:|" * 8)
    holds = True
    for scenario in SCENARIOS:
        if scenario.name in asked:
            plain, ours = (outcome(scenario, kind) for kind in (PlainScript, Pipeline))
            _print(f"| {scenario.what} | {plain.cell()} | {ours.cell()} |")
            holds = holds and not (ours.second_records or ours.lost)
            holds = holds and (scenario.pays_again or not ours.paid_again)
    sys.exit(0 if holds else 1)


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    ended_in_order(main)
