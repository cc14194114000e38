"""How long each stage takes for N synthetic documents, and how much memory.

    python -m benchmarks.throughput 10000
    python -m benchmarks.throughput 100000 --workers 2
    python -m benchmarks.throughput 5000 --profile

A fresh home in a temporary folder, the embedded PostgreSQL, the batch server with its rules, and
the project's own stages in one process, so that each can be timed alone. With `--workers` the
source is read in as many parts, and the jobs, two for each, are shared among the processes stage by
stage, as run workers share them. `waiting` is the time in which only the batch server works; what
it does while a stage waits for it is its CPU time there.
`--profile` shows the functions that each stage spends its time in, and the statements that the
database is seen busy with, and makes all of it slower.
"""

import argparse
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path

import orjson
from sqlalchemy import select

from benchmarks.arguments import positive
from benchmarks.crew import Crew, crew
from benchmarks.ending import ended_in_order, temporary_folder
from benchmarks.synthetic import bench, write_documents
from benchmarks.watch import Watch, report
from extraction_pipeline.documents.parts import Part
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.ledger.summary import summarize
from extraction_pipeline.ledger.tables import batch_jobs
from extraction_pipeline.lifecycle.collecting import collect
from extraction_pipeline.lifecycle.pipeline import Pipeline
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

WAITING = "waiting for the batch server"
JOBS_A_WORKER = 2


def measure(count: int, root: Path, *, workers: int = 1, profiling: bool = False) -> Watch:
    """Run every stage once; raises if a document was lost."""
    write_documents(root / "documents", 0, count)
    size = None if workers == 1 else max(1, count // (JOBS_A_WORKER * workers))
    with bench(root, profiling=profiling, requests_per_job=size) as (pipeline, to, watch):
        run_stages(pipeline, to, watch, count, workers)
        with pipeline.engine.connect() as connection:
            summary = summarize(connection, "bench", "v1", 3)
    if summary.published != count:
        raise SystemExit(f"{summary.published} of {count} documents were published")
    return watch


def run_stages(
    pipeline: Pipeline, to: Recorder, watch: Watch, count: int, workers: int = 1
) -> None:
    """From the files of the source to the last record, for `count` new documents."""
    collection = pipeline.collection("bench")
    with crew(pipeline, to, workers) as hands:
        with watch.stage("register", count):
            hands.each(partial(_register, workers), range(1, workers + 1))
        with watch.stage("records of documents", count):
            record_documents(pipeline, collection, to)
        with watch.stage("submit", count):
            submitted = submit_documents(
                pipeline, collection, collection.active, actor="benchmark"
            ).submitted
        with watch.stage("records of submissions", count):
            hands.each(_record_submission, submitted)
        end_jobs(hands, watch, count)


def end_jobs(hands: Crew, watch: Watch, count: int) -> None:
    """From submitted jobs to their last records."""
    with watch.stage(WAITING, count):
        while _jobs_in(hands.pipeline, JobState.SUBMITTED):
            poll_due(hands.pipeline, "benchmark", 50, seconds=10)
            time.sleep(0.1)
    jobs = _jobs_in(hands.pipeline, JobState.ENDED)
    with watch.stage("collect", count):
        hands.each(_collect, jobs)
    with watch.stage("publish", count):
        hands.each(_publish, jobs)
    with watch.stage("records of results", count):
        hands.each(_record_results, jobs)


def _register(parts: int, pipeline: Pipeline, _: Recorder, number: int) -> None:
    scan(pipeline, pipeline.collection("bench"), Part(number, parts))


def _record_submission(pipeline: Pipeline, to: Recorder, job: int) -> None:
    record_submission(pipeline, job, to)


def _collect(pipeline: Pipeline, _: Recorder, job: int) -> None:
    collect(pipeline, job, "benchmark")


def _publish(pipeline: Pipeline, _: Recorder, job: int) -> None:
    publish_job(pipeline, job, "benchmark")


def _record_results(pipeline: Pipeline, to: Recorder, job: int) -> None:
    record_results(pipeline, job, to)


def _jobs_in(pipeline: Pipeline, state: JobState) -> list[int]:
    with pipeline.engine.connect() as connection:
        return list(
            connection.execute(
                select(batch_jobs.c.id).where(batch_jobs.c.state == state).order_by(batch_jobs.c.id)
            ).scalars()
        )


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("documents", type=positive, nargs="?", default=10_000)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument(
        "--workers", type=positive, default=1, help="processes that share the stages"
    )
    parser.add_argument("--profile", action="store_true", help="show each stage's functions")
    arguments = parser.parse_args()
    with temporary_folder("benchmark") as folder:
        watch = measure(
            arguments.documents,
            folder,
            workers=arguments.workers,
            profiling=arguments.profile,
        )
    if arguments.json:
        found = {"stages": [asdict(one) for one in watch.stages], "connections": watch.connections}
        print(orjson.dumps(found).decode())  # noqa: T201
    else:
        report(watch.stages, print, waiting=WAITING)
        print(f"connections to the database, at most: {watch.connections}")  # noqa: T201


if __name__ == "__main__":
    ended_in_order(main)
