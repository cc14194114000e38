"""What a night costs where N documents are published already.

    python -m benchmarks.nights 100000 1000

Registers and publishes N synthetic documents first, by the stages of `throughput`. Then a night
with nothing new, one with the given number of new documents, its results, and one with twice as
many; the checks that the nightly job runs are timed apart. `--profile` as in `throughput`.
"""

import argparse
from pathlib import Path

from benchmarks.arguments import positive
from benchmarks.crew import Crew
from benchmarks.ending import ended_in_order, temporary_folder
from benchmarks.synthetic import bench, write_documents
from benchmarks.throughput import end_jobs, run_stages
from benchmarks.watch import Stage, Watch, report
from extraction_pipeline.ledger.stages import Stage as PipelineStage
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.registration import scan
from extraction_pipeline.orchestration.comparing import compare
from extraction_pipeline.orchestration.nightly import refresh_collection
from extraction_pipeline.orchestration.recording import Recorder


def measure(standing: int, new: int, root: Path, *, profiling: bool = False) -> list[Stage]:
    """The stages of the nights; raises if one did not find what it should."""
    folder = root / "documents"
    write_documents(folder, 0, standing)
    with bench(root) as (pipeline, to, watch):
        run_stages(pipeline, to, watch, standing)
        nights = Watch(watch.database_url, profiling)
        with nights.stage("scan, nothing new", standing):
            scan(pipeline, pipeline.collection("bench"))
        _night(pipeline, to, nights, 0, "night, nothing new", standing)
        write_documents(folder, standing, new)
        _night(pipeline, to, nights, new, f"night, {new:,} new", new)
        end_jobs(Crew(pipeline, to, 1, None), nights, new)
        write_documents(folder, standing + new, 2 * new)
        _night(pipeline, to, nights, 2 * new, f"night, {2 * new:,} new", 2 * new)
        end_jobs(Crew(pipeline, to, 1, None), nights, 2 * new)
        with nights.stage("checks of records", standing + 3 * new):
            for stage in PipelineStage:
                found = compare(pipeline.engine, to.instance, "bench", stage)
                if not found.agrees or found.in_ledger != standing + 3 * new:
                    raise SystemExit(f"records and ledger do not agree at {stage.value}")
    return nights.stages


def _night(
    pipeline: Pipeline, to: Recorder, watch: Watch, new: int, name: str, documents: int
) -> None:
    with watch.stage(name, documents):
        counts, _ = refresh_collection(pipeline, pipeline.collection("bench"), "benchmark", to)
    if (counts.new, counts.submitted, counts.rewritten) != (new, new, 0):
        raise SystemExit(f"{name}: {counts}")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("standing", type=positive, nargs="?", default=10_000)
    parser.add_argument("new", type=positive, nargs="?", default=1_000)
    parser.add_argument("--profile", action="store_true", help="show each stage's functions")
    arguments = parser.parse_args()
    with temporary_folder("benchmark") as folder:
        stages = measure(arguments.standing, arguments.new, folder, profiling=arguments.profile)
    report(stages, print, total=False)


if __name__ == "__main__":
    ended_in_order(main)
