"""Asset backfills as the daemon runs them: one iteration after another, each run for real."""

import logging
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from dagster import AssetKey, DagsterInstance, DagsterRun
from dagster._core.definitions.reconstruct import ReconstructableJob
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.remote_origin import CodeLocationOrigin, InProcessCodeLocationOrigin
from dagster._core.storage.tags import BACKFILL_ID_TAG
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceLoadTarget
from dagster._daemon.backfill import execute_backfill_iteration

from extraction_pipeline_tests.orchestration.installed import Installed, keys

END = (BulkActionStatus.COMPLETED_SUCCESS, BulkActionStatus.COMPLETED_FAILED)


class ThisProcess(WorkspaceLoadTarget):
    """The project's code location, loaded here."""

    def create_origins(self) -> Sequence[CodeLocationOrigin]:
        target = LoadableTargetOrigin(
            executable_path=sys.executable, module_name="extraction_pipeline.definitions"
        )
        return [InProcessCodeLocationOrigin(target, location_name="extraction_pipeline")]


@pytest.fixture
def backfilled(installed: Installed) -> Iterator[Installed]:
    """An installation whose instance executes a run at once when it is submitted, in here."""
    home = Path(installed.instance.root_directory)
    config = yaml.safe_load((home / "dagster.yaml").read_text())
    config["run_coordinator"] = {
        "module": "dagster._core.run_coordinator",
        "class": "DefaultRunCoordinator",
    }
    config["run_launcher"] = {
        "module": "dagster._core.launcher.sync_in_memory_run_launcher",
        "class": "SyncInMemoryRunLauncher",
    }
    at_once = home / "at_once"
    at_once.mkdir()
    (at_once / "dagster.yaml").write_text(yaml.safe_dump(config))
    with DagsterInstance.from_config(str(at_once)) as instance:
        yield replace(installed, instance=instance)


def backfill(
    installed: Installed, assets: Sequence[str], names: Sequence[str]
) -> PartitionBackfill:
    """Run a backfill of assets of `notes` over partitions from its request to its end."""
    # Definitions are kept for the next run of the process; those of before may be others.
    ReconstructableJob.get_repository_definition.cache_clear()
    ReconstructableJob.get_definition.cache_clear()
    backfill_id = uuid.uuid4().hex[:8]
    with WorkspaceProcessContext(installed.instance, ThisProcess()) as process:
        asked = PartitionBackfill.from_asset_partitions(
            backfill_id=backfill_id,
            asset_graph=process.create_request_context().asset_graph,
            partition_names=list(names),
            asset_selection=[AssetKey(["notes", asset]) for asset in assets],
            backfill_timestamp=time.time(),
            tags={},
            dynamic_partitions_store=installed.instance,
            all_partitions=False,
            title=None,
            description=None,
            run_config=None,
        )
        installed.instance.add_backfill(asked)
        for _ in range(10):
            now = installed.instance.get_backfill(backfill_id)
            assert now is not None
            if now.status in END:
                return now
            troubles = execute_backfill_iteration(process, logging.getLogger("backfill"))
            assert not any(troubles)
    raise AssertionError("the backfill came to no end")


def runs_of(installed: Installed, done: PartitionBackfill) -> list[DagsterRun]:
    return [
        run
        for run in installed.instance.get_runs()
        if run.tags.get(BACKFILL_ID_TAG) == done.backfill_id
    ]


def test_a_scattered_half_done_backfill_is_one_job_and_green(backfilled: Installed) -> None:
    hashes = backfilled.with_documents(7)
    assert backfilled.submit(document_hashes=hashes[0:3:2]).success
    backfilled.driver().wait()
    before = backfilled.provider_jobs()
    scattered = hashes[0::2]
    done = backfill(backfilled, ["batch_submissions"], sorted(keys(scattered)))
    assert done.status is BulkActionStatus.COMPLETED_SUCCESS
    assert len(runs_of(backfilled, done)) == 4, "one run for each contiguous range"
    assert backfilled.provider_jobs() - before == 1
    assert backfilled.query("SELECT request_count FROM extraction.batch_jobs ORDER BY id") == [2, 2]
    assert backfilled.materialized("batch_submissions") == keys(scattered)
    backfilled.driver().wait()
    assert backfilled.materialized("extractions") == keys(scattered) == backfilled.ledger_keys()


def test_of_a_backfill_with_unreadable_documents_only_those_fail(backfilled: Installed) -> None:
    hashes = backfilled.with_documents(3, ("empty.txt", b""), ("empty.pdf", b"%PDF-"))
    unreadable = backfilled.query(
        "SELECT document_hash FROM extraction.documents WHERE state = 'unreadable'"
    )
    before = backfilled.provider_jobs()
    done = backfill(backfilled, ["batch_submissions"], sorted(keys(hashes)))
    assert done.status is BulkActionStatus.COMPLETED_FAILED
    assert backfilled.provider_jobs() - before == 1
    data = done.get_asset_backfill_data(backfilled.definitions.resolve_asset_graph())
    key = AssetKey(["notes", "batch_submissions"])
    failed = data.failed_and_downstream_subset.get_partitions_subset(key)
    passed = data.materialized_subset.get_partitions_subset(key)
    assert set(failed.get_partition_keys()) == keys(unreadable)
    assert set(passed.get_partition_keys()) == keys(set(hashes) - set(unreadable))


def test_a_new_version_is_backfilled_over_what_the_old_one_has(backfilled: Installed) -> None:
    hashes = backfilled.with_documents(5)
    backfilled.finish()
    backfilled = backfilled.redeclared("  v2: {provider: local, model: rules-baseline}\n")
    before = backfilled.provider_jobs()
    chosen = keys([hashes[0], hashes[2], hashes[4]], "v2")
    asked = sorted(chosen | keys([hashes[1]]))
    done = backfill(backfilled, ["batch_submissions"], asked)
    assert done.status is BulkActionStatus.COMPLETED_SUCCESS
    assert backfilled.provider_jobs() - before == 1, "v1 was done before"
    backfilled.driver().wait()
    assert backfilled.ledger_keys("v2") == chosen
    assert backfilled.materialized("extractions") == keys(hashes) | chosen


def test_a_backfill_of_both_stages_ends_before_the_answers_come(backfilled: Installed) -> None:
    """Submission and extraction asked for together: the answers are published by themselves."""
    hashes = backfilled.with_documents(3)
    done = backfill(backfilled, ["batch_submissions", "extractions"], sorted(keys(hashes)))
    assert done.status is BulkActionStatus.COMPLETED_SUCCESS
    assert backfilled.materialized("batch_submissions") == keys(hashes)
    assert backfilled.materialized("extractions") == set()
    backfilled.driver().wait()
    assert backfilled.materialized("extractions") == keys(hashes)
