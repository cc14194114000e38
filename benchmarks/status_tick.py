"""How long a tick of the status sensor takes with N open batch jobs whose provider misbehaves, and
what a healthy account with as many beside it gets.

    python -m benchmarks.status_tick 200

A fresh home, the embedded PostgreSQL, and a batch server that is two providers: `local` as it is,
and `openai` behind a relay that passes requests on, answers none, drips an answer without end, or
cuts connections. As many documents are submitted to each, in a job each, which the server does not
end before the last line. Each line is two ticks with all open jobs due, after one in which all were
quick: the sensor does not know yet who is slow.
"""

import argparse
import json
import os
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import requests
from dagster import DagsterInstance
from sqlalchemy import text

from benchmarks.arguments import positive
from benchmarks.ending import ended_in_order, temporary_folder
from benchmarks.synthetic import COLLECTION, write_documents
from benchmarks.unreliable_relay import Mood, unreliable_relay
from extraction_pipeline.installation.stack import local_stack
from extraction_pipeline.lifecycle.opening import open_pipeline
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.registration import scan
from extraction_pipeline.lifecycle.submission import submit_documents
from extraction_pipeline.orchestration.sensors import tick
from extraction_pipeline.reports.table import Cell, render_table
from extraction_pipeline.settings import load_settings

HEALTHY, TROUBLED = "local", "openai"
SECOND_VERSION = f"  v2: {{provider: {TROUBLED}, model: rules-baseline}}\n"
MOODS = (Mood.HANG, Mood.DRIP_HEADERS, Mood.DRIP_BODY, Mood.RESET, Mood.PASS)
HEADER = [
    "requests of one account are",
    *("seconds", "its jobs read", "the healthy one's"),
    *("next tick, s", "its jobs read", "the healthy one's"),
]
LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class Sensor:
    """The sensor of one process, with every open job due at each of its ticks."""

    pipeline: Pipeline
    instance: DagsterInstance
    provider_of: dict[str, str]
    """By job key."""

    def tick(self) -> list[Cell]:
        """The seconds of one tick, and how many jobs of each account it read."""
        with self.pipeline.engine.begin() as connection:
            connection.execute(text("UPDATE extraction.batch_jobs SET due_at = now()"))
        began = time.perf_counter()
        ticked = tick(self.pipeline, self.instance)
        seconds = time.perf_counter() - began
        read = Counter(self.provider_of[one.job_key] for one in ticked.readings)
        return [round(seconds, 1), read[TROUBLED], read[HEALTHY]]


def measure(count: int, root: Path) -> list[list[Cell]]:
    """One line for each way of the provider."""
    write_documents(root / "documents", 0, count)
    (root / "collections").mkdir()
    (root / "collections" / "bench.yaml").write_text(
        COLLECTION.format(folder=root / "documents") + SECOND_VERSION
    )
    os.environ["EXTRACTION_HOME"] = str(root / "home")
    os.environ["EXTRACTION_COLLECTIONS"] = str(root / "collections")
    limits = {name: {"requests_per_job": 1} for name in (HEALTHY, TROUBLED)}
    os.environ["EXTRACTION_LIMITS"] = json.dumps(limits)
    os.environ[f"EXTRACTION_{TROUBLED.upper()}_API_KEY"] = "none-is-asked-for"
    with local_stack(load_settings()) as settings, DagsterInstance.get() as instance:
        server = urlsplit(settings.local_base_url)
        origin = f"{server.scheme}://{server.netloc}"
        plan(origin, {"kind": "stuck"})
        with unreliable_relay(server.hostname or "", server.port or 0) as relay:
            relayed = f"http://127.0.0.1:{relay.port}{server.path}"
            os.environ[f"EXTRACTION_{TROUBLED.upper()}_BASE_URL"] = relayed
            pipeline = open_pipeline(load_settings())
            sensor = Sensor(pipeline, instance, submit(pipeline))
            rows: list[list[Cell]] = []
            for mood in MOODS:
                relay.mood = Mood.PASS
                sensor.tick()
                relay.mood = mood
                rows.append([mood.value, *sensor.tick(), *sensor.tick()])
            plan(origin)
            while not all_ended(origin):
                time.sleep(LOOK_SECONDS)  # it tells nobody when all are done
            rows.append([f"{Mood.PASS.value}, and all have ended", *sensor.tick(), *sensor.tick()])
            pipeline.engine.dispose()
    return rows


def submit(pipeline: Pipeline) -> dict[str, str]:
    """Submit every document to both providers; the provider of each job by its key."""
    bench = pipeline.collection("bench")
    scan(pipeline, bench)
    for version in ("v1", "v2"):
        submit_documents(pipeline, bench, bench.version(version), actor="benchmark")
    with pipeline.engine.connect() as connection:
        jobs = connection.execute(text("SELECT job_key, provider FROM extraction.batch_jobs"))
        return {row.job_key: row.provider for row in jobs}


def plan(origin: str, *faults: dict[str, str]) -> None:
    """What goes wrong in the batch server from here on."""
    answer = requests.put(f"{origin}/faults", json={"faults": faults}, timeout=10)
    answer.raise_for_status()


def all_ended(origin: str) -> bool:
    """Whether the batch server has ended every job."""
    states = requests.get(f"{origin}/statistics", timeout=10).json()["jobs_by_state"]
    return set(states) == {"completed"}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("jobs", type=positive, nargs="?", default=200, help="of each account")
    arguments = parser.parse_args()
    with temporary_folder("benchmark") as folder:
        print(render_table(HEADER, measure(arguments.jobs, folder)))  # noqa: T201


if __name__ == "__main__":
    ended_in_order(main)
