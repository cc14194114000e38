"""What counts as stored."""

from pathlib import Path

from benchmarks.sizes import stored_bytes


def test_folders_of_a_store_take_no_bytes_of_it(tmp_path: Path) -> None:
    for name, content in (("ab", b"12"), ("cd", b"345")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "content").write_bytes(content)
    assert stored_bytes(tmp_path) == 5
