"""Tokens that change with a file, so that one that did not change need not be read again."""

import os
import time

import pytest

from extraction_pipeline.documents.local_folder import TICK, change_token
from extraction_pipeline.documents.sources import FolderSource, list_entries

HERE = FolderSource.model_validate({"kind": "folder", "path": "."})


def test_the_token_changes_with_the_file_even_if_its_time_is_put_back(tmp_path):
    (tmp_path / "a.txt").write_text("text of a.txt")
    (before,) = list_entries(HERE, tmp_path)
    status = (tmp_path / "a.txt").stat()
    time.sleep(0.02)
    (tmp_path / "a.txt").write_text("TEXT OF A.TXT")
    os.utime(tmp_path / "a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    (after,) = list_entries(HERE, tmp_path)
    assert before.size == after.size
    assert before.modified != after.modified


def test_a_listing_is_older_than_the_tick_of_its_youngest_file(tmp_path):
    """A change after the reading gets another time then, and with it another token."""
    for _ in range(5):
        (tmp_path / "a.txt").write_text("new")
        list_entries(HERE, tmp_path)
        assert time.time_ns() - (tmp_path / "a.txt").stat().st_ctime_ns >= TICK


@pytest.mark.parametrize(
    ("changed", "after", "trusted"),
    [
        (1_000_000_000_000_000_001, 0, True),
        (1_000_000_000_000_000_001, -1, False),
        (1_000_000_000_000_000_000, 1_999_999_999, False),
        (1_000_000_000_000_000_000, 2_000_000_000, True),
    ],
)
def test_a_file_whose_time_tells_too_little_has_no_token(changed, after, trusted):
    assert (change_token(told(changed), changed + after) is not None) is trusted


def test_files_of_equal_times_and_sizes_that_change_places_have_other_tokens():
    first, second = (change_token(told(1_000_000_001, inode), 10**18) for inode in (7, 8))
    assert first != second


def told(changed: int, inode: int = 7) -> os.stat_result:
    """A status as the system gives it, of times in nanoseconds."""
    return os.stat_result((0, inode, 0, 1, 0, 0, 5, 0, 0, 0, 0.0, 0.0, 0.0, 0, 1, changed))
