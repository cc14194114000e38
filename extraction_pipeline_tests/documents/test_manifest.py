from pathlib import Path

import fsspec
import pandas as pd
import pytest

from extraction_pipeline.documents.sources import (
    ManifestSource,
    SourceEntry,
    list_entries,
)
from extraction_pipeline.errors import SourceError
from extraction_pipeline_tests.documents.test_sources import read_entry


def manifest(path: str = "list.csv", **keys: object) -> ManifestSource:
    return ManifestSource.model_validate({"kind": "manifest", "path": path, **keys})


def entries(source: ManifestSource, base: Path) -> list[SourceEntry]:
    return list(list_entries(source, base))


@pytest.fixture
def notes(tmp_path):
    (tmp_path / "notes").mkdir()
    for name in ("a", "b"):
        (tmp_path / f"notes/{name}.txt").write_text(f"note {name}")
    return tmp_path


def test_csv_with_record_ids(notes):
    (notes / "list.csv").write_text("note_id,file\n007, notes/b.txt\nX-1,notes/a.txt\n\n")
    source = manifest(path_column="file", record_id_column="note_id")
    found = entries(source, notes)
    assert [(entry.path, entry.record_id, entry.size) for entry in found] == [
        ("notes/a.txt", "X-1", 6),
        ("notes/b.txt", "007", 6),
    ]
    assert found[0].modified
    assert read_entry(source, found[0], notes) == b"note a"


def test_parquet_with_numbers_as_record_ids(notes):
    frame = pd.DataFrame({"path": ["notes/a.txt", "notes/b.txt"], "id": [7.0, 12.0]})
    frame.to_parquet(notes / "list.parquet")
    source = manifest("list.parquet", record_id_column="id")
    assert [entry.record_id for entry in entries(source, notes)] == ["7", "12"]
    frame["id"] = frame["id"].astype("int64")
    frame.to_parquet(notes / "list.parquet")
    assert [entry.record_id for entry in entries(source, notes)] == ["7", "12"]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("path;name\nnotes/a.txt;Müller\n", "cp1252"),
        ("path\tname\nnotes/a.txt\tMüller\n", "utf-16"),
        ('\ufeffpath,name\r\n"notes/a.txt","x, y"\r\n', "utf-8"),
        ("name,path\r\nx,notes\\a.txt\r\n", "utf-8"),
        ("path\n./notes/../notes/a.txt\n", "utf-8"),
    ],
)
def test_tables_as_programs_write_them(notes, text, encoding):
    (notes / "list.csv").write_bytes(text.encode(encoding))
    (entry,) = entries(manifest(), notes)
    assert entry.path == "notes/a.txt"
    assert read_entry(manifest(), entry, notes) == b"note a"


def test_a_row_without_its_file_is_listed_and_fails_when_read(notes):
    (notes / "list.csv").write_text("path\nnotes/gone.txt\nnotes/a.txt\n")
    found = entries(manifest(), notes)
    assert [(entry.path, entry.size) for entry in found] == [
        ("notes/a.txt", 6),
        ("notes/gone.txt", None),
    ]
    with pytest.raises(SourceError, match="No such file"):
        read_entry(manifest(), found[1], notes)


@pytest.mark.parametrize("path", ["../secret.txt", "{outside}/secret.txt", "notes"])
def test_a_row_that_leads_out_of_the_folder_or_to_no_file_fails_when_read(tmp_path, notes, path):
    inner = notes / "inner"
    inner.mkdir()
    (inner / "notes").mkdir()
    (notes / "secret.txt").write_text("secret")
    (inner / "list.csv").write_text(f"path\n{path.format(outside=notes)}\n")
    (entry,) = entries(manifest("inner/list.csv"), notes)
    with pytest.raises(SourceError):
        read_entry(manifest("inner/list.csv"), entry, notes)


def test_a_root_of_its_own_and_absolute_paths_below_it(notes):
    (notes / "lists").mkdir()
    (notes / "lists/list.csv").write_text(f"path\na.txt\n{notes}/notes/b.txt\n")
    source = manifest("lists/list.csv", root="notes")
    found = entries(source, notes)
    assert [entry.path for entry in found] == ["a.txt", "b.txt"]
    assert read_entry(source, found[1], notes) == b"note b"
    with pytest.raises(SourceError, match="missing"):
        entries(manifest("lists/list.csv", root="gone"), notes)


