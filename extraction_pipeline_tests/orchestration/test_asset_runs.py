"""Runs of the assets, executed for real: what passed is green, the rest red, nothing twice."""

from collections import Counter

from dagster import AssetKey, DagsterEventType
from dagster._core.instance import DagsterInstance
from dagster._core.storage.partition_status_cache import AssetPartitionStatus

from extraction_pipeline.orchestration.resource import opened_pipeline
from extraction_pipeline_tests.orchestration.installed import (
    Installed,
    cause,
    keys,
    metadata_of,
)

EMPTY = ("empty.txt", b"")
BROKEN = ("broken.pdf", b"%PDF-1.4\nno more")


def test_a_run_over_a_range_marks_what_a_provider_has_and_fails_for_the_rest(
    installed: Installed,
) -> None:
    hashes = installed.with_documents(3, EMPTY, BROKEN)
    readable = set(installed.query("SELECT document_hash FROM extraction.documents WHERE state = 'readable'"))
    before = installed.provider_jobs()
    result = installed.materialize("batch_submissions", f"{hashes[0]}|v1", f"{hashes[-1]}|v1")
    assert not result.success
    assert cause(result) == (
        "2 of 5 documents did not pass: 1 unreadable: empty, 1 unreadable: truncated_or_corrupt."
    ) or cause(result) == (
        "2 of 5 documents did not pass: 1 unreadable: truncated_or_corrupt, 1 unreadable: empty."
    )
    assert installed.materialized("batch_submissions") == keys(readable)
    assert installed.provider_jobs() - before == 1
    colours = colours_of(installed, "batch_submissions")
    assert {key for key, colour in colours.items() if colour is AssetPartitionStatus.FAILED} == (
        keys(set(hashes) - readable)
    )


def colours_of(installed: Installed, asset: str) -> dict[str, AssetPartitionStatus | None]:
    """What the grid shows for each document at v1."""
    key = AssetKey(["notes", asset])
    node = installed.definitions.resolve_asset_graph().get(key)
    assert node.partitions_def is not None
    status = installed.instance.get_status_by_partition(
        key, sorted(keys(installed.partitions())), node.partitions_def
    )
    assert status is not None
    return dict(status)
