"""Jobs over scattered documents: what they record, and what they say when they cannot."""

import json

import pytest
from dagster import DagsterEventType, ExecuteInProcessResult

from extraction_pipeline_tests.faults.proxy import Proxy
from extraction_pipeline_tests.orchestration.installed import (
    Installed,
    cause,
    keys,
    metadata_of,
)


def told(result: ExecuteInProcessResult) -> dict[str, object]:
    """The metadata of the only output of a run."""
    (output,) = [event for event in result.all_events if event.is_successful_output]
    return {name: value.value for name, value in output.step_output_data.metadata.items()}


def scan(installed: Installed) -> ExecuteInProcessResult:
    return installed.run("scan_collections", "scan_documents", {"collections": []})


def test_a_scan_adds_partitions_and_says_what_it_found(installed: Installed) -> None:
    first, second = installed.workplace.write(2)
    folder = installed.workplace.documents / "notes"
    (folder / "twin.txt").write_bytes(first.read_bytes())
    (folder / "empty.txt").write_bytes(b"")
    found = told(scan(installed))
    assert (found["notes: new"], found["notes: recorded"]) == (3, 3)
    hashes = installed.partitions()
    assert len(hashes) == 3
    seen = installed.records("documents", DagsterEventType.ASSET_OBSERVATION)
    assert installed.materialized("documents") == set(hashes) - {seen[0].partition_key}
    of_twins = [
        metadata_of(record.asset_materialization)
        for record in installed.records("documents")
        if record.asset_materialization
    ]
    assert sorted(str(one["sources"]) for one in of_twins) == ["1", "2"]
    assert all("path" not in one for one in of_twins)
    second.unlink()
    again = told(scan(installed))
    assert (again["notes: new"], again["notes: recorded"], again["notes: vanished"]) == (0, 0, 1)
    assert len(installed.partitions()) == 3


def test_a_folder_that_is_away_does_not_keep_the_others_from_their_scan(
    installed: Installed,
) -> None:
    installed.workplace.declare("absent")
    (installed.workplace.documents / "absent").rmdir()
    installed = installed.reopened()
    installed.workplace.write(2)
    result = scan(installed)
    assert not result.success
    assert cause(result).startswith(
        "1 of 2 collections could not be scanned, the others were: absent: "
    )
    assert len(installed.materialized("documents")) == 2


def test_every_record_of_an_extraction_leads_back_to_its_call(installed: Installed) -> None:
    hashes = installed.with_documents(2)
    installed.finish()
    (job,) = installed.query("SELECT job_key, job_id FROM extraction.batch_jobs")
    for asset in ("batch_submissions", "raw_responses", "extractions"):
        records = installed.records(asset)
        assert {record.partition_key for record in records} == keys(hashes)
        for record in records:
            assert record.asset_materialization is not None
            said = metadata_of(record.asset_materialization)
            assert (said["job_key"], said["job_id"]) == job
            assert said["collection"] == "notes"
            assert said["extraction_version"] == "v1"
            assert said["provider"] == "local"
            assert said["http_status"] == 200
            assert said["request_id"]
    stored = dict(
        installed.query(
            "SELECT d.document_hash || '|v1', e.body_hash FROM extraction.extractions e"
            " JOIN extraction.documents d ON d.id = e.document_id"
        )
    )
    for record in installed.records("extractions"):
        assert record.asset_materialization is not None
        said = metadata_of(record.asset_materialization)
        assert said["extraction_hash"] == stored[record.partition_key or ""]
        assert {"raw_hash", "schema_version", "input_tokens", "output_tokens", "published"} <= set(
            said
        )


def test_scattered_documents_go_out_in_one_job(installed: Installed) -> None:
    hashes = installed.with_documents(6)
    before = installed.provider_jobs()
    result = installed.submit(document_hashes=hashes[::2])
    assert told(result)["documents"] == 3
    assert installed.materialized("batch_submissions") == keys(hashes[::2])
    rest = installed.submit()
    assert told(rest)["documents"] == 3
    assert told(installed.submit())["documents"] == 0
    assert installed.provider_jobs() - before == 2
    assert len(installed.records("batch_submissions")) == 6


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"collection": "nowhere"}, "There is no collection nowhere. Known are: notes."),
        ({"collection": "notes", "extraction_version": "v9"}, "has no extraction version 'v9'"),
    ],
)
def test_a_submission_that_names_what_is_not_there_fails_in_one_line(
    installed: Installed, config: dict[str, object], sentence: str
) -> None:
    result = installed.run("submit_missing", "submit_missing_documents", config)
    assert sentence in cause(result)
    assert "\n" not in cause(result)


