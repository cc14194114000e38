"""How long the pages of assets with N documents and three versions take, and how much memory.

    python -m benchmarks.pages 100000
    python -m benchmarks.pages 100000 --serve

A fresh home in a temporary folder and the embedded PostgreSQL. One record of each asset is written
in the usual way and multiplied by SQL; nothing is in the ledger. One document in a hundred has no
record at the last version, and a failed run was to make it: those partitions are red. Then what the
pages of the UI ask is asked over HTTP, twice: the first answer fills Dagster's cache of statuses.
`--serve` leaves the UI running after that, to be looked at in a browser, until Ctrl-C.
"""

import argparse
import os
import time
from collections.abc import Mapping, Sequence

from dagster import AssetKey, AssetMaterialization, DagsterInstance, DagsterRun, DagsterRunStatus
from dagster._core.definitions.partitions.subset import DefaultPartitionsSubset
from dagster._core.events import AssetMaterializationPlannedData, DagsterEvent
from sqlalchemy import create_engine, make_url, text

from benchmarks.arguments import positive
from benchmarks.ending import ended_in_order, temporary_folder
from benchmarks.processes import Dagster, running_dagster
from extraction_pipeline.installation.stack import local_stack
from extraction_pipeline.orchestration.event_log import write_records
from extraction_pipeline.orchestration.partitions import (
    assets_of,
    documents_asset,
    extraction_key,
    extractions_asset,
    partitions_name,
)
from extraction_pipeline.reports.table import render_table
from extraction_pipeline.settings import load_settings

BENCH = "bench"
VERSIONS = ("v1", "v2", "v3")
COLLECTION = """
name: bench
description: Nothing but its records.
document_type: discharge_summary
source: {{kind: folder, path: {folder}}}
active_version: v1
extraction_versions:
  v1: {{provider: local, model: rules-baseline}}
  v2: {{provider: local, model: rules-baseline, max_output_tokens: 8192}}
  v3: {{provider: local, model: rules-baseline, max_output_tokens: 2048}}
"""

SEED_HASH = "f" * 64
"""Of the document whose records are multiplied."""

DOCUMENTS = """
INSERT INTO dynamic_partitions (partitions_def_name, partition)
SELECT :name, encode(sha256(number::text::bytea), 'hex') FROM generate_series(1, :count) AS number
"""

MULTIPLY = """
INSERT INTO event_logs
    (run_id, event, dagster_event_type, timestamp, step_key, asset_key, partition)
SELECT run_id, replace(event, :seed, document.partition), dagster_event_type, timestamp, step_key,
       asset_key, replace(event_logs.partition, :seed, document.partition)
FROM event_logs, dynamic_partitions AS document
WHERE dagster_event_type = 'ASSET_MATERIALIZATION'
  AND event_logs.partition LIKE :seed || '%'
  AND document.partitions_def_name = :name AND document.partition <> :seed
  AND NOT (event_logs.partition LIKE '%|v3' AND document.partition = ANY(:lacking))
"""

MULTIPLY_TAGS = """
INSERT INTO asset_event_tags (event_id, asset_key, key, value, event_timestamp)
SELECT id, asset_key, dimension.key, split_part(partition, '|', dimension.place), timestamp
FROM event_logs,
     (VALUES ('dagster/partition/document', 1), ('dagster/partition/version', 2))
         AS dimension (key, place)
WHERE dagster_event_type = 'ASSET_MATERIALIZATION' AND partition LIKE '%|%'
  AND partition NOT LIKE :seed || '%'
"""

QUESTIONS = {
    "asset page: counts of partitions": """
query ($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
  partitionStats { numMaterialized numPartitions numFailed numMaterializing } } } }""",
    "grid: all keys and statuses": """
query ($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
  partitionKeysByDimension { name type partitionKeys }
  assetPartitionStatuses {
    ... on DefaultPartitionStatuses {
      materializedPartitions failedPartitions unmaterializedPartitions materializingPartitions }
    ... on MultiPartitionStatuses { primaryDimensionName ranges {
      primaryDimStartKey primaryDimEndKey primaryDimStartTime primaryDimEndTime
      secondaryDim { ... on DefaultPartitionStatuses {
        materializedPartitions failedPartitions unmaterializedPartitions
        materializingPartitions } } } } } } } }""",
    "events of the asset": """
query ($key: AssetKeyInput!) { assetOrError(assetKey: $key) { ... on Asset {
  assetMaterializations(limit: 100) { timestamp partition runId
    metadataEntries { label description } } } } }""",
}
"""What the pages of an asset ask for, by the part of the page."""

CATALOG = """
{ assetNodes { assetKey { path }
  partitionStats { numMaterialized numPartitions numFailed numMaterializing }
  assetMaterializations(limit: 1) { timestamp runId } } }"""


