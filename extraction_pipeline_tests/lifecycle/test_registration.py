"""Registering: every file gets a document and a state or a named problem, and nothing vanishes by
mistake."""

import os
import shutil
import sys
import threading
from pathlib import Path

import pytest

from extraction_pipeline.documents.sources import list_entries
from extraction_pipeline.errors import SourceError
from extraction_pipeline.lifecycle.registration import scan
from extraction_pipeline.lifecycle.rereading import reread
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.documents.test_sources import sink_below
from extraction_pipeline_tests.lifecycle.driving import Driven

SOURCES = (
    "SELECT s.path, d.document_hash, s.problem IS NOT NULL, s.vanished_at IS NOT NULL"
    " FROM extraction.document_sources s LEFT JOIN extraction.documents d ON d.id = s.document_id"
    " ORDER BY s.id"
)


@pytest.fixture
def notes(workplace: Workplace) -> Path:
    return workplace.documents / "notes"


@pytest.fixture
def local(driven: Driven) -> Driven:
    """The collection as it is; nothing here calls a provider."""
    return driven


def current(driven: Driven) -> dict[str, str | None]:
    """Document by path, of what is there now."""
    return {row[0]: row[1] for row in driven.rows(SOURCES) if not row[3]}


def test_the_same_bytes_under_two_names_are_one_document(
    local: Driven, workplace: Workplace, notes: Path
) -> None:
    (first,) = workplace.write(1)
    shutil.copy(first, notes / "copy.txt")
    report = local.scan()
    assert (report.entries, len(report.new)) == (2, 1)
    assert set(current(local)) == {"note-00000.txt", "copy.txt"}
    assert len(set(current(local).values())) == 1
    first.unlink()
    assert local.scan().vanished == 1
    assert len(current(local)) == 1


def test_two_documents_of_other_bytes_and_the_same_text_are_two(local: Driven, notes: Path) -> None:
    (notes / "a.txt").write_bytes(b"The same text.\n")
    (notes / "b.txt").write_bytes(b"The same text.\r\n")
    assert len(local.scan().new) == 2
    assert len(local.rows("SELECT DISTINCT text_hash FROM extraction.documents")) == 1
    report = local.submit()
    assert report.documents == 2  # as two requests of one job, with two custom ids


def test_other_content_under_one_path_is_another_document_and_the_old_one_stays(
    local: Driven, workplace: Workplace
) -> None:
    (path,) = workplace.write(1)
    (old,) = local.scan().new
    path.write_text("Other content.")
    report = local.scan()
    assert (len(report.new), report.revised, report.vanished) == (1, [], 0)
    assert current(local) == {"note-00000.txt": report.new[0]}
    assert [row[1:] for row in local.rows(SOURCES)] == [
        (old, False, True),
        (report.new[0], False, False),
    ]


def test_a_file_that_vanished_and_came_back_is_the_same_document(
    local: Driven, workplace: Workplace
) -> None:
    first, _ = workplace.write(2)
    local.scan()
    content = first.read_bytes()
    first.unlink()
    report = local.scan()
    assert (report.entries, report.vanished) == (1, 1)
    assert local.scan().vanished == 0
    first.write_bytes(content)
    report = local.scan()
    assert (report.new, report.vanished, len(current(local))) == ([], 0, 2)
    assert local.summary().documents == 2


def test_a_missing_folder_is_an_error_and_nothing_is_taken_for_vanished(
    local: Driven, workplace: Workplace, notes: Path
) -> None:
    workplace.write(3)
    local.scan()
    notes.rename(notes.with_name("away"))
    with pytest.raises(SourceError, match="cannot be listed") as raised:
        local.scan()
    assert "mounted" in (raised.value.remedy or "")
    assert len(current(local)) == 3
    notes.with_name("away").rename(notes)
    assert local.scan().unchanged == 3


def test_an_empty_folder_is_no_error_and_everything_vanished(
    local: Driven, workplace: Workplace, notes: Path
) -> None:
    workplace.write(3)
    local.scan()
    for path in notes.iterdir():
        path.unlink()
    assert local.scan().vanished == 3
    assert (local.summary().documents, local.summary().vanished) == (0, 3)


def test_a_file_that_cannot_be_read_is_a_problem_and_no_empty_document(
    local: Driven, notes: Path
) -> None:
    (notes / "link.txt").symlink_to(notes / "nowhere.txt")
    for _ in range(2):
        report = local.scan()
        assert (report.entries, report.new, report.problems, report.vanished) == (1, [], 1, 0)
    assert local.summary().sources_unread == 1
    ((problem,),) = local.rows("SELECT problem FROM extraction.document_sources")
    assert "link.txt" not in problem  # a name can be a patient's
    (notes / "nowhere.txt").write_text("It is there now.")
    report = local.scan()
    assert (len(report.new), report.problems) == (1, 0)
    assert local.summary().sources_unread == 0
    assert len(local.rows(SOURCES)) == 2  # the link's own row became that of its document


