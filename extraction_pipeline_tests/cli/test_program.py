"""Commands in hints can be pasted where they are shown."""

import subprocess
import sys
from pathlib import Path

import pytest

from extraction_pipeline.cli.program import with_program

HINT = "Run: extraction-pipeline migrate"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A console script in a folder with a space in its name."""
    script = tmp_path / "my tools" / "extraction-pipeline"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    return script


def test_the_name_alone_where_a_shell_finds_it(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(script.parent))
    monkeypatch.setattr(sys, "argv", [str(script)])
    assert with_program(HINT) == HINT


def test_as_it_was_called_where_a_shell_does_not_or_finds_another(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [str(script)])
    for path in ("/nowhere", str(Path(sys.executable).parent)):
        monkeypatch.setenv("PATH", path)
        assert with_program(HINT) == f"Run: '{script}' migrate"


def test_a_module_is_called_by_its_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/extraction_pipeline/cli/__main__.py"])
    command = with_program("extraction-pipeline status").removesuffix("status")
    done = subprocess.run(
        ["sh", "-c", f"{command} --version"], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("extraction-pipeline, version ")
