"""Runs of the assets, executed for real: what passed is green, the rest red, nothing twice."""

from collections import Counter

from dagster import AssetKey, DagsterEventType, DagsterRunStatus
from dagster._core.storage.partition_status_cache import AssetPartitionStatus

from extraction_pipeline.orchestration.partitions import add_documents
from extraction_pipeline_tests.orchestration.installed import (
    Installed,
    cause,
    keys,
    metadata_of,
)

EMPTY = ("empty.txt", b"")
BROKEN = ("broken.pdf", b"%PDF-1.4\nno more")


def test_a_range_marks_what_a_provider_has_and_fails_for_the_rest(installed: Installed) -> None:
    hashes = installed.with_documents(3, EMPTY, BROKEN)
    before = installed.provider_jobs()
    result = installed.materialize("batch_submissions", f"{hashes[0]}|v1", f"{hashes[-1]}|v1")
    assert not result.success
    unreadable = sorted(set(hashes) - set(readable(installed)))
    assert cause(result) == (
        "2 of 5 documents did not pass: 1 unreadable: empty, 1 unreadable: truncated_or_corrupt. "
        "Unreadable is final until another file takes the document's place: "
        f"{unreadable[0][:12]}, {unreadable[1][:12]}."
    )
    assert installed.materialized("batch_submissions") == keys(readable(installed))
    assert colours_of(installed, "batch_submissions") == {
        **dict.fromkeys(keys(hashes), AssetPartitionStatus.FAILED),
        **dict.fromkeys(keys(readable(installed)), AssetPartitionStatus.MATERIALIZED),
    }
    assert installed.provider_jobs() - before == 1


def test_what_was_submitted_before_is_recorded_again_and_not_sent_again(
    installed: Installed,
) -> None:
    hashes = installed.with_documents(4)
    first = installed.materialize("batch_submissions", f"{hashes[1]}|v1")
    jobs = installed.provider_jobs()
    assert first.success
    assert installed.materialized("batch_submissions") == keys(hashes[1:2])
    again = installed.materialize("batch_submissions", f"{hashes[1]}|v1")
    assert again.success
    assert installed.provider_jobs() == jobs
    whole = installed.materialize("batch_submissions", f"{hashes[0]}|v1", f"{hashes[-1]}|v1")
    assert whole.success
    assert installed.provider_jobs() - jobs == 1
    written = installed.records("batch_submissions")
    assert Counter(record.partition_key for record in written) == {
        key: 3 if key == f"{hashes[1]}|v1" else 1 for key in keys(hashes)
    }
    job_ids = {
        metadata_of(record.asset_materialization)["job_id"]
        for record in written
        if record.partition_key == f"{hashes[1]}|v1" and record.asset_materialization
    }
    assert len(job_ids) == 1


def test_a_range_over_both_dimensions_makes_one_job_a_version(installed: Installed) -> None:
    installed = installed.redeclared("  v2: {provider: local, model: rules-baseline}\n")
    hashes = installed.with_documents(3)
    before = installed.provider_jobs()
    result = installed.materialize("batch_submissions", f"{hashes[0]}|v1", f"{hashes[-1]}|v2")
    assert result.success
    assert installed.materialized("batch_submissions") == keys(hashes) | keys(hashes, "v2")
    assert installed.provider_jobs() - before == 2


def test_without_a_provider_the_run_fails_in_one_line_and_the_sensor_carries_on(
    installed: Installed,
) -> None:
    hashes = installed.with_documents(2)
    before = installed.provider_jobs()
    installed.disconnect()
    result = installed.materialize("batch_submissions", f"{hashes[0]}|v1", f"{hashes[1]}|v1")
    assert not result.success
    assert cause(result).startswith("2 of 2 documents did not pass: 2 waiting. Job notes.v1.")
    assert "no connection could be made" in cause(result)
    assert "\n" not in cause(result)
    assert installed.materialized("batch_submissions") == set()
    installed.reconnect()
    installed.execute("UPDATE extraction.batch_jobs SET due_at = now()")
    installed.driver().wait()
    assert installed.materialized("batch_submissions") == keys(hashes)
    assert installed.materialized("extractions") == keys(hashes)
    assert installed.provider_jobs() - before == 1


