"""The same troubles for a plain batch script and for the pipeline, counted by the batch server.

    python -m benchmarks.plain_script               # every scenario, as a table
    python -m benchmarks.plain_script killed cut    # some of them

Each scenario has a batch server of its own, which fails on demand, and six documents. A program
that ends with an error is started again, as a person would, at most three times. Exit code 1 if the
pipeline pays for a request twice without need, has a second record, or leaves a document without
an end.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import requests

from benchmarks.plain_script.scenarios import DOCUMENTS, SCENARIOS, Scenario
from benchmarks.plain_script.subjects import Pipeline, PlainScript, Subject

STARTS = 4
"""Of a program, in one scenario: the first one, and again after each error."""
SECONDS = 180.0
"""For one start."""


@dataclass(frozen=True)
class Outcome:
    """What came of six documents. `lost` have neither a record nor a reason."""

    jobs: int
    paid: int
    paid_again: int
    records: int
    second_records: int
    lost: int

    def cell(self) -> str:
        """For the table."""
        again = f" ({self.paid_again} again)" if self.paid_again else ""
        second = f" ({self.second_records} twice)" if self.second_records else ""
        return f"{self.jobs} | {self.paid}{again} | {self.records}{second} | {self.lost}"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
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


def outcome(scenario: Scenario, subject_of: Callable[[Path, Path, str], Subject]) -> Outcome:
    """Take one program through one scenario."""
    with TemporaryDirectory(prefix="extraction-plain-") as root:
        folder = Path(root)
        documents = folder / "documents"
        documents.mkdir()
        for number in range(DOCUMENTS):
            (documents / f"letter-{number}.txt").write_text(
                f"DISCHARGE SUMMARY\n\nDISCHARGE DIAGNOSES:\n1. Fictional condition {number}.\n"
            )
        with batch_server(folder, scenario) as url:
            subject = subject_of(folder, documents, f"{url}/v1")
            _take_through(scenario, subject, url)
            records = subject.records()
            told = requests.get(f"{url}/statistics", timeout=10).json()
            openai = told["dialects"].get("openai", {})
            return Outcome(
                jobs=told["jobs_created"],
                paid=openai.get("requests_completed", 0),
                paid_again=openai.get("requests_answered_again", 0),
                records=len(records),
                second_records=len(records) - len(set(records)),
                lost=DOCUMENTS - len(set(records)) - subject.explained(),
            )


def _take_through(scenario: Scenario, subject: Subject, url: str) -> None:
    programs = [subject.start() for _ in range(2 if scenario.at_once else 1)]
    if scenario.kill_when_accepted:
        _wait_until(
            lambda: requests.get(f"{url}/statistics", timeout=10).json()["jobs_created"] > 0
        )
        programs[0].kill()
    ended = [program.wait(SECONDS) for program in programs]
    for _ in range(STARTS - 1):
        if 0 in ended:
            break
        ended = [subject.start().wait(SECONDS)]
    if scenario.once_more:
        subject.start().wait(SECONDS)


@contextmanager
def batch_server(folder: Path, scenario: Scenario) -> Iterator[str]:
    """A server of its own; its URL."""
    plan, port = folder / "plan.json", folder / "port"
    plan.write_text(json.dumps({"faults": scenario.faults}))
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "extraction_pipeline.batch_server"),
            *("--state", str(folder / "server"), "--port", "0", "--port-file", str(port)),
            *("--faults", str(plan)),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_until(port.exists)
        yield f"http://127.0.0.1:{port.read_text().strip()}"
    finally:
        process.terminate()
        process.wait(10)


def _wait_until(condition: Callable[[], bool], seconds: float = SECONDS) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit("A program did not get as far as it should in time.")
        time.sleep(0.02)


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
