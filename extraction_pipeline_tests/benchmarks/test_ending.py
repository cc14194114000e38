"""A benchmark that `timeout` ends is at its end within seconds, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from benchmarks import ending
from extraction_pipeline_tests.batch_server.process import wait_until
from extraction_pipeline_tests.faults.signals import ignore_ctrl_c

STATEMENT = """
from sqlalchemy import create_engine, text
from benchmarks.ending import ended_in_order, temporary_folder
from extraction_pipeline.installation.embedded_postgres import embedded_postgres

def main():
    with temporary_folder("benchmark") as folder, embedded_postgres(folder / "postgres") as url:
        engine = create_engine(url.replace("postgresql:", "postgresql+psycopg2:"))
        with engine.connect() as connection:
            print("asleep", flush=True)
            connection.execute(text("SELECT pg_sleep(600)"))

ended_in_order(main, patience=0.5)
"""


@contextmanager
def benchmark(words: Sequence[str], folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A benchmark in the background, as a script starts one; its output is in `folder`/log."""
    with (folder / "log").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *words],
            env={**os.environ, "TMPDIR": str(folder)},
            cwd=Path(__file__).parents[2],
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=ignore_ctrl_c,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()


def running(folder: Path) -> list[str]:
    """The commands of all processes of a benchmark."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if str(folder) in process.environ().get("TMPDIR", ""):
                found.append(" ".join(process.cmdline()))
    return found


def nothing_left(folder: Path) -> bool:
    return running(folder) == [] and [path.name for path in folder.iterdir()] == ["log"]


def test_postgres_and_the_batch_server_end_with_the_benchmark(tmp_path: Path) -> None:
    def runs(word: str) -> bool:
        return any(word in command for command in running(tmp_path))

    with benchmark(["-m", "benchmarks.sizes", "4000"], tmp_path) as process:
        wait_until(lambda: runs("batch_server") and runs("postgres"), 60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (143, 130), (tmp_path / "log").read_text()
        assert running(tmp_path) == []
        wait_until(lambda: nothing_left(tmp_path), 60)
        assert (tmp_path / "log").read_text().splitlines() == ["Interrupted"]


def test_a_statement_of_minutes_keeps_no_benchmark_from_its_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with benchmark(["-c", STATEMENT], tmp_path) as process:
        wait_until(lambda: "asleep" in log.read_text(), 60)
        time.sleep(0.5)  # until the statement is on its way
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143, log.read_text()
        wait_until(lambda: nothing_left(tmp_path), 60)
        assert log.read_text().splitlines() == ["asleep", "Interrupted"]


def test_nobody_waits_until_the_files_of_a_broken_off_benchmark_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(ending, "rmtree", lambda folder: pytest.fail("they are waited for"))
    with pytest.raises(KeyboardInterrupt), ending.temporary_folder("benchmark") as folder:
        (folder / "some" / "documents").mkdir(parents=True)
        raise KeyboardInterrupt
    wait_until(lambda: list(tmp_path.iterdir()) == [], 60)
