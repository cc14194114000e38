"""Reading again: lost texts come back, and one bad file or folder stops no other."""

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from extraction_pipeline.documents.local_folder import change_token
from extraction_pipeline.documents.sources import list_entries
from extraction_pipeline.errors import StoreError
from extraction_pipeline.lifecycle.rereading import reread
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.documents.test_sources import sink_below
from extraction_pipeline_tests.lifecycle.driving import Driven, current


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


@pytest.mark.parametrize("damage", ["missing", "cut short"])
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
        place.write_bytes(place.read_bytes()[:-1])
    report = local.scan()
    assert (report.restored, report.unchanged, report.new, report.revised) == (1, 2, [], [])
    assert local.pipeline.store.get(text_hash)
    assert local.scan().restored == 0


def damage(local: Driven, workplace: Workplace) -> str:
    """Damage the one text of the store so that only its bytes tell; its hash."""
    ((text_hash,),) = local.rows("SELECT text_hash FROM extraction.documents")
    (place,) = (workplace.root / "home" / "store").rglob(text_hash)
    place.write_bytes(b"x" * place.stat().st_size)
    return str(text_hash)


def test_a_text_that_is_found_damaged_when_it_is_needed_is_restored_by_the_next_scan(
    local: Driven, workplace: Workplace
) -> None:
    workplace.write(1)
    local.scan()
    text_hash = damage(local, workplace)
    assert local.scan().unchanged == 1  # it has its length
    assert local.submit().submitted == []
    assert local.scan().unchanged == 0
    assert local.pipeline.store.get(text_hash)
    assert len(local.submit().submitted) == 1


def test_a_text_that_is_found_damaged_when_its_answer_is_published_is_restored_as_well(
    local: Driven, workplace: Workplace
) -> None:
    workplace.write(1)
    local.scan()
    (job,) = local.submit().submitted
    local.ended(job)
    local.collect(job)
    text_hash = damage(local, workplace)
    with pytest.raises(StoreError, match="wait"):
        local.publish(job)
    assert local.scan().unchanged == 0
    assert local.pipeline.store.get(text_hash)
    assert len(local.publish(job).published) == 1


def test_a_scan_that_is_to_read_everything_finds_what_no_token_tells(
    local: Driven, workplace: Workplace
) -> None:
    workplace.write(1)
    local.scan()
    text_hash = damage(local, workplace)
    assert local.scan().unchanged == 1
    settings = local.pipeline.settings.model_copy(update={"read_unchanged": True})
    assert replace(local, pipeline=replace(local.pipeline, settings=settings)).scan().unchanged == 0
    assert local.pipeline.store.get(text_hash)


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
        token=change_token(status, status.st_ctime_ns),
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
