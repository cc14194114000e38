"""How long each stage takes for N synthetic documents, and how much memory.

    python -m benchmarks.throughput 10000

A fresh home in a temporary folder, the embedded PostgreSQL, the batch server with its rules, and
the project's own stages in one process, so that each can be timed alone. `waiting` is the time in
which only the batch server works. Memory is the peak of each process in each stage (Linux).
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
import psutil
from dagster import DagsterInstance

from extraction_pipeline.installation.stack import local_stack
from extraction_pipeline.ledger.summary import summarize
from extraction_pipeline.lifecycle.collecting import collect
from extraction_pipeline.lifecycle.opening import open_pipeline
from extraction_pipeline.lifecycle.polling import poll_due
from extraction_pipeline.lifecycle.publishing import publish_job
from extraction_pipeline.lifecycle.registration import scan
from extraction_pipeline.lifecycle.submission import submit_documents
from extraction_pipeline.orchestration.recording import (
    Recorder,
    record_documents,
    record_results,
    record_submission,
)
from extraction_pipeline.reports.table import render_table
from extraction_pipeline.settings import load_settings

COLLECTION = """
name: bench
description: Synthetic summaries.
document_type: discharge_summary
source: {{kind: folder, path: {folder}}}
active_version: v1
extraction_versions:
  v1: {{provider: local, model: rules-baseline}}
"""
READER = "reader_child"
"""In the command line of the processes that parse documents."""

FILLER = (
    "The patient was admitted with symptoms of the fictional condition above and was treated on "
    "the ward. Laboratory values were within the expected range on the day of discharge. "
)


@dataclass
class Stage:
    """Seconds of one stage, and the peak memory in MB of each process that was alive in it."""

    name: str
    seconds: float
    memory: dict[str, float]


@dataclass
class Watch:
    """Times stages one after the other."""

    stages: list[Stage] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a block, with the peaks of memory set back before it."""
        for process in _processes():
            _reset_peak(process)
        started = time.perf_counter()
        yield
        seconds = time.perf_counter() - started
        memory: dict[str, float] = {}
        for process in _processes():
            try:
                kind = _kind(process)
            except psutil.NoSuchProcess:
                continue
            memory[kind] = max(memory.get(kind, 0.0), _peak(process))
        self.stages.append(Stage(name, seconds, memory))


def _processes() -> list[psutil.Process]:
    ours = psutil.Process()
    family = [ours, *ours.children(recursive=True)]
    home = os.environ.get("EXTRACTION_HOME", "")
    for process in psutil.process_iter(["name"]):
        if process.info["name"] == "postgres" and process not in family:
            try:
                belongs = any(home in part for part in process.cmdline()) or any(
                    home in part for part in (process.parent() or process).cmdline()
                )
            except psutil.Error:
                continue
            if belongs:
                family.append(process)
    return family


def _kind(process: psutil.Process) -> str:
    if process.pid == os.getpid():
        return "pipeline"
    if process.name() == "postgres":
        return "postgres"
    return "reader" if any(READER in part for part in process.cmdline()) else "batch server"


def _reset_peak(process: psutil.Process) -> None:
    try:
        Path(f"/proc/{process.pid}/clear_refs").write_text("5")
    except OSError:
        return  # not Linux, or gone: the peak is then that of the whole life


def _peak(process: psutil.Process) -> float:
    try:
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        return float(process.memory_info().rss) / 2**20
    except (OSError, psutil.Error):
        return 0.0


def write_documents(folder: Path, count: int) -> None:
    """Fictional summaries of about 2 KB, all different."""
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"summary-{number:07}.txt").write_text(
            f"DISCHARGE SUMMARY\n\nRecord {number}\n"
            f"Admission date: 2026-01-{1 + number % 28:02}\n\n"
            f"DISCHARGE DIAGNOSES:\n1. Fictional condition {number}.\n2. Example disease.\n\n"
            f"HOSPITAL COURSE:\n{FILLER * 8}\n\n"
            "DISCHARGE MEDICATIONS:\n1. Examplol 20 mg p.o. daily.\n2. Samplin 5 mg p.o. b.i.d.\n\n"
            "ALLERGIES: None known.\n\nFOLLOW-UP: In the clinic in two weeks.\n"
        )


def measure(count: int, root: Path) -> list[Stage]:
    """Run every stage once; raises if a document was lost."""
    write_documents(root / "documents", count)
    collections = root / "collections"
    collections.mkdir()
    (collections / "bench.yaml").write_text(COLLECTION.format(folder=root / "documents"))
    os.environ["EXTRACTION_HOME"] = str(root / "home")
    os.environ["EXTRACTION_COLLECTIONS"] = str(collections)
    os.environ["EXTRACTION_POLL_SECONDS"] = "0.2"
    os.environ["EXTRACTION_POLL_MAX_SECONDS"] = "0.5"
    watch = Watch()
    with local_stack(load_settings()) as settings, DagsterInstance.get() as instance:
        pipeline = open_pipeline(settings)
        bench = pipeline.collection("bench")
        to = Recorder(instance, "benchmark", "benchmark", "benchmark")
        with watch.stage("register"):
            scan(pipeline, bench)
        with watch.stage("records of documents"):
            record_documents(pipeline, bench, to)
        with watch.stage("submit"):
            submitted = submit_documents(pipeline, bench, bench.active, actor="benchmark").submitted
        with watch.stage("records of submissions"):
            for job in submitted:
                record_submission(pipeline, job, to)
        with watch.stage("waiting"):
            ended = 0
            while ended < len(submitted):
                ended += sum(one.ended for one in poll_due(pipeline, "benchmark", 50, seconds=10))
                time.sleep(0.1)
        with watch.stage("collect"):
            for job in submitted:
                collect(pipeline, job, "benchmark")
        with watch.stage("publish"):
            for job in submitted:
                publish_job(pipeline, job, "benchmark")
        with watch.stage("records of results"):
            for job in submitted:
                record_results(pipeline, job, to)
        with watch.stage("scan with nothing new"):
            scan(pipeline, bench)
        with pipeline.engine.connect() as connection:
            summary = summarize(connection, "bench", "v1", 3)
        pipeline.engine.dispose()
    if summary.published != count:
        raise SystemExit(f"{summary.published} of {count} documents were published")
    return watch.stages


def report(count: int, stages: list[Stage], say: Callable[[str], None]) -> None:
    """One line a stage, and the sum."""
    kinds = ["pipeline", "batch server", "postgres"]
    rows: list[list[str | int | float | None]] = [
        [
            stage.name,
            round(stage.seconds, 1),
            round(count / stage.seconds),
            *(round(stage.memory.get(kind, 0.0)) for kind in kinds),
        ]
        for stage in stages
    ]
    total = sum(stage.seconds for stage in stages)
    rows.append(
        [
            "all",
            round(total, 1),
            round(count / total),
            *(round(max(stage.memory.get(kind, 0.0) for stage in stages)) for kind in kinds),
        ]
    )
    header = ["stage", "seconds", "documents/s", *(f"{kind}, peak MB" for kind in kinds)]
    say(render_table(header, rows))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("documents", type=int, nargs="?", default=10_000)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="extraction-benchmark-") as folder:
        stages = measure(arguments.documents, Path(folder))
    if arguments.json:
        print(  # noqa: T201
            orjson.dumps(
                {one.name: {"seconds": one.seconds, "peak_mb": one.memory} for one in stages}
            ).decode()
        )
    else:
        report(arguments.documents, stages, print)


if __name__ == "__main__":
    main()
