"""Temporary files with documents in them: in the home, and gone if their process was killed."""

import subprocess
import sys
from pathlib import Path

import pytest

from extraction_pipeline.errors import StoreError
from extraction_pipeline.lifecycle.scratch import scratch_file, sweep_scratch
from extraction_pipeline.settings import Settings

HOLD_ONE = """
import sys
from pathlib import Path
from extraction_pipeline.lifecycle.scratch import scratch_file
from extraction_pipeline.settings import Settings
with scratch_file(Settings(home=Path(sys.argv[1]))) as file:
    file.write_text("fictional")
    print(file, flush=True)
    sys.stdin.read()
"""


def test_a_killed_process_s_file_is_swept_and_a_living_one_s_is_not(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD_ONE, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    left = Path(process.stdout.readline().strip())
    assert left.is_relative_to(tmp_path)
    with scratch_file(settings) as own:
        own.write_text("fictional")
        sweep_scratch(settings)
        assert left.exists()
        process.kill()
        process.communicate()
        assert left.exists()
        sweep_scratch(settings)
        assert not left.parent.exists()
        assert own.exists()
    assert not own.parent.exists()


def test_a_home_without_a_place_for_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings = Settings(home=tmp_path / "file")
    with pytest.raises(StoreError, match="Not a directory"), scratch_file(settings):
        pass