def test_a_partition_that_no_scan_has_registered_is_named(installed: Installed) -> None:
    hashes = installed.with_documents(1)
    add_documents(installed.instance, "notes", ["f" * 64])
    for asset, suffix in (("batch_submissions", "|v1"), ("extractions", "|v1"), ("documents", "")):
        result = installed.materialize(asset, f"{'f' * 64}{suffix}")
        assert not result.success
        assert cause(result).startswith("1 of 1 documents did not pass: 1 ")
        assert f"{'f' * 64}{suffix}" not in installed.materialized(asset)
    assert installed.materialized("documents") == set(hashes)


def test_documents_that_wait_for_their_answer_do_not_fail_extractions(
    installed: Installed,
) -> None:
    hashes = installed.with_documents(2)
    assert installed.submit().success
    result = installed.materialize("extractions", f"{hashes[0]}|v1", f"{hashes[1]}|v1")
    assert result.success
    assert installed.materialized("extractions") == set()
    installed.driver().wait()
    assert installed.materialized("extractions") == keys(hashes)


def test_extractions_are_normalized_again_without_any_provider(installed: Installed) -> None:
    hashes = installed.with_documents(3, EMPTY)
    installed.finish()
    bodies = installed.query("SELECT body FROM extraction.extractions ORDER BY document_id")
    installed.execute(
        "UPDATE extraction.extractions SET body = '{}', body_hash = repeat('0', 64)"
        " WHERE id IN (SELECT min(id) FROM extraction.extractions)"
    )
    written = len(installed.records("extractions"))
    installed.disconnect()
    result = installed.materialize("extractions", f"{hashes[0]}|v1", f"{hashes[-1]}|v1")
    assert cause(result).startswith("1 of 4 documents did not pass: 1 unreadable: empty. ")
    assert installed.query("SELECT body FROM extraction.extractions ORDER BY document_id") == bodies
    again = installed.records("extractions")[written:]
    assert {record.partition_key for record in again} == keys(readable(installed))
    assert {record.run_id for record in again} == {result.run_id}
    assert installed.query("SELECT count(*) FROM extraction.batch_jobs") == [1]


def test_documents_are_read_again_and_those_that_changed_or_vanished_are_red(
    installed: Installed,
) -> None:
    hashes = installed.with_documents(4, EMPTY)
    by_path = dict(
        installed.query(
            "SELECT s.path, d.document_hash FROM extraction.document_sources s"
            " JOIN extraction.documents d ON d.id = s.document_id"
        )
    )
    folder = installed.workplace.documents / "notes"
    (folder / "note-00001.txt").unlink()
    (folder / "note-00002.txt").write_text("DISCHARGE SUMMARY\n\nSomething else.\n")
    written = len(installed.records("documents"))
    result = installed.materialize("documents", hashes[0], hashes[-1])
    assert cause(result).startswith(
        "3 of 5 documents did not pass: 1 could not be read from its source, "
        "1 its source holds another content now, 1 unreadable: empty. Unreadable is final "
    )
    again = installed.records("documents")[written:]
    assert {record.partition_key for record in again} == {
        by_path["note-00000.txt"],
        by_path["note-00003.txt"],
    }
    seen = installed.records("documents", DagsterEventType.ASSET_OBSERVATION)
    assert {record.partition_key for record in seen} == {by_path["empty.txt"]}
    observation = seen[-1].event_log_entry.asset_observation
    assert observation is not None
    assert observation.metadata["reason"].value == "empty"


def test_a_failed_run_is_not_repeated_by_itself(installed: Installed) -> None:
    """Nothing here gets better by running again at once; the sensor carries on what can be."""
    hashes = installed.with_documents(0, EMPTY)
    result = installed.materialize("batch_submissions", f"{hashes[0]}|v1")
    assert not any(event.is_step_up_for_retry for event in result.all_events)
    run = installed.instance.get_run_by_id(result.run_id)
    assert run is not None
    assert run.status is DagsterRunStatus.FAILURE


def readable(installed: Installed) -> list[str]:
    return installed.query(
        "SELECT document_hash FROM extraction.documents WHERE state = 'readable'"
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
