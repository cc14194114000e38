"""One program taken through one scenario, and what the batch server and the program say of it."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from benchmarks.ending import temporary_folder
from benchmarks.plain_script.scenarios import DOCUMENTS, Scenario
from benchmarks.plain_script.subjects import Subject

STARTS = 4
"""Of a program, in one scenario: the first one, and again after each error."""
SECONDS = 180.0
"""For one start."""


@dataclass(frozen=True)
class Outcome:
    """What came of some documents. `lost` have neither a record nor a reason."""

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


def outcome(scenario: Scenario, subject_of: Callable[[Path, Path, str], Subject]) -> Outcome:
    """Take one program through one scenario."""
    with temporary_folder("plain") as folder:
        documents = folder / "documents"
        documents.mkdir()
        for number in range(DOCUMENTS):
            (documents / f"letter-{number}.txt").write_text(
                f"DISCHARGE SUMMARY\n\nDISCHARGE DIAGNOSES:\n1. Fictional condition {number}.\n"
            )
        with batch_server(folder, scenario.faults) as url:
            subject = subject_of(folder, documents, f"{url}/v1")
            _take_through(scenario, subject, url)
            records = subject.records()
            return count(DOCUMENTS, statistics(url), records, subject.explained())


def count(documents: int, told: Mapping[str, Any], records: list[str], explained: int) -> Outcome:
    """Put together what the batch server told and what the program has."""
    openai = told["dialects"].get("openai", {})
    return Outcome(
        jobs=told["jobs_created"],
        paid=openai.get("requests_completed", 0),
        paid_again=openai.get("requests_answered_again", 0),
        records=len(records),
        second_records=len(records) - len(set(records)),
        lost=documents - len(set(records)) - explained,
    )


def statistics(url: str) -> dict[str, Any]:
    """What a batch server counted."""
    return dict(requests.get(f"{url}/statistics", timeout=10).json())


def _take_through(scenario: Scenario, subject: Subject, url: str) -> None:
    programs = [subject.start() for _ in range(2 if scenario.at_once else 1)]
    if scenario.killed:
        wait_until(lambda: _is_held(statistics(url)))
        programs[0].kill()
    ended = [program.wait(SECONDS) for program in programs]
    for _ in range(STARTS - 1):
        if 0 in ended:
            break
        ended = [subject.start().wait(SECONDS)]
    if scenario.once_more:
        subject.start().wait(SECONDS)


def _is_held(told: Mapping[str, Any]) -> bool:
    # A fault counts as applied before the call that it holds has been heard to its end.
    return bool(told["faults_applied"] and told["jobs_created"])


@contextmanager
def batch_server(folder: Path, faults: Sequence[Mapping[str, Any]] = ()) -> Iterator[str]:
    """A server of its own; its URL."""
    plan, port = folder / "plan.json", folder / "port"
    plan.write_text(json.dumps({"faults": faults}))
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
        wait_until(port.exists)
        yield f"http://127.0.0.1:{port.read_text().strip()}"
    finally:
        process.terminate()
        process.wait(10)


def wait_until(condition: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Ask again and again; ends this command where it lasts too long."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit("A program did not get as far as it should in time.")
        time.sleep(0.02)
