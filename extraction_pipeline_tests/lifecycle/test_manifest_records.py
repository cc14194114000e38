"""Records of a manifest: a changed content is a revision, and never a second extraction."""

import os
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from extraction_pipeline.cli.group import commands
from extraction_pipeline.errors import SourceError
from extraction_pipeline.ledger.records import unreadable_documents
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.lifecycle.driving import Driven, current


def manifest(workplace: Workplace, rows: dict[str, str]) -> None:
    table = workplace.documents / "records.csv"
    table.write_text("id,file\n" + "".join(f"{id},{file}\n" for id, file in rows.items()))
    declared = workplace.collections / "notes.yaml"
    lines = [
        f"source: {{kind: manifest, path: {table}, path_column: file, record_id_column: id}}"
        if line.startswith("source:")
        else line
        for line in declared.read_text().splitlines()
    ]
    if "identity: external_id" not in lines:
        lines[1:1] = ["identity: external_id", "source_system: fictional_ehr"]
    declared.write_text("\n".join(lines) + "\n")


def test_a_record_that_changed_is_a_revision_and_no_second_extraction(
    workplace: Workplace, driven: Driven
) -> None:
    """Design: a changed content under one id is recorded, and never asked about in silence."""
    first, second = workplace.write(2)
    manifest(workplace, {"r1": "notes/note-00000.txt", "r2": "notes/note-00001.txt"})
    driven = Driven(workplace.open(), driven.server)
    (job_id,) = driven.submitted()
    driven.finished(job_id)
    before = driven.rows("SELECT text_hash, body FROM extraction.extractions ORDER BY id")
    first.write_text("DISCHARGE SUMMARY\n\nRecord 0, amended.\n")
    report = driven.scan()
    assert (report.new, len(report.revised), report.vanished) == ([], 1, 0)
    assert driven.audited()["document_revised"] == 1
    assert len(driven.rows("SELECT FROM extraction.document_revisions")) == 1
    assert driven.submit().jobs == []
    assert driven.rows("SELECT text_hash, body FROM extraction.extractions ORDER BY id") == before
    counted = driven.summary()
    assert (counted.documents, counted.published, counted.revised_since) == (2, 2, 1)
    assert driven.scan().revised == []
    second.unlink()
    report = driven.scan()
    assert (report.problems, report.vanished) == (1, 0)  # the table still names it
    driven.pipeline.engine.dispose()


def test_a_published_record_whose_new_revision_cannot_be_read_is_shown_beside_its_record(
    workplace: Workplace, driven: Driven
) -> None:
    first, _ = workplace.write(2)
    manifest(workplace, {"r1": "notes/note-00000.txt", "r2": "notes/note-00001.txt"})
    driven = Driven(workplace.open(), driven.server)
    (job_id,) = driven.submitted()
    driven.finished(job_id)
    assert "--documents" not in status(), "nothing is left to do"
    text = first.read_text()
    first.write_bytes(b"%PDF-1.4 cut")
    driven.scan()
    counted = driven.summary()
    assert (counted.published, counted.unreadable) == (2, 0)
    assert (counted.revised_since, counted.unreadable_since) == (1, 1)
    assert "status --documents" in status()
    shown = status("--documents")
    assert "notes: 1 changed since they were published at v1, and cannot be read any more" in shown
    assert "truncated_or_corrupt  The file is cut or damaged: fetch it again." in shown
    (told,) = orjson.loads(status("--documents", "--json"))["collections"]["notes"][
        "unreadable_revisions"
    ]
    assert (told["reason"], told["path"]) == ("truncated_or_corrupt", None)
    assert told["document_hash"] in shown
    with driven.pipeline.engine.connect() as connection:
        named = unreadable_documents(connection, "notes", 10)
    assert named.by_reason == {"truncated_or_corrupt": 1}
    first.write_text(text)
    driven.scan()
    assert (driven.summary().published, driven.summary().unreadable_since) == (2, 0)
    assert "cannot be read" not in status("--documents")
    driven.pipeline.engine.dispose()


def status(*words: str) -> str:
    done = CliRunner().invoke(commands, ["status", *words])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_record_that_was_revised_before_it_was_sent_is_sent_as_it_is_now(
    workplace: Workplace, driven: Driven
) -> None:
    (path,) = workplace.write(1)
    manifest(workplace, {"r1": "notes/note-00000.txt"})
    driven = Driven(workplace.open(), driven.server)
    driven.scan()
    path.write_text("DISCHARGE SUMMARY\n\nRecord 0, amended.\n")
    driven.scan()
    (job_id,) = driven.submit().submitted
    driven.finished(job_id)
    assert (driven.summary().published, driven.summary().revised_since) == (1, 0)
    driven.pipeline.engine.dispose()


@pytest.mark.parametrize("instead", ["nothing", "a folder", "a pipe"])
def test_a_row_of_a_manifest_without_a_file_is_a_problem_until_there_is_one(
    workplace: Workplace, local: Driven, notes: Path, instead: str
) -> None:
    manifest(workplace, {"r1": "notes/note-00000.txt"})
    local = Driven(workplace.open(), local.server)
    place = notes / "note-00000.txt"
    if instead == "a folder":
        place.mkdir()
    elif instead == "a pipe":
        os.mkfifo(place)
    assert local.scan().problems == 1
    if instead != "nothing":
        place.rmdir() if place.is_dir() else place.unlink()
    workplace.write(1)
    report = local.scan()
    assert (report.problems, len(report.new)) == (0, 1)
    (workplace.documents / "records.csv").unlink()
    with pytest.raises(SourceError):
        local.scan()
    assert len(current(local)) == 1
    local.pipeline.engine.dispose()


def test_two_records_of_one_file_are_two_documents(workplace: Workplace, local: Driven) -> None:
    workplace.write(1)
    manifest(workplace, {"r1": "notes/note-00000.txt", "r2": "notes/note-00000.txt"})
    local = Driven(workplace.open(), local.server)
    assert len(local.scan().new) == 2
    manifest(workplace, {"r2": "notes/note-00000.txt"})
    report = local.scan()
    assert (report.vanished, report.unchanged) == (1, 1)
    local.pipeline.engine.dispose()