def test_a_file_that_cannot_be_read_any_more_keeps_its_document_and_is_tried_again(
    local: Driven, workplace: Workplace
) -> None:
    (path,) = workplace.write(1)
    (known,) = local.scan().new
    content = path.read_bytes()
    path.unlink()
    path.symlink_to("nowhere")
    report = local.scan()
    assert (report.problems, report.vanished) == (1, 0)
    assert current(local) == {"note-00000.txt": known}
    path.unlink()
    path.write_bytes(content)
    report = local.scan()
    assert (report.unchanged, report.new, report.problems) == (0, [], 0)
    assert local.scan().unchanged == 1


def test_documents_without_text_have_an_end_that_says_why(local: Driven, notes: Path) -> None:
    """Promise 7; field reports 46, 68: nothing vanishes "successfully"."""
    contents = {
        "empty.txt": b"",
        "blank.txt": b" \n\0\t",
        "picture.png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8,
        "torn.pdf": b"%PDF-1.7\n1 0 obj\n<< /Type",
        "utf16.txt": "\ufeffEin Befund.".encode("utf-16-le"),
        "windows.txt": "Übelkeit, 20 € und gebessert".encode("cp1252"),
    }
    for name, content in contents.items():
        (notes / name).write_bytes(content)
    assert len(local.scan().new) == 6
    found = {
        row[0]: (row[1], row[2])
        for row in local.rows(
            "SELECT s.path, d.state::text, d.unreadable_reason FROM extraction.documents d"
            " JOIN extraction.document_sources s ON s.document_id = d.id"
        )
    }
    assert found == {
        "empty.txt": ("unreadable", "empty"),
        "blank.txt": ("unreadable", "blank"),
        "picture.png": ("unreadable", "unsupported_kind"),
        "torn.pdf": ("unreadable", "truncated_or_corrupt"),
        "utf16.txt": ("readable", None),
        "windows.txt": ("readable", None),
    }
    assert (local.summary().unreadable, local.summary().waiting) == (4, 2)
    assert local.submit().documents == 2