def test_rows_that_repeat_themselves_are_one_entry_and_one_file_can_hold_two_records(notes):
    (notes / "list.csv").write_text("path,id\nnotes/a.txt,1\nnotes/a.txt,1\nnotes/a.txt,2\n")
    found = entries(manifest(record_id_column="id"), notes)
    assert [(entry.path, entry.record_id) for entry in found] == [
        ("notes/a.txt", "1"),
        ("notes/a.txt", "2"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("path,id\nnotes/a.txt,1\nnotes/b.txt,1\n", "Rows 2 and 3"),
        ("path,id\nnotes/a.txt,\n", "Row 2 of the manifest has no 'id'. Fill it in"),
        ("path,id\n,5\n", "Row 2 of the manifest has no 'path'. Fill it in"),
        ("file,id\nnotes/a.txt,1\n", "no column 'path'; its columns are 'file', 'id'"),
        ("", "no column 'path', 'id'; its columns are none"),
        ("path,id\n" + "x" * 200_000 + ",1\n", "Line 2"),
    ],
)
def test_manifests_that_are_wrong(notes, text, message):
    (notes / "list.csv").write_text(text)
    with pytest.raises(SourceError, match=message) as caught:
        entries(manifest(record_id_column="id"), notes)
    assert "a.txt" not in str(caught.value)


def test_a_manifest_that_is_missing_or_damaged(notes):
    with pytest.raises(SourceError, match="No such file"):
        entries(manifest("gone.csv"), notes)
    (notes / "list.parquet").write_bytes(b"PAR1 cut short")
    with pytest.raises(SourceError, match="damaged Parquet"):
        entries(manifest("list.parquet"), notes)
    (notes / "list.csv").write_bytes(bytes(range(256)) * 10)
    with pytest.raises(SourceError, match="neither CSV nor Parquet"):
        entries(manifest(), notes)


def test_an_empty_manifest_has_no_entries(notes):
    (notes / "list.csv").write_text("path,id\n")
    assert entries(manifest(), notes) == []


@pytest.mark.parametrize("rows", [2, 300])
def test_a_manifest_behind_a_url(rows):
    memory = fsspec.filesystem("memory")
    try:
        memory.pipe("/bucket/a.txt", b"note a")
        lines = ["path", "a.txt", *(f"memory://bucket/gone{n}.txt" for n in range(rows - 1))]
        memory.pipe("/bucket/list.csv", "\n".join(lines).encode())
        source = ManifestSource(kind="manifest", url="memory://bucket/list.csv")
        found = entries(source, Path("/nowhere"))
        assert (len(found), found[0].path, found[0].size) == (rows, "a.txt", 6)
        assert read_entry(source, found[0], Path("/nowhere")) == b"note a"
        assert (found[1].path, found[1].size) == ("gone0.txt", None)
        with pytest.raises(SourceError, match="not there"):
            read_entry(source, found[1], Path("/nowhere"))
    finally:
        memory.rm("/", recursive=True)


def test_a_row_whose_path_or_id_no_file_can_have_is_a_problem_and_the_others_are_listed(notes):
    rows = [
        {"path": "notes/a.txt", "id": "good"},
        {"path": "notes/b\0.txt", "id": "nul in the path"},
        {"path": "notes/b.txt", "id": "nul\0"},
        {"path": "p" * 4000, "id": "long path"},
        {"path": "notes/b.txt", "id": "i" * 4000},
    ]
    pd.DataFrame(rows).to_parquet(notes / "list.parquet")
    found = entries(manifest("list.parquet", record_id_column="id"), notes)
    assert [entry.record_id for entry in found if entry.problem is None] == ["good"]
    assert len(found) == len(rows)
    for entry in found:
        assert "\0" not in entry.path + (entry.record_id or "")
        assert "pppp" not in (entry.problem or "")


def test_a_manifest_behind_a_url_is_read_up_to_its_limit(monkeypatch):
    monkeypatch.setattr("extraction_pipeline.documents.manifest.MOST_BYTES", 10)
    memory = fsspec.filesystem("memory")
    source = ManifestSource(kind="manifest", url="memory://bucket/list.csv")
    try:
        memory.pipe("/bucket/list.csv", b"path\na.txt")
        assert len(entries(source, Path("/nowhere"))) == 1
        memory.pipe("/bucket/list.csv", b"path\na.txt\n")
        with pytest.raises(SourceError, match="larger than 10 bytes"):
            entries(source, Path("/nowhere"))
    finally:
        memory.rm("/", recursive=True)
