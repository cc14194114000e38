"""Dagster's instance file follows the code, until a person writes to it."""

import hashlib
from pathlib import Path

import pytest

from extraction_pipeline.installation.instance_file import (
    BEFORE,
    INSTANCE_FILE,
    WRITTEN,
    write_instance_file,
)

OURS = INSTANCE_FILE.read_bytes()


def test_it_follows_the_code_and_what_a_person_wrote_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "dagster.yaml"
    write_instance_file(tmp_path)
    assert file.read_bytes() == OURS
    later = tmp_path / "later.yaml"
    later.write_bytes(OURS + b"# of a later version\n")
    with monkeypatch.context() as patch:
        patch.setattr("extraction_pipeline.installation.instance_file.INSTANCE_FILE", later)
        write_instance_file(tmp_path)
    assert file.read_bytes() == later.read_bytes()
    write_instance_file(tmp_path)
    assert file.read_bytes() == OURS
    edited = OURS.replace(b"custom:", b"postgres:")
    file.write_bytes(edited)
    for _ in range(2):
        write_instance_file(tmp_path)
        assert file.read_bytes() == edited
    file.unlink()
    write_instance_file(tmp_path)
    assert file.read_bytes() == OURS


def test_a_home_of_before_gets_the_file_of_this_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "dagster.yaml"
    file.write_bytes(b"of an earlier version")
    monkeypatch.setattr(
        "extraction_pipeline.installation.instance_file.BEFORE",
        {hashlib.sha256(file.read_bytes()).hexdigest()},
    )
    write_instance_file(tmp_path)
    assert file.read_bytes() == OURS


def test_what_a_person_put_there_before_the_first_start_stays(tmp_path: Path) -> None:
    file = tmp_path / "dagster.yaml"
    file.write_bytes(b"telemetry: {enabled: true}")
    write_instance_file(tmp_path)
    assert file.read_bytes() == b"telemetry: {enabled: true}"
    assert hashlib.sha256(OURS).hexdigest() in BEFORE, "the last that was written without a record"


def test_a_copy_of_ours_follows_the_code_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("extraction_pipeline.installation.instance_file.BEFORE", frozenset())
    file = tmp_path / "dagster.yaml"
    file.write_bytes(OURS)
    write_instance_file(tmp_path)
    later = tmp_path / "later.yaml"
    later.write_bytes(OURS + b"# of a later version\n")
    monkeypatch.setattr("extraction_pipeline.installation.instance_file.INSTANCE_FILE", later)
    write_instance_file(tmp_path)
    assert file.read_bytes() == later.read_bytes()


def test_what_is_linked_there_is_not_written_through_the_link(tmp_path: Path) -> None:
    kept, home = tmp_path / "kept.yaml", tmp_path / "home"
    home.mkdir()
    kept.write_bytes(b"telemetry: {enabled: true}")
    (home / "dagster.yaml").symlink_to(kept)
    write_instance_file(home)
    assert kept.read_bytes() == b"telemetry: {enabled: true}"
    kept.unlink()
    with pytest.raises(FileNotFoundError):
        write_instance_file(home)


def test_who_reads_while_it_is_written_finds_the_whole_file(tmp_path: Path) -> None:
    """An empty one means to Dagster that it is to store in SQLite."""
    file = tmp_path / "dagster.yaml"
    write_instance_file(tmp_path)
    with file.open("rb") as reader:
        (tmp_path / WRITTEN).write_bytes(b"\xff not of ours")
        file.write_bytes(b"cut off")
        with (tmp_path / WRITTEN).open("a") as lines:
            lines.write(f" {hashlib.sha256(b'cut off').hexdigest()}")
        write_instance_file(tmp_path)
        assert reader.read() == b"cut off", "it was replaced, not written into"
    assert file.read_bytes() == OURS
    assert [one.name for one in tmp_path.glob(".*")] == []