def test_an_unchanged_file_is_not_opened_again(local: Driven, workplace: Workplace) -> None:
    """Where its size and change token are the same, not even another content is noticed."""
    (path,) = workplace.write(1)
    (known,) = local.scan().new
    status = path.stat()
    local.execute(
        "UPDATE extraction.document_sources SET change_token = :token",
        token=f"{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_size}",
    )
    path.write_text(path.read_text().replace("Record 0", "Record 9"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    changed = path.stat()
    assert (changed.st_size, changed.st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    # The kernel does not let a change time be set: the ledger is told the new one instead.
    local.execute(
        "UPDATE extraction.document_sources SET change_token = :token",
        token=f"{changed.st_mtime_ns}:{changed.st_ctime_ns}:{changed.st_size}",
    )
    report = local.scan()
    assert (report.unchanged, report.new) == (1, [])
    assert current(local) == {"note-00000.txt": known}
    path.touch()
    assert len(local.scan().new) == 1


def test_two_scans_at_once_register_everything_once(local: Driven, workplace: Workplace) -> None:
    workplace.write(40)
    reports = []
    threads = [threading.Thread(target=lambda: reports.append(local.scan())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(len(report.new) for report in reports) == [0, 0, 40]
    assert [report.vanished for report in reports] == [0, 0, 0]
    assert len(local.rows(SOURCES)) == 40


def test_more_entries_than_a_chunk_holds(local: Driven, workplace: Workplace) -> None:
    paths = workplace.write(1203)
    assert len(local.scan().new) == 1203
    for path in paths[:700]:
        path.unlink()
    report = local.scan()
    assert (report.unchanged, report.vanished) == (503, 700)


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


def test_reading_again_says_what_is_not_as_it_was(
    local: Driven, workplace: Workplace, notes: Path
) -> None:
    workplace.write(3)
    (notes / "torn.pdf").write_bytes(b"%PDF-1.7\n1 0 obj\n<< /Type")
    hashes = local.scan().new
    by_path = {path: str(known) for path, known in current(local).items()}
    assert reread(local.pipeline, local.collection, hashes) == {}
    (notes / "note-00000.txt").write_text("Other content.")
    (notes / "note-00001.txt").unlink()
    assert reread(local.pipeline, local.collection, hashes) == {
        by_path["note-00000.txt"]: "its source holds another content now",
        by_path["note-00001.txt"]: "could not be read from its source",
    }
    assert reread(local.pipeline, local.collection, ["0" * 64]) == {
        "0" * 64: "vanished from its source"
    }


def test_a_text_that_the_store_lost_comes_back_by_reading_again(
    local: Driven, workplace: Workplace
) -> None:
    workplace.write(1)
    hashes = local.scan().new
    ((text_hash,),) = local.rows("SELECT text_hash FROM extraction.documents")
    (place,) = (workplace.root / "home" / "store").rglob(text_hash)
    place.unlink()
    assert reread(local.pipeline, local.collection, hashes) == {}
    assert local.pipeline.store.exists(text_hash)


@pytest.mark.parametrize("damage", ["missing", "other bytes", "cut short"])
def test_a_scan_restores_a_text_that_the_store_lost(
    local: Driven, workplace: Workplace, damage: str
) -> None:
    workplace.write(3)
    local.scan()
    (text_hash, *_) = (row[0] for row in local.rows("SELECT text_hash FROM extraction.documents"))
    (place,) = (workplace.root / "home" / "store").rglob(text_hash)
    if damage == "missing":
        place.unlink()
    else:
        content = place.read_bytes()
        place.write_bytes(content[:-1] if damage == "cut short" else b"x" * len(content))
    report = local.scan()
    assert (report.restored, report.unchanged, report.new, report.revised) == (1, 2, [], [])
    assert local.pipeline.store.get(text_hash)
    assert local.scan().restored == 0


def test_a_text_that_its_source_does_not_give_any_more_is_said_to_be_lost(
    local: Driven, workplace: Workplace, caplog: pytest.LogCaptureFixture
) -> None:
    (path,) = workplace.write(1)
    local.scan()
    ((text_hash,),) = local.rows("SELECT text_hash FROM extraction.documents")
    (place,) = (workplace.root / "home" / "store").rglob(text_hash)
    place.unlink()
    # The kernel gives a file that is swapped for another one another token: the ledger is told it.
    path.write_text("Other content.")
    status = path.stat()
    local.execute(
        "UPDATE extraction.document_sources SET change_token = :token, byte_size = :size",
        token=f"{status.st_mtime_ns}:{status.st_ctime_ns}:{status.st_size}",
        size=status.st_size,
    )
    assert local.scan().restored == 0
    assert "1 stored texts are missing or damaged" in caplog.text


def test_one_bad_file_stops_no_other(
    local: Driven, notes: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (notes / "good.txt").write_text("A good note.")
    (notes / "ring.txt").symlink_to(notes / "ring.txt")
    with (notes / "sparse.txt").open("wb") as file:
        file.truncate(200 * 2**20)
    with (notes / "vast.txt").open("wb") as file:
        file.truncate(2**40)
    (notes / "nested.json").write_text("[" * 200_000)
    os.mkfifo(notes / "pipe.txt")
    (notes / ".hidden.txt").write_text("x")
    report = local.scan()
    assert (report.entries, len(report.new), report.problems, report.skipped) == (5, 3, 2, 2)
    found = local.rows(
        "SELECT s.path, coalesce(d.unreadable_reason, d.state::text, s.problem)"
        " FROM extraction.document_sources s"
        " LEFT JOIN extraction.documents d ON d.id = s.document_id ORDER BY s.path"
    )
    assert [tuple(row) for row in found] == [
        ("good.txt", "readable"),
        ("nested.json", "truncated_or_corrupt"),
        ("ring.txt", "A file of the source cannot be read: Too many levels of symbolic links."),
        ("sparse.txt", "too_large"),
        ("vast.txt", "A file of the source is larger than 4 GiB."),
    ]
    for name in ("ring", "vast", "sparse"):
        assert name not in caplog.text


def test_what_lies_below_a_folder_that_cannot_be_listed_has_not_vanished(
    local: Driven, notes: Path
) -> None:
    (notes / "ward").mkdir()
    (notes / "ward" / "a.txt").write_text("A note of the ward.")
    (notes / "b.txt").write_text("Another note.")
    assert len(local.scan().new) == 2
    # Root may list every folder, but none whose path is longer than any system takes.
    hidden = notes.parent / "hidden"
    (notes / "ward").rename(hidden)
    deep = notes / "ward"
    sink_below(notes, "ward", 1)
    sink_below(deep, "d" * 250, 20)
    local.execute(
        "UPDATE extraction.document_sources SET path = :path WHERE path = 'ward/a.txt'",
        path=next(iter(list_entries(local.collection.source, notes.parent).unlisted)) + "a.txt",
    )
    before = set(current(local).values())
    report = local.scan()
    assert report.vanished == 0
    assert before <= set(current(local).values())
    shutil.rmtree(deep)
    hidden.rename(notes / "ward")
    report = local.scan()
    assert (report.new, report.problems) == ([], 0)
    assert set(current(local)) == {"b.txt", "ward/a.txt"}


def test_a_document_whose_reading_was_interrupted_is_read_by_the_next_scan(
    local: Driven, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notes / "a.html").write_text("<html><p>A note.</p></html>")
    monkeypatch.setattr(sys, "executable", "/bin/false")
    report = local.scan()
    assert (report.problems, report.new) == (1, [])
    monkeypatch.undo()
    report = local.scan()
    assert (report.problems, len(report.new)) == (0, 1)


def test_a_collection_that_shares_files_with_another_has_documents_of_its_own(
    local: Driven, workplace: Workplace
) -> None:
    workplace.write(2)
    workplace.declare("twins")
    for path in (workplace.documents / "notes").iterdir():
        shutil.copy(path, workplace.documents / "twins")
    opened = workplace.open()
    for name in ("notes", "twins"):
        assert len(scan(opened, opened.collection(name)).new) == 2
    (path, *_) = (workplace.documents / "twins").iterdir()
    path.unlink()
    assert scan(opened, opened.collection("twins")).vanished == 1
    assert scan(opened, opened.collection("notes")).vanished == 0
    opened.engine.dispose()
