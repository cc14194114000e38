"""A backfill of N partitions from the UI: what each part of it takes, and whether all is told.

    python -m benchmarks.backfill 100000
    python -m benchmarks.backfill 100000 --scattered 1000

A fresh home in a temporary folder, the embedded PostgreSQL, the batch server, and Dagster's own
webserver, daemon and run workers. The backfill is asked for over the webserver's GraphQL, by the
mutation that the UI sends. One document in a thousand is a file that cannot be read: its partition
must turn red and no other. `--scattered` asks for so many single partitions instead of all, by the
job `submit_missing`, and for twenty others by a backfill, which Dagster makes a run for each of.
"""

import argparse
import os
import random
import time
from collections.abc import Sequence
from pathlib import Path

from dagster import AssetKey, DagsterEventType, DagsterInstance, RunsFilter
from dagster._core.storage.partition_status_cache import get_and_update_asset_status_cache_value
from sqlalchemy import text

from benchmarks.arguments import positive
from benchmarks.ending import ended_in_order, temporary_folder
from benchmarks.processes import Dagster, running_dagster
from benchmarks.synthetic import COLLECTION, write_documents
from extraction_pipeline.installation.stack import local_stack
from extraction_pipeline.lifecycle.opening import open_pipeline
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.registration import scan
from extraction_pipeline.orchestration.partitions import extraction_partitions, partitions_name
from extraction_pipeline.orchestration.recording import Recorder, record_documents
from extraction_pipeline.reports.table import render_table
from extraction_pipeline.settings import load_settings

SUBMISSIONS = AssetKey(["bench", "batch_submissions"])
LOOK_SECONDS = 0.5
SEED = 1
BACKFILLED = 20
"""Of scattered partitions: a run each, of some seconds of a processor."""

LAUNCH = """
mutation ($asked: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $asked) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
  }
}
"""
STATUS = """
query ($id: String!) {
  partitionBackfillOrError(backfillId: $id) {
    ... on PartitionBackfill { status error { message } }
  }
}
"""
RUN = """
mutation ($asked: ExecutionParams!) {
  launchRun(executionParams: $asked) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
  }
}
"""
WORDS = {"COMPLETED_SUCCESS", "COMPLETED_FAILED", "COMPLETED", "FAILED", "CANCELED"}

MOMENTS = {DagsterEventType.PIPELINE_ENQUEUED, DagsterEventType.STEP_START}

Row = list[str | int | float | None]


def backfill(dagster: Dagster, partitions: Sequence[str]) -> tuple[str, float]:
    """Ask for a backfill and wait for its end; its id, and the seconds that the answer took."""
    began = time.perf_counter()
    answer = dagster.ask(
        LAUNCH,
        {"asked": {"assetSelection": [{"path": SUBMISSIONS.path}], "partitionNames": partitions}},
    )["launchPartitionBackfill"]
    asked = time.perf_counter() - began
    if "backfillId" not in answer:
        raise SystemExit(f"The backfill was refused: {answer}")
    backfill_id: str = answer["backfillId"]
    while True:
        now = dagster.ask(STATUS, {"id": backfill_id})["partitionBackfillOrError"]
        if now["status"] in WORDS:
            return backfill_id, asked
        time.sleep(LOOK_SECONDS)


def submit_by_job(dagster: Dagster, instance: DagsterInstance, hashes: Sequence[str]) -> str:
    """Run the launchpad's job for these documents; the id of its run."""
    config = {"collection": "bench", "document_hashes": list(hashes)}
    answer = dagster.ask(
        RUN,
        {
            "asked": {
                "selector": {
                    "repositoryLocationName": "extraction_pipeline.definitions",
                    "repositoryName": "__repository__",
                    "jobName": "submit_missing",
                },
                "runConfigData": {"ops": {"submit_missing_documents": {"config": config}}},
            }
        },
    )["launchRun"]
    if "run" not in answer:
        raise SystemExit(f"The run was refused: {answer}")
    run_id: str = answer["run"]["runId"]
    while not (run := instance.get_run_by_id(run_id)) or not run.is_finished:
        time.sleep(LOOK_SECONDS)
    return run_id


def stages_of(instance: DagsterInstance, run_id: str, asked: float) -> list[Row]:
    """The parts of one run, in seconds."""
    [record] = instance.get_run_records(RunsFilter(run_ids=[run_id]))
    moments = {
        one.event_log_entry.dagster_event_type: one.event_log_entry.timestamp
        for one in instance.get_records_for_run(run_id, of_type=MOMENTS).records
    }
    created = record.create_timestamp.timestamp()
    queued = moments[DagsterEventType.PIPELINE_ENQUEUED]
    started = moments[DagsterEventType.STEP_START]
    ended = record.end_time or time.time()
    return [
        ["from the request to the run", round(created - asked, 1)],
        ["planned events", round(queued - created, 1)],
        ["queue and start of the worker", round(started - queued, 1)],
        ["submit and records", round(ended - started, 1)],
        ["from the request to the end", round(ended - asked, 1)],
    ]


