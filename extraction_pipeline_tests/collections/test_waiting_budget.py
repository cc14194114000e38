"""How long a batch may take, as people write it."""

from datetime import timedelta
from pathlib import Path

import pytest

from extraction_pipeline.collections.loader import load_collections
from extraction_pipeline.collections.waiting_budget import read_budget, shown
from extraction_pipeline_tests.collections.written import VALID, changed, write


@pytest.mark.parametrize(
    ("written", "hours"),
    [("26h", 26), ("90m", 1.5), ("2d", 48), (30, 30), (0.5, 0.5), (" 4 h ", 4), ("12", 12)],
)
def test_a_time_is_read(written: object, hours: float) -> None:
    assert read_budget(written) == timedelta(hours=hours)
    assert shown(read_budget(written)) == f"{hours:g} h"


@pytest.mark.parametrize(
    "written", ["", "h", "-3h", "nan", "1e3", "26 hours", True, None, [26], "0", "61d", "1 w"]
)
def test_what_is_no_time_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="is no"):
        read_budget(written)


def test_a_collection_has_a_budget_of_its_own_or_a_little_more_than_a_day(tmp_path: Path) -> None:
    write(tmp_path, VALID)
    assert load_collections(tmp_path, {})[0].waiting_budget == timedelta(hours=26)
    write(tmp_path, changed("show_paths: false", "show_paths: false\nwaiting_budget: 3d"))
    assert load_collections(tmp_path, {})[0].waiting_budget == timedelta(days=3)