def fill(instance: DagsterInstance, url: str, count: int) -> None:
    """Write partitions and records, the last of each by the project's own way."""
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg2"))
    name = partitions_name(BENCH)
    with engine.begin() as connection:
        connection.execute(text(DOCUMENTS), {"name": name, "count": count - 1})
        lacking = list(
            connection.execute(
                text(
                    "SELECT partition FROM dynamic_partitions WHERE partitions_def_name = :name"
                    " ORDER BY id LIMIT :some"
                ),
                {"name": name, "some": count // 100},
            ).scalars()
        )
    instance.add_dynamic_partitions(name, [SEED_HASH])
    write_seed(instance, VERSIONS, {"collection": BENCH, "content_hash": SEED_HASH, "attempt": 1})
    with engine.begin() as connection:
        values = {"seed": SEED_HASH, "name": name, "lacking": lacking}
        connection.execute(text(MULTIPLY), values)
        connection.execute(text(MULTIPLY_TAGS), values)
        # The last record of an asset is that of its highest id, from which its cache is read on.
        connection.execute(text("DELETE FROM asset_keys"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))
    engine.dispose()
    write_seed(instance, VERSIONS[:1], {})
    fail(instance, [extraction_key(one, VERSIONS[-1]) for one in lacking])


def write_seed(
    instance: DagsterInstance, versions: Sequence[str], metadata: Mapping[str, str | int]
) -> None:
    """A record of each asset for the one document, at these versions, by the project's own way."""
    records = []
    for key in assets_of([BENCH]):
        partitions = [extraction_key(SEED_HASH, version) for version in versions]
        if key == documents_asset(BENCH):
            partitions = [SEED_HASH]
        records += [
            AssetMaterialization(key, partition=partition, metadata=metadata)
            for partition in partitions
        ]
    write_records(instance, run_id="fill", job_name="fill", step_key="fill", records=records)


def fail(instance: DagsterInstance, partitions: list[str]) -> None:
    """A failed run that was to make these extractions."""
    run = DagsterRun(job_name="__ASSET_JOB", status=DagsterRunStatus.FAILURE)
    instance.add_run(run)
    planned = AssetMaterializationPlannedData(
        extractions_asset(BENCH), partitions_subset=DefaultPartitionsSubset(set(partitions))
    )
    instance.report_dagster_event(
        DagsterEvent.build_asset_materialization_planned_event(
            run.job_name, "extractions", planned
        ),
        run.run_id,
    )


def ask_all(dagster: Dagster) -> list[list[str | int | float | None]]:
    """The seconds of each question, at first and again."""
    rows: list[list[str | int | float | None]] = []
    for asset in assets_of([BENCH]):
        for part, question in QUESTIONS.items():
            times = [_seconds(dagster, question, asset) for _ in range(2)]
            rows.append([asset.path[-1], part, *(round(one, 1) for one in times)])
    times = [_seconds(dagster, CATALOG, None) for _ in range(2)]
    return [*rows, ["all", "lineage and catalog", *(round(one, 1) for one in times)]]


def _seconds(dagster: Dagster, question: str, asset: AssetKey | None) -> float:
    began = time.perf_counter()
    dagster.ask(question, {"key": {"path": list(asset.path)}} if asset is not None else {})
    return time.perf_counter() - began


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("documents", type=positive, nargs="?", default=10_000)
    parser.add_argument("--serve", action="store_true", help="leave the UI running")
    arguments = parser.parse_args()
    with temporary_folder("benchmark") as root:
        for name in ("documents", "collections"):
            (root / name).mkdir()
        (root / "collections" / "bench.yaml").write_text(
            COLLECTION.format(folder=root / "documents")
        )
        os.environ["EXTRACTION_HOME"] = str(root / "home")
        os.environ["EXTRACTION_COLLECTIONS"] = str(root / "collections")
        with local_stack(load_settings()) as settings, DagsterInstance.get() as instance:
            assert settings.database_url is not None
            began = time.perf_counter()
            fill(instance, settings.database_url.get_secret_value(), arguments.documents)
            print(f"filled in {time.perf_counter() - began:.0f} s")  # noqa: T201
            with running_dagster(settings) as dagster:
                rows = ask_all(dagster)
                print(render_table(["asset", "part", "first, s", "again, s"], rows))  # noqa: T201
                peaks: list[list[str | int | float | None]] = [
                    [kind, round(peak)] for kind, peak in sorted(dagster.peaks.items())
                ]
                print(render_table(["process", "peak MB"], peaks))  # noqa: T201
                if arguments.serve:
                    print(f"{dagster.url}, until Ctrl-C", flush=True)  # noqa: T201
                    _until_interrupted()


def _until_interrupted() -> None:
    try:
        while True:
            time.sleep(1)
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    ended_in_order(main)
