"""The comparison with other tools, as far as it goes without installing them."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from benchmarks.others.environments import NotInstalled, Tool, python_of
from benchmarks.others.programs.settings import PREFIX, Fair, fair, tell
from benchmarks.others.subjects import ROOT, Other
from benchmarks.others.watching import Watch
from benchmarks.synthetic import write_documents

PROGRAMS = ROOT / "benchmarks" / "others" / "programs"


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Fair]:
    write_documents(tmp_path / "documents", 0, 3)
    yield Fair(
        documents=tmp_path / "documents",
        base_url="http://127.0.0.1:1/v1",
        output=tmp_path / "told.jsonl",
        state=tmp_path / "state",
        batch_size=2,
        poll_seconds=1,
    )


@pytest.mark.parametrize("tool", Tool)
def test_pins_are_names_with_versions_and_begin_with_the_tool(tool):
    lines = tool.pins.read_text().splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9._+]+", line) for line in lines)
    assert lines[0].partition("==")[0] == tool
    names = [re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower() for line in lines]
    assert len(set(names)) == len(names)


def test_an_environment_is_used_again_while_its_pins_are_the_same(tmp_path):
    made = tmp_path / Tool.CURATOR
    made.mkdir()
    (made / "made_from.txt").write_text(Tool.CURATOR.pins.read_text())
    assert python_of(Tool.CURATOR, tmp_path) == made / "bin" / "python"


def test_what_cannot_be_installed_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(NotInstalled, match="exit code 1"):
        python_of(Tool.CURATOR, tmp_path)


def test_the_programs_are_python():
    programs = list(PROGRAMS.rglob("*.py"))
    assert len(programs) > len(Tool)
    for program in programs:
        compile(program.read_text(), str(program), "exec")


def test_the_settings_need_pydantic_alone():
    """They are read in environments that have nothing of this project's dependencies."""
    script = (
        "import sys; before = set(sys.modules)\n"
        "import benchmarks.others.programs.settings\n"
        "for name in set(sys.modules) - before:\n"
        "    if 'site-packages' in (getattr(sys.modules[name], '__file__', None) or ''):\n"
        "        print(name.partition('.')[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) <= {
        "annotated_types",
        "pydantic",
        "pydantic_core",
        "typing_extensions",
        "typing_inspection",
    }


def test_settings_come_back_out_of_the_environment(settings, monkeypatch):
    for name, value in settings.environment().items():
        assert name.startswith(PREFIX)
        monkeypatch.setenv(name, value)
    assert fair() == settings
    assert [name for name, _ in fair().texts()] == [f"summary-{number:07}" for number in range(3)]


def test_what_a_program_tells_is_counted(settings, tmp_path):
    subject = Other(Tool.CURATOR, Path(sys.executable), tmp_path, settings)
    assert (subject.records(), subject.explained()) == ([], 0)
    tell(settings.output, [("a", True), ("a", True), ("a", False), ("b", False)])
    assert (subject.records(), subject.explained()) == (["a", "a"], 1)


BUSY = "import time; end = time.monotonic() + .6; held = bytearray(50_000_000)\n"
LOOP = "while time.monotonic() < end: pass"


def test_a_program_is_watched_with_its_children(tmp_path):
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY + LOOP!r}])"
    program = subprocess.Popen([sys.executable, "-c", child])
    with Watch(psutil.Process(program.pid), tmp_path) as watch:
        assert program.wait(30) == 0
    assert 50 < watch.largest_mb < watch.together_mb
    assert 0.0 < watch.cpu_seconds < 5.0


def test_of_a_program_of_one_process_the_largest_has_as_much_as_all(tmp_path):
    program = subprocess.Popen([sys.executable, "-c", BUSY + LOOP])
    with Watch(psutil.Process(program.pid), tmp_path) as watch:
        assert program.wait(30) == 0
    assert 50 < watch.largest_mb == watch.together_mb
