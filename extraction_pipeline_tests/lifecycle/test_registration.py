"""Registering: every file gets a document and a state or a named problem, and nothing vanishes by
mistake."""

import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from extraction_pipeline.documents.local_folder import change_token
from extraction_pipeline.errors import SourceError
from extraction_pipeline.lifecycle.registration import scan
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.lifecycle.driving import SOURCES, Driven, current


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
    path.write_text(path.read_text().replace("Record 0", "Record 9"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    changed = path.stat()
    assert (changed.st_size, changed.st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    # The kernel does not let a change time be set: the ledger is told the new one instead.
    local.execute(
        "UPDATE extraction.document_sources SET change_token = :token",
        token=change_token(changed, time.time_ns()),
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
