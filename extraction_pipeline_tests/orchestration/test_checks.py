"""Checks name what is wrong: records that lie, records that lack, jobs that stand still."""

from typing import Any

import pytest
from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetCheckSeverity,
    AssetKey,
    AssetMaterialization,
)

from extraction_pipeline_tests.orchestration.installed import Installed, cause, keys

EXTRACTIONS = AssetKey(["notes", "extractions"])
AGREE = AssetCheckKey(EXTRACTIONS, "records_agree_with_ledger")
STUCK = AssetCheckKey(AssetKey(["notes", "batch_submissions"]), "nothing_stuck")


def evaluate(installed: Installed, check: AssetCheckKey) -> AssetCheckEvaluation:
    result = (
        installed.definitions.resolve_implicit_global_asset_job_def()
        .get_subset(asset_check_selection={check})
        .execute_in_process(instance=installed.instance)
    )
    (evaluation,) = result.get_asset_check_evaluations()
    return evaluation


def named(evaluation: AssetCheckEvaluation) -> dict[str, list[str]]:
    """What the evaluation names, by the kind of trouble; kinds without any are left out."""
    lists: dict[str, Any] = {
        name: value.value
        for name, value in evaluation.metadata.items()
        if isinstance(value.value, dict)
    }
    assert all(one["count"] == len(one["first"]) for one in lists.values())
    return {name: one["first"] for name, one in lists.items() if one["first"]}


@pytest.fixture
def hashes(installed: Installed) -> list[str]:
    """Three published documents."""
    found = installed.with_documents(3)
    installed.finish()
    return found


def forge(installed: Installed, partition: str, **metadata: str) -> None:
    """Report a materialization past the pipeline, as anybody who reaches the webserver can."""
    installed.instance.report_runless_asset_event(
        AssetMaterialization(EXTRACTIONS, partition=partition, metadata=metadata)
    )


def test_records_and_ledger_agree_after_a_normal_way(
    installed: Installed, hashes: list[str]
) -> None:
    evaluation = evaluate(installed, AGREE)
    assert evaluation.passed
    assert named(evaluation) == {}
    assert evaluation.metadata["published"].value == 3
    assert evaluation.metadata["recorded"].value == 3


def test_a_forged_record_is_named(installed: Installed, hashes: list[str]) -> None:
    forge(installed, f"{'f' * 64}|v1")
    evaluation = evaluate(installed, AGREE)
    assert not evaluation.passed
    assert evaluation.severity is AssetCheckSeverity.ERROR
    assert named(evaluation) == {"records_without_row": [f"{'f' * 64}|v1"]}


def test_a_record_that_names_another_content_is_named(
    installed: Installed, hashes: list[str]
) -> None:
    forge(installed, f"{hashes[0]}|v1", extraction_hash="e" * 64)
    forge(installed, f"{hashes[2]}|v1")
    evaluation = evaluate(installed, AGREE)
    assert not evaluation.passed
    assert named(evaluation) == {
        "records_of_other_content": sorted([f"{hashes[0]}|v1", f"{hashes[2]}|v1"])
    }
    installed.materialize("extractions", f"{hashes[0]}|v1", f"{hashes[2]}|v1")
    assert evaluate(installed, AGREE).passed, "a replay puts the records right"


def test_a_record_that_lacks_is_named_once_it_is_due(
    installed: Installed, hashes: list[str]
) -> None:
    installed.execute(
        "DELETE FROM event_logs WHERE dagster_event_type = 'ASSET_MATERIALIZATION'"
        ' AND asset_key = \'["notes", "extractions"]\' AND partition = :partition',
        partition=f"{hashes[1]}|v1",
    )
    installed.execute("UPDATE extraction.batch_jobs SET results_recorded_at = NULL")
    assert evaluate(installed, AGREE).passed, "a run may be writing it just now"
    installed.execute("UPDATE extraction.batch_jobs SET published_at = now() - interval '1 hour'")
    evaluation = evaluate(installed, AGREE)
    assert not evaluation.passed
    assert named(evaluation) == {"rows_without_record": [f"{hashes[1]}|v1"]}


def test_of_many_the_first_are_named_and_all_are_counted(
    installed: Installed, hashes: list[str]
) -> None:
    for number in range(25):
        forge(installed, f"{number:064x}|v1")
    listed: Any = evaluate(installed, AGREE).metadata["records_without_row"].value
    assert listed["count"] == 25
    assert listed["first"] == [f"{number:064x}|v1" for number in range(20)]


@pytest.mark.parametrize(
    ("change", "stuck"),
    [
        ("state = state", False),
        ("state = 'unresolved', created_at = now() - interval '1 minute'", True),
        ("state = 'held'", True),
        ("created_at = now() - interval '23 hours'", False),
        ("created_at = now() - interval '25 hours'", True),
        ("state = 'published', created_at = now() - interval '25 hours'", False),
    ],
)
def test_a_job_that_needs_a_person_is_named(installed: Installed, change: str, stuck: bool) -> None:
    installed.with_documents(1)
    assert installed.submit().success
    (key,) = installed.query("SELECT job_key FROM extraction.batch_jobs")
    installed.execute(f"UPDATE extraction.batch_jobs SET {change}")
    evaluation = evaluate(installed, STUCK)
    assert evaluation.passed is not stuck
    assert evaluation.severity is AssetCheckSeverity.WARN
    assert named(evaluation) == ({"batch_jobs": [key]} if stuck else {})


def test_the_nightly_job_runs_all_checks(installed: Installed, hashes: list[str]) -> None:
    forge(installed, f"{'f' * 64}|v1")
    result = installed.definitions.resolve_job_def("nightly").execute_in_process(
        instance=installed.instance, partition_key="2026-11-20"
    )
    assert result.success, "a check that fails is shown, and fails no night"
    assert {(one.asset_check_key, one.passed) for one in result.get_asset_check_evaluations()} == {
        (AGREE, False),
        (STUCK, True),
    }
    assert installed.materialized("extractions") == {*keys(hashes), f"{'f' * 64}|v1"}


def test_a_check_without_its_tables_says_so_in_one_line(installed: Installed) -> None:
    installed.execute("UPDATE extraction.alembic_version SET version_num = '0000'")
    result = (
        installed.definitions.resolve_implicit_global_asset_job_def()
        .get_subset(asset_check_selection={AGREE})
        .execute_in_process(instance=installed.instance, raise_on_error=False)
    )
    assert cause(result).endswith("Run: extraction-pipeline migrate")