@pytest.mark.parametrize(
    ("job", "op"),
    [
        ("collect_batch", "collect_batch_results"),
        ("resolve_submission", "resolve_batch_job"),
    ],
)
def test_a_batch_job_that_is_not_there_is_named(installed: Installed, job: str, op: str) -> None:
    result = installed.run(job, op, {"job_key": "notes.v1.nothing"})
    assert cause(result) == (
        "There is no batch job notes.v1.nothing. `extraction-pipeline status` shows the keys."
    )


def test_collecting_and_resolving_again_change_nothing(installed: Installed) -> None:
    hashes = installed.with_documents(2)
    installed.finish()
    (key,) = installed.query("SELECT job_key FROM extraction.batch_jobs")
    before = installed.query("SELECT t::text FROM extraction.extractions AS t ORDER BY 1")
    for job, op in (
        ("collect_batch", "collect_batch_results"),
        ("resolve_submission", "resolve_batch_job"),
    ):
        again = installed.run(job, op, {"job_key": key, "attempt": 7})
        assert again.success
        assert told(again)["recorded"] == 0
    assert installed.query("SELECT t::text FROM extraction.extractions AS t ORDER BY 1") == before
    assert len(installed.records("extractions")) == len(hashes)


def test_an_answer_of_an_earlier_attempt_is_recorded_when_a_replay_publishes_it(
    installed: Installed, proxy: Proxy
) -> None:
    """The first answer was taken for invalid, the second attempt failed at the provider; then the
    validation was mended."""
    (document,) = installed.with_documents(1)
    installed.finish()
    installed.execute("DELETE FROM extraction.extractions")
    installed.execute(
        "UPDATE extraction.batch_items SET state = 'failed', failure_kind = 'model',"
        " failure_reason = 'invalid_schema'"
    )
    proxy.plan_results(errored)
    installed.submit()
    installed.driver().wait()
    assert installed.query("SELECT outcome FROM extraction.raw_responses ORDER BY id") == [
        "completed",
        "errored",
    ]
    written = len(installed.records("extractions"))
    assert installed.materialize("extractions", f"{document}|v1").success
    assert installed.ledger_keys() == {f"{document}|v1"}
    (record,) = installed.records("extractions")[written:]
    assert record.asset_materialization is not None
    assert metadata_of(record.asset_materialization)["attempt"] == 1


def errored(results: bytes) -> bytes:
    """Result rows that say that the provider failed."""
    rows = [json.loads(line) for line in results.splitlines()]
    failed = {"status_code": 500, "request_id": "req-1", "body": {"error": {"code": "oops"}}}
    return b"".join(json.dumps(row | {"response": failed}).encode() + b"\n" for row in rows)


def test_documents_that_the_collection_does_not_have_are_named_and_nothing_is_sent(
    installed: Installed,
) -> None:
    hashes = installed.with_documents(2)
    unknown = [letter * 64 for letter in "abcd"]
    of_none = cause(installed.submit(document_hashes=unknown))
    first_three = ", ".join(unknown[:3])
    assert of_none.startswith(
        f"Of these documents 4 are not in notes ({first_three}, …); none was submitted. Give"
    )
    of_some = cause(installed.submit(document_hashes=[unknown[0], "Mrs Doe.pdf", *hashes]))
    assert of_some.startswith(f"Of these documents 2 are not in notes ({unknown[0]}, …); none")
    assert "Doe" not in of_some
    of_empty = cause(installed.submit(document_hashes=[]))
    assert of_empty.startswith("document_hashes names no document, so none was submitted. Give")
    assert installed.query("SELECT count(*) FROM extraction.batch_jobs") == [0]
    assert installed.submit(document_hashes=hashes).success
