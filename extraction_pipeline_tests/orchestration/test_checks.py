"""Checks name what is wrong: records that lie, records that lack, jobs that stand still."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetCheckSeverity,
    AssetKey,
    AssetMaterialization,
    TableMetadataValue,
)

from extraction_pipeline_tests.orchestration.installed import Installed, cause, keys, let_go_of_runs

EXTRACTIONS = AssetKey(["notes", "extractions"])
ASSETS = ("documents", "batch_submissions", "raw_responses", "extractions")
AGREE = AssetCheckKey(EXTRACTIONS, "records_agree_with_ledger")
READABLE = AssetCheckKey(AssetKey(["notes", "documents"]), "all_readable")
STUCK = AssetCheckKey(AssetKey(["notes", "batch_submissions"]), "nothing_stuck")


def agree(asset: str) -> AssetCheckKey:
    return AssetCheckKey(AssetKey(["notes", asset]), "records_agree_with_ledger")


def evaluate(installed: Installed, check: AssetCheckKey) -> AssetCheckEvaluation:
    result = (
        installed.definitions.resolve_implicit_global_asset_job_def()
        .get_subset(asset_check_selection={check})
        .execute_in_process(instance=installed.instance)
    )
    let_go_of_runs(installed.pipeline)
    (evaluation,) = result.get_asset_check_evaluations()
    return evaluation


def named(evaluation: AssetCheckEvaluation) -> dict[str, list[str]]:
    """What the evaluation names, by the kind of trouble; kinds without any are left out."""
    lists: dict[str, Any] = {
        name: value.value
        for name, value in evaluation.metadata.items()
        if isinstance(value.value, dict) and "first" in value.value
    }
    assert all(one["count"] == len(one["first"]) for one in lists.values())
    return {name: one["first"] for name, one in lists.items() if one["first"]}


@pytest.fixture
def hashes(installed: Installed) -> list[str]:
    """Three published documents."""
    found = installed.with_documents(3)
    installed.finish()
    return found


def forge(
    installed: Installed, partition: str | None, asset: str = "extractions", **metadata: str
) -> None:
    """Report a materialization past the pipeline, as anybody who reaches the webserver can."""
    installed.instance.report_runless_asset_event(
        AssetMaterialization(AssetKey(["notes", asset]), partition=partition, metadata=metadata)
    )


def forget(installed: Installed, asset: str, partition: str) -> None:
    """Delete the record of a partition, as a wipe or a deleted run does."""
    installed.execute(
        "DELETE FROM event_logs WHERE dagster_event_type = 'ASSET_MATERIALIZATION'"
        " AND asset_key = :asset AND partition = :partition",
        asset=json.dumps(["notes", asset]),
        partition=partition,
    )


def reconcile(installed: Installed, **config: object) -> int:
    result = installed.run("reconcile_records", "reconcile_with_ledger", config)
    assert result.success
    (output,) = [event for event in result.all_events if event.is_successful_output]
    written = output.step_output_data.metadata["notes"].value
    assert isinstance(written, int)
    return written


def test_records_and_ledger_agree_after_a_normal_way(
    installed: Installed, hashes: list[str]
) -> None:
    evaluation = evaluate(installed, AGREE)
    assert evaluation.passed
    assert named(evaluation) == {}
    assert evaluation.metadata["in_ledger"].value == 3


def test_a_forged_record_is_named(installed: Installed, hashes: list[str]) -> None:
    forge(installed, f"{'f' * 64}|v1")
    evaluation = evaluate(installed, AGREE)
    assert not evaluation.passed
    assert evaluation.severity is AssetCheckSeverity.ERROR
    assert named(evaluation) == {"records_without_row": [f"{'f' * 64}|v1"]}


def test_a_record_of_no_partition_is_named_until_a_person_wipes_the_asset(
    installed: Installed, hashes: list[str]
) -> None:
    forge(installed, None)
    evaluation = evaluate(installed, AGREE)
    assert not evaluation.passed
    assert evaluation.description == "1 record of no document"
    (when,) = named(evaluation)["records_without_partition"]
    assert datetime.now(UTC) - datetime.fromisoformat(when.replace(" UTC", "+00:00")) < timedelta(
        minutes=5
    )
    assert reconcile(installed) == 0
    forge(installed, None)
    forge(installed, f"{'f' * 64}|v1")
    assert evaluate(installed, AGREE).description == (
        "1 record without a row in the ledger, 2 records of no document"
    )
    installed.instance.wipe_assets([EXTRACTIONS])
    assert reconcile(installed) == 3
    assert evaluate(installed, AGREE).passed, "as the check's description says"


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
    forget(installed, "extractions", f"{hashes[1]}|v1")
    installed.execute("UPDATE extraction.batch_jobs SET results_recorded_at = NULL")
    assert evaluate(installed, AGREE).passed, "a run may be writing it just now"
    installed.execute("UPDATE extraction.extractions SET published_at = now() - interval '1 hour'")
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
        ("created_at = now() - interval '25 hours'", False),
        ("created_at = now() - interval '27 hours'", True),
        ("state = 'published', created_at = now() - interval '27 hours'", False),
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


def test_a_second_batch_is_named_until_its_job_has_settled_it(installed: Installed) -> None:
    installed.with_documents(1)
    assert installed.submit().success
    (key,) = installed.query("SELECT job_key FROM extraction.batch_jobs")
    installed.execute(
        "INSERT INTO extraction.audit_events (event, actor, batch_job_id, details)"
        " SELECT 'duplicate_job', 'a', id, '{\"job_id\": \"batch_2\"}' FROM extraction.batch_jobs"
    )
    evaluation = evaluate(installed, STUCK)
    assert (evaluation.passed, named(evaluation)) == (False, {"batch_jobs": [key]})
    why = evaluation.metadata["why"]
    assert isinstance(why, TableMetadataValue)
    (row,) = why.records
    assert (row.data["batch"], row.data["reason"]) == ("batch_2", "exists_twice")
    chosen = {"job_key": key, "provider_job_id": "batch_2", "reason": "cancelled by hand"}
    done = installed.run("settle_second_batch", "settle_found_batch", chosen)
    (output,) = [event for event in done.all_events if event.is_successful_output]
    assert output.step_output_data.metadata["state"].value == "gone"
    assert evaluate(installed, STUCK).passed
    again = installed.run("settle_second_batch", "settle_found_batch", chosen)
    assert "is no second batch of job" in cause(again)


def test_the_nightly_job_runs_all_checks(installed: Installed, hashes: list[str]) -> None:
    forge(installed, f"{'f' * 64}|v1")
    result = installed.definitions.resolve_job_def("nightly").execute_in_process(
        instance=installed.instance, partition_key="2026-11-20"
    )
    assert result.success, "a check that fails is shown, and fails no night"
    assert {(one.asset_check_key, one.passed) for one in result.get_asset_check_evaluations()} == {
        (AGREE, False),
        *((agree(asset), True) for asset in ASSETS[:3]),
        (READABLE, True),
        (STUCK, True),
    }
    assert installed.materialized("extractions") == {*keys(hashes), f"{'f' * 64}|v1"}


def test_a_check_without_its_tables_says_so_in_one_line(installed: Installed) -> None:
    installed.execute("UPDATE extraction.alembic_version SET version_num = '0001'")
    result = (
        installed.definitions.resolve_implicit_global_asset_job_def()
        .get_subset(asset_check_selection={AGREE})
        .execute_in_process(instance=installed.instance, raise_on_error=False)
    )
    assert cause(result).endswith("Run: extraction-pipeline migrate")


@pytest.mark.parametrize("asset", ASSETS)
def test_every_stage_is_compared_and_what_lacks_is_written_again(
    installed: Installed, hashes: list[str], asset: str
) -> None:
    suffix = "" if asset == "documents" else "|v1"
    assert evaluate(installed, agree(asset)).passed
    forget(installed, asset, f"{hashes[1]}{suffix}")
    forge(installed, f"{'f' * 64}{suffix}", asset)
    forge(installed, f"{hashes[2]}{suffix}", asset)
    assert named(evaluate(installed, agree(asset))) == {
        "records_without_row": [f"{'f' * 64}{suffix}"],
        "rows_without_record": [f"{hashes[1]}{suffix}"],
        "records_of_other_content": [f"{hashes[2]}{suffix}"],
    }
    assert reconcile(installed) == 1
    assert named(evaluate(installed, agree(asset))) == {
        "records_without_row": [f"{'f' * 64}{suffix}"],
        "records_of_other_content": [f"{hashes[2]}{suffix}"],
    }
    assert reconcile(installed) == 0
    assert reconcile(installed, also_differing=True) == 1
    assert named(evaluate(installed, agree(asset))) == {
        "records_without_row": [f"{'f' * 64}{suffix}"]
    }


def test_a_comparison_goes_through_any_number_of_records_in_pieces(
    installed: Installed, hashes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("extraction_pipeline.orchestration.comparing.EVENTS_AT_ONCE", 3)
    monkeypatch.setattr("extraction_pipeline.ledger.stages.CHUNK", 2)
    forge(installed, f"{'e' * 64}|v1")
    forget(installed, "extractions", f"{hashes[0]}|v1")
    assert named(evaluate(installed, AGREE)) == {
        "records_without_row": [f"{'e' * 64}|v1"],
        "rows_without_record": [f"{hashes[0]}|v1"],
    }


def test_the_night_writes_what_lacks_and_its_checks_look_after_it(
    installed: Installed, hashes: list[str]
) -> None:
    forget(installed, "raw_responses", f"{hashes[0]}|v1")
    result = installed.definitions.resolve_job_def("nightly").execute_in_process(
        instance=installed.instance, partition_key="2026-11-20"
    )
    assert [one.passed for one in result.get_asset_check_evaluations()] == [True] * 6
    started = [event.step_key for event in result.all_events if event.is_step_start]
    assert started == ["nightly_refresh", "notes__checks"]


def test_unreadable_documents_are_named_with_their_reasons(installed: Installed) -> None:
    assert evaluate(installed, READABLE).passed
    installed.with_documents(1, ("empty.txt", b""), ("broken.pdf", b"%PDF-1.4\nno more"))
    evaluation = evaluate(installed, READABLE)
    assert not evaluation.passed
    assert evaluation.severity is AssetCheckSeverity.WARN
    assert evaluation.metadata["by_reason"].value == {"empty": 1, "truncated_or_corrupt": 1}
    table = evaluation.metadata["documents"]
    assert isinstance(table, TableMetadataValue)
    assert sorted(str(row.data["reason"]) for row in table.records) == [
        "empty",
        "truncated_or_corrupt",
    ]


def test_what_was_published_before_the_store_failed_is_recorded_and_the_rest_later(
    installed: Installed, hashes: list[str]
) -> None:
    installed.workplace.write(2, start=3)
    installed.driver().scan(["notes"])
    assert installed.submit().success
    installed.ended()
    (job,) = installed.query("SELECT job_key FROM extraction.batch_jobs WHERE state = 'ended'")
    lost, *_ = installed.query(
        "SELECT i.text_hash FROM extraction.batch_items i"
        " JOIN extraction.batch_jobs j ON j.id = i.batch_job_id WHERE j.job_key = :job",
        job=job,
    )
    (path,) = (installed.workplace.root / "home").rglob(f"*{lost[4:]}*")
    kept = path.read_bytes()
    path.unlink()
    for _ in range(2):
        result = installed.run("collect_batch", "collect_batch_results", {"job_key": job})
        assert "1 answers wait" in cause(result)
        assert installed.materialized("extractions") == installed.ledger_keys()
        assert len(installed.ledger_keys()) == 4
        assert len(installed.records("extractions")) == 4, "each is written once"
        assert len(installed.materialized("raw_responses")) == 5
    path.write_bytes(kept)
    assert installed.run("collect_batch", "collect_batch_results", {"job_key": job}).success
    assert installed.materialized("extractions") == installed.ledger_keys()
    assert len(installed.ledger_keys()) == 5
    assert evaluate(installed, AGREE).passed


def test_rows_of_a_publication_that_broke_off_are_due_after_a_while(
    installed: Installed, hashes: list[str]
) -> None:
    forget(installed, "extractions", f"{hashes[1]}|v1")
    installed.execute(
        "UPDATE extraction.batch_jobs SET state = 'collected', published_at = NULL,"
        " results_recorded_at = NULL"
    )
    assert evaluate(installed, AGREE).passed
    installed.execute("UPDATE extraction.extractions SET published_at = now() - interval '1 hour'")
    assert named(evaluate(installed, AGREE)) == {"rows_without_record": [f"{hashes[1]}|v1"]}


def test_a_held_job_is_given_up_by_a_person_and_its_documents_are_asked_about_again(
    installed: Installed,
) -> None:
    hashes = installed.with_documents(2)
    assert installed.submit().success
    (key,) = installed.query("SELECT job_key FROM extraction.batch_jobs")
    refused = installed.run(
        "give_up_batch", "give_up_held_batch", {"job_key": key, "reason": "it is gone"}
    )
    assert "Only a job can be given up that is held" in cause(refused)
    installed.execute("UPDATE extraction.batch_jobs SET state = 'held'")
    assert installed.run(
        "give_up_batch", "give_up_held_batch", {"job_key": key, "reason": "it is gone"}
    ).success
    assert installed.query("SELECT state FROM extraction.batch_jobs") == ["failed"]
    installed.finish()
    assert installed.ledger_keys() == keys(hashes)
