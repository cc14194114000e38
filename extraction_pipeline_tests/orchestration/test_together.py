"""Two of everything: backfills, nights and daemons over the same documents at the same moment.

The counts are the provider's own; a run that came second is green where its documents are with the
provider, whoever brought them there.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from extraction_pipeline.orchestration.partitions import NIGHTLY
from extraction_pipeline.orchestration.sensors import tick
from extraction_pipeline_tests.batch_server.process import wait_until
from extraction_pipeline_tests.faults.actions import Hold
from extraction_pipeline_tests.faults.proxy import CREATE, Proxy
from extraction_pipeline_tests.orchestration.conftest import HELD_SECONDS
from extraction_pipeline_tests.orchestration.installed import Installed, keys
from extraction_pipeline_tests.orchestration.processes import asset_process, ended_well

STAGES = ("batch_submissions", "raw_responses", "extractions")


@pytest.mark.usefixtures("patient")
def test_backfills_and_a_night_over_the_same_documents_are_one_job(
    installed: Installed, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are under way together: one is held at the provider until all have begun."""
    monkeypatch.setenv("EXTRACTION_NIGHTLY_START", "2026-03-01")
    hashes = installed.with_documents(5)
    chosen = f"{hashes[0]}|v1...{hashes[4]}|v1"
    hold = Hold(forward=True)
    proxy.plan(CREATE, hold)
    with ExitStack() as stack:
        runs = [
            stack.enter_context(asset_process(installed, asset, partition))
            for asset, partition in (
                ("notes/batch_submissions", chosen),
                ("notes/batch_submissions", chosen),
                (NIGHTLY, "2026-11-20"),
            )
        ]
        assert hold.reached.wait(HELD_SECONDS)
        began = "SELECT count(*) FROM event_logs WHERE dagster_event_type = 'STEP_START'"
        wait_until(lambda: installed.query(began) == [len(runs)], HELD_SECONDS)
        hold.release.set()
        for run in runs:
            ended_well(run)
    assert proxy.count(CREATE) == 1
    assert installed.query("SELECT request_count FROM extraction.batch_jobs") == [5]
    installed.finish()
    for stage in STAGES:
        assert installed.materialized(stage) == keys(hashes), stage
    assert installed.ledger_keys() == keys(hashes)
    assert proxy.count(CREATE) == 1


def test_of_two_daemons_one_asks_for_the_run_and_a_second_run_changes_nothing(
    installed: Installed,
) -> None:
    hashes = installed.with_documents(3)
    key = installed.ended_job()
    together = threading.Barrier(2)

    def daemon(_: int) -> int:
        together.wait(20)
        return len(tick(installed.pipeline, installed.instance).requests)

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(daemon, range(2))) == [0, 1]
    for _ in range(2):
        run = installed.run("collect_batch", "collect_batch_results", {"job_key": key})
        assert run.success
    assert installed.query("SELECT count(*) FROM extraction.raw_responses") == [3]
    assert installed.ledger_keys() == keys(hashes) == installed.materialized("extractions")
    assert len(installed.records("extractions")) == 3


def test_field_report_3_deleted_runs_take_nothing_with_them(installed: Installed) -> None:
    """The records of a run go with it; what the provider has and was paid for does not."""
    hashes = installed.with_documents(3)
    before = installed.provider_jobs()
    assert installed.submit().success
    for run in installed.instance.get_runs():
        installed.instance.delete_run(run.run_id)
    assert installed.materialized("batch_submissions") == set()
    assert installed.submit().success
    installed.finish()
    assert installed.provider_jobs() - before == 1
    assert installed.ledger_keys() == keys(hashes) == installed.materialized("extractions")
    assert installed.run("reconcile_records", "reconcile_with_ledger", {}).success
    assert installed.materialized("batch_submissions") == keys(hashes)
