"""A benchmark that `timeout` ends leaves no process behind."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil

from extraction_pipeline_tests.batch_server.process import wait_until
from extraction_pipeline_tests.faults.signals import ignore_ctrl_c


def test_postgres_and_the_batch_server_end_with_the_benchmark(tmp_path: Path) -> None:
    def of_this() -> list[str]:
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if str(tmp_path) in process.environ().get("TMPDIR", ""):
                    found.append(" ".join(process.cmdline()))
        return found

    def running(word: str) -> bool:
        return any(word in command for command in of_this())

    log = tmp_path / "log"
    with log.open("wb") as output:
        benchmark = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.sizes", "4000"],
            env={**os.environ, "TMPDIR": str(tmp_path)},
            cwd=Path(__file__).parents[2],
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=ignore_ctrl_c,
        )
    try:
        wait_until(lambda: running("batch_server") and running("postgres"), 60)
        benchmark.send_signal(signal.SIGTERM)
        assert benchmark.wait(60) in (143, 130), log.read_text()
        assert of_this() == []
        assert log.read_text().splitlines() == ["Interrupted"]
    finally:
        if benchmark.poll() is None:
            benchmark.kill()