def measure(count: int, scattered: int, root: Path) -> tuple[list[Row], dict[str, float]]:
    """Fill a home, run the backfill, and compare what is shown with what was to be."""
    broken = {f"broken-{number:05}.pdf" for number in range(max(1, count // 1000))}
    write_documents(root / "documents", 0, count - len(broken))
    for name in broken:
        (root / "documents" / name).write_bytes(b"%PDF-1.7\nnothing " + name.encode())
    (root / "collections").mkdir()
    (root / "collections" / "bench.yaml").write_text(COLLECTION.format(folder=root / "documents"))
    os.environ["EXTRACTION_HOME"] = str(root / "home")
    os.environ["EXTRACTION_COLLECTIONS"] = str(root / "collections")
    with local_stack(load_settings()) as settings, DagsterInstance.get() as instance:
        pipeline = open_pipeline(settings)
        bench = pipeline.collection("bench")
        began = time.perf_counter()
        scan(pipeline, bench)
        record_documents(pipeline, bench, Recorder(instance, "fill", "fill", "fill"))
        rows: list[Row] = [["(register and record, before it)", round(time.perf_counter() - began)]]
        hashes = list(instance.get_dynamic_partitions(partitions_name("bench")))
        with running_dagster(settings) as dagster:
            if scattered:
                rows += _scattered(dagster, instance, pipeline, hashes, scattered)
            else:
                rows += _whole(dagster, instance, hashes)
                _require_told(instance, pipeline, len(broken))
            rows.append(["provider jobs", _provider_jobs(pipeline)])
        pipeline.engine.dispose()
    return rows, dagster.peaks


def _whole(dagster: Dagster, instance: DagsterInstance, hashes: Sequence[str]) -> list[Row]:
    asked = time.time()
    backfill_id, answered = backfill(dagster, [f"{one}|v1" for one in hashes])
    whole = time.time() - asked
    runs = _runs_of(instance, backfill_id)
    return [
        ["the webserver's answer", round(answered, 1)],
        *stages_of(instance, runs[0], asked),
        ["the backfill is told to have ended", round(whole, 1)],
        ["runs", len(runs)],
    ]


def _scattered(
    dagster: Dagster,
    instance: DagsterInstance,
    pipeline: Pipeline,
    hashes: Sequence[str],
    count: int,
) -> list[Row]:
    chosen = random.Random(SEED).sample(list(hashes), count + BACKFILLED)
    asked = time.time()
    run_id = submit_by_job(dagster, instance, chosen[:count])
    by_job: Row = [f"job submit_missing, {count} documents, s", round(time.time() - asked, 1)]
    [record] = instance.get_run_records(RunsFilter(run_ids=[run_id]))
    in_run = round((record.end_time or 0) - (record.start_time or 0), 1)
    jobs = _provider_jobs(pipeline)
    asked = time.time()
    backfill_id, _ = backfill(dagster, [f"{one}|v1" for one in chosen[count:]])
    return [
        by_job,
        ["  of which its run, s", in_run],
        ["  provider jobs of it", jobs],
        [f"backfill of {BACKFILLED} others, s", round(time.time() - asked, 1)],
        ["  runs of it", len(_runs_of(instance, backfill_id))],
        ["  provider jobs of it", _provider_jobs(pipeline) - jobs],
    ]


def _runs_of(instance: DagsterInstance, backfill_id: str) -> list[str]:
    found = instance.get_runs(RunsFilter.for_backfill(backfill_id))
    return [run.run_id for run in found]


def _provider_jobs(pipeline: Pipeline) -> int:
    with pipeline.engine.connect() as connection:
        return int(
            connection.execute(text("SELECT count(*) FROM extraction.batch_jobs")).scalar_one()
        )


def _require_told(instance: DagsterInstance, pipeline: Pipeline, broken: int) -> None:
    """Every partition green but those of the files that cannot be read, each of which is red."""
    partitions = extraction_partitions(pipeline.collection("bench"))
    with pipeline.engine.connect() as connection:
        unreadable = connection.execute(
            text("SELECT document_hash FROM extraction.documents WHERE state = 'unreadable'")
        ).scalars()
        to_be_red = {f"{one}|v1" for one in unreadable}
    status = get_and_update_asset_status_cache_value(instance, SUBMISSIONS, partitions)
    assert status is not None
    red = status.deserialize_failed_partition_subsets(partitions)
    green = status.deserialize_materialized_partition_subsets(partitions)
    if set(red.get_partition_keys()) != to_be_red or len(to_be_red) != broken:
        raise SystemExit(f"{len(red)} partitions are red, and {len(to_be_red)} should be")
    if to_be_red & set(green.get_partition_keys()):
        raise SystemExit("A partition is green whose document cannot be read")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("documents", type=positive, nargs="?", default=10_000)
    parser.add_argument("--scattered", type=int, default=0, help="so many single partitions")
    arguments = parser.parse_args()
    if not 0 <= arguments.scattered <= arguments.documents:
        parser.error("--scattered is a number from 0 to that of the documents")
    with temporary_folder("benchmark") as folder:
        rows, peaks = measure(arguments.documents, arguments.scattered, folder)
    print(render_table(["part", "seconds or number"], rows))  # noqa: T201
    print(render_table(["process", "peak MB"], [[k, round(v)] for k, v in peaks.items()]))  # noqa: T201


if __name__ == "__main__":
    ended_in_order(main)
