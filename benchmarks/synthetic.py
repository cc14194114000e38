"""Synthetic documents, a collection of them, and the pipeline over a fresh home."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dagster import DagsterInstance

from benchmarks.watch import Watch
from extraction_pipeline.installation.stack import local_stack
from extraction_pipeline.lifecycle.opening import open_pipeline
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.orchestration.recording import Recorder
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

FILLER = (
    "The patient was admitted with symptoms of the fictional condition above and was treated on "
    "the ward. Laboratory values were within the expected range on the day of discharge. "
)


def write_documents(folder: Path, first: int, count: int) -> None:
    """Fictional summaries of about 2 KB, all different, numbered from `first` on."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(first, first + count):
        (folder / f"summary-{number:07}.txt").write_bytes(document(number))


def document(number: int) -> bytes:
    """One summary."""
    return (
        f"DISCHARGE SUMMARY\n\nRecord {number}\n"
        f"Admission date: 2026-01-{1 + number % 28:02}\n\n"
        f"DISCHARGE DIAGNOSES:\n1. Fictional condition {number}.\n2. Example disease.\n\n"
        f"HOSPITAL COURSE:\n{FILLER * 8}\n\n"
        "DISCHARGE MEDICATIONS:\n1. Examplol 20 mg p.o. daily.\n2. Samplin 5 mg p.o. b.i.d.\n\n"
        "ALLERGIES: None known.\n\nFOLLOW-UP: In the clinic in two weeks.\n"
    ).encode()


@contextmanager
def bench(
    root: Path, *, profiling: bool = False, requests_per_job: int | None = None
) -> Iterator[tuple[Pipeline, Recorder, Watch]]:
    """The pipeline of the one collection `bench` over `root`/documents, with all it needs; jobs are
    as large as the provider takes them, or have so many requests."""
    collections = root / "collections"
    collections.mkdir()
    (collections / "bench.yaml").write_text(COLLECTION.format(folder=root / "documents"))
    os.environ["EXTRACTION_HOME"] = str(root / "home")
    os.environ["EXTRACTION_COLLECTIONS"] = str(collections)
    if requests_per_job is not None:
        limits = {"local": {"requests_per_job": requests_per_job}}
        os.environ["EXTRACTION_LIMITS"] = json.dumps(limits)
    os.environ["EXTRACTION_POLL_SECONDS"] = "0.2"
    os.environ["EXTRACTION_POLL_MAX_SECONDS"] = "0.5"
    with local_stack(load_settings()) as settings, DagsterInstance.get() as instance:
        pipeline = open_pipeline(settings)
        assert settings.database_url is not None
        watch = Watch(settings.database_url.get_secret_value(), profiling)
        with watch.counting_connections():
            yield pipeline, Recorder(instance, "benchmark", "benchmark", "benchmark"), watch
        pipeline.engine.dispose()
