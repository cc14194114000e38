"""How long a tick of the status sensor takes with N open batch jobs, whatever the provider does.

    python -m benchmarks.status_tick 200

A fresh home, the embedded PostgreSQL, the batch server, and a relay before it that passes requests
on, answers none, drips an answer without end, or cuts connections. As many documents are submitted
in a job each. A tick of each kind is timed with all jobs due; in the last ones the jobs end.
"""

import argparse
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from dagster import DagsterInstance
from sqlalchemy import text

from benchmarks.arguments import positive
from benchmarks.ending import ended_in_order
from benchmarks.synthetic import COLLECTION, write_documents
from benchmarks.unreliable_relay import Mood, unreliable_relay
from extraction_pipeline.installation.stack import local_stack
from extraction_pipeline.lifecycle.opening import open_pipeline
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.registration import scan
from extraction_pipeline.lifecycle.submission import submit_documents
from extraction_pipeline.orchestration.sensors import tick
from extraction_pipeline.reports.table import render_table
from extraction_pipeline.settings import load_settings

MOODS = (
    *(Mood.HANG, Mood.DRIP_HEADERS, Mood.DRIP_BODY, Mood.RESET),
    *(Mood.PASS, Mood.PASS),
)


def measure(count: int, root: Path) -> list[list[str | int | float | None]]:
    """The seconds of one tick for each way of the provider."""
    write_documents(root / "documents", 0, count)
    (root / "collections").mkdir()
    (root / "collections" / "bench.yaml").write_text(COLLECTION.format(folder=root / "documents"))
    os.environ["EXTRACTION_HOME"] = str(root / "home")
    os.environ["EXTRACTION_COLLECTIONS"] = str(root / "collections")
    os.environ["EXTRACTION_LIMITS"] = '{"local": {"requests_per_job": 1}}'
    rows: list[list[str | int | float | None]] = []
    with local_stack(load_settings()) as settings, DagsterInstance.get() as instance:
        server = urlsplit(settings.local_base_url or "")
        with unreliable_relay(server.hostname or "", server.port or 0) as relay:
            os.environ["EXTRACTION_LOCAL_BASE_URL"] = f"http://127.0.0.1:{relay.port}{server.path}"
            pipeline = open_pipeline(load_settings())
            bench = pipeline.collection("bench")
            scan(pipeline, bench)
            submit_documents(pipeline, bench, bench.active, actor="benchmark")
            for mood in MOODS:
                all_due(pipeline)
                relay.mood = mood
                began = time.perf_counter()
                ticked = tick(pipeline, instance)
                seconds = time.perf_counter() - began
                ended = sum(one.ended for one in ticked.readings)
                rows.append(
                    [mood.value, round(seconds, 1), ticked.polled, ended, len(ticked.requests)]
                )
            pipeline.engine.dispose()
    return rows


def all_due(pipeline: Pipeline) -> None:
    """Let every job that is open be due now."""
    with pipeline.engine.begin() as connection:
        connection.execute(text("UPDATE extraction.batch_jobs SET due_at = now()"))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("jobs", type=positive, nargs="?", default=200)
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="extraction-benchmark-") as folder:
        rows = measure(arguments.jobs, Path(folder))
    header = ["requests are", "seconds", "jobs read", "of them ended", "runs asked for"]
    print(render_table(header, rows))  # noqa: T201


if __name__ == "__main__":
    ended_in_order(main)
