"""Dagster's instance file follows the code, until a person writes to it."""

from pathlib import Path

import pytest

from extraction_pipeline.installation.instance_file import INSTANCE_FILE, write_instance_file

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


def test_a_home_of_before_gets_the_file_of_this_code(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_bytes(b"of an earlier version")
    write_instance_file(tmp_path)
    assert (tmp_path / "dagster.yaml").read_bytes() == OURS
