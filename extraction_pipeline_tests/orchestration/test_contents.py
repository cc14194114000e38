"""What Dagster stores and shows holds nothing of a document, of an answer, or of a file's name."""

import json
from pathlib import Path

import pytest
from dagster import AssetKey

from extraction_pipeline.orchestration.partitions import NIGHTLY
from extraction_pipeline_tests.faults.actions import answer
from extraction_pipeline_tests.faults.proxy import CREATE, POLL, Proxy
from extraction_pipeline_tests.orchestration.installed import Installed, cause

IN_TEXT = "Xylomarkerosis"
IN_NAME = "Quentinmarker"
IN_ANSWER = "Zephyrmarker"
MARKERS = (IN_TEXT, IN_NAME, IN_ANSWER)

NOTE = (
    f"DISCHARGE SUMMARY\n\nPatient: {IN_TEXT} Example\n\nDISCHARGE DIAGNOSES:\n"
    f"1. {IN_TEXT} of the knee.\n\nDISCHARGE MEDICATIONS:\n1. Examplol 20 mg p.o. daily.\n"
)


def kept_by_dagster(installed: Installed) -> str:
    """Every row of every table of Dagster's, and every file of its home."""
    tables = installed.query(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    )
    assert {"event_logs", "runs", "run_tags", "asset_keys", "asset_event_tags"} <= set(tables)
    rows = [row for table in tables for row in installed.query(f"SELECT t::text FROM {table} AS t")]
    home = Path(installed.instance.root_directory)
    files = [
        path.read_bytes().decode(errors="replace") for path in home.rglob("*.*") if path.is_file()
    ]
    names = [str(path) for path in home.rglob("*")]
    return "\n".join([*rows, *files, *names])


def found_in(kept: str) -> list[str]:
    return [marker for marker in MARKERS if marker in kept]


def write_notes(installed: Installed) -> None:
    folder = installed.workplace.documents / "notes"
    (folder / f"{IN_NAME} 1950.txt").write_text(NOTE)
    (folder / f"{IN_NAME} second.txt").write_text(NOTE.replace("20 mg", "40 mg"))
    (folder / f"{IN_NAME} empty.txt").write_bytes(b"")
    (folder / f"{IN_NAME} broken.pdf").write_bytes(b"%PDF-1.4\n" + IN_TEXT.encode())


def test_a_whole_way_with_every_stage_again_leaves_no_contents(installed: Installed) -> None:
    write_notes(installed)
    installed.driver().scan(["notes"])
    installed.finish()
    hashes = installed.partitions()
    for asset, suffix in (("batch_submissions", "|v1"), ("extractions", "|v1"), ("documents", "")):
        installed.materialize(asset, f"{hashes[0]}{suffix}", f"{hashes[-1]}{suffix}")
    (installed.workplace.documents / "notes" / f"{IN_NAME} 1950.txt").write_text(f"{NOTE}\nMore.")
    (installed.workplace.documents / "notes" / f"{IN_NAME} second.txt").unlink()
    installed.materialize("documents", hashes[0], hashes[-1])
    installed.asset_run(AssetKey(NIGHTLY), {}, partition="2026-11-20")
    installed.finish()
    published = installed.query("SELECT body::text FROM extraction.extractions")
    assert len(published) == 3
    assert all(IN_TEXT in body for body in published), "the search would find nothing anyway"
    assert found_in(kept_by_dagster(installed)) == []
    audit = "\n".join(installed.query("SELECT t::text FROM extraction.audit_events AS t"))
    assert found_in(audit) == []


def test_what_a_provider_says_of_a_document_is_not_passed_on(
    installed: Installed, proxy: Proxy
) -> None:
    write_notes(installed)
    installed.driver().scan(["notes"])
    told = {"error": {"code": "invalid_request", "message": f"{IN_TEXT}: {IN_ANSWER} {IN_NAME}"}}
    proxy.plan(CREATE, answer(503, told, x_request_id="req-17"))
    assert not installed.submit().success
    proxy.plan(CREATE, answer(400, told, x_request_id="req-18"))
    installed.execute("UPDATE extraction.batch_jobs SET due_at = now()")
    hashes = installed.partitions()
    installed.materialize("batch_submissions", f"{hashes[0]}|v1", f"{hashes[-1]}|v1")
    for status in (500, 404):
        proxy.plan(POLL, answer(status, told))
    installed.driver().wait()
    kept = kept_by_dagster(installed)
    assert found_in(kept) == []
    assert "req-17" in kept, "what helps to ask the provider is kept"


def test_an_answer_that_is_no_record_is_counted_and_not_quoted(
    installed: Installed, proxy: Proxy
) -> None:
    write_notes(installed)
    installed.driver().scan(["notes"])
    proxy.plan_results(spoilt)
    installed.finish()
    hashes = installed.partitions()
    result = installed.materialize("extractions", f"{hashes[0]}|v1", f"{hashes[-1]}|v1")
    assert "invalid" in cause(result)
    assert found_in(kept_by_dagster(installed)) == []


def spoilt(results: bytes) -> bytes:
    """Result rows whose answer is words instead of an object."""
    rows = [json.loads(line) for line in results.splitlines()]
    for row in rows:
        message = row["response"]["body"]["choices"][0]["message"]
        message["content"] = f"I read of {IN_TEXT} and say {IN_ANSWER}."
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_what_the_database_says_of_a_refused_row_is_not_passed_on(installed: Installed) -> None:
    write_notes(installed)
    installed.execute(
        "ALTER TABLE extraction.document_sources"
        " ADD CONSTRAINT test_refusal CHECK (length(path) < 3)"
    )
    result = installed.run("scan_collections", "scan_documents", {"collections": ["notes"]})
    assert cause(result) == (
        "The database refused a statement (code 23514, constraint test_refusal)."
    )
    assert found_in(kept_by_dagster(installed)) == []


@pytest.mark.parametrize("shown", [True, False])
def test_a_path_is_in_a_record_only_where_the_collection_says_so(
    installed: Installed, shown: bool
) -> None:
    installed.workplace.declare(extra=f"show_paths: {str(shown).lower()}")
    installed = installed.reopened()
    write_notes(installed)
    installed.driver().scan(["notes"])
    assert found_in(kept_by_dagster(installed)) == ([IN_NAME] if shown else [])
