"""Runs in processes of their own, as a run launcher starts them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from extraction_pipeline_tests.orchestration.installed import Installed

Process = subprocess.Popen[str]


@contextmanager
def job_process(
    installed: Installed, job: str, op: str, config: Mapping[str, object], **tags: str
) -> Iterator[Process]:
    """A run of a job; its process is gone when the block ends."""
    file = installed.workplace.root / f"{job}.json"
    file.write_text(json.dumps({"ops": {op: {"config": dict(config)}}}))
    arguments = ["job", "execute", "--job", job, "--config", str(file), "--tags", json.dumps(tags)]
    with _dagster(installed, arguments) as process:
        yield process


@contextmanager
def asset_process(installed: Installed, asset: str, partition: str) -> Iterator[Process]:
    """A materialization of one partition, or of a range of them that is written as `first...last`;
    its process is gone when the block ends."""
    option = "--partition-range" if "..." in partition else "--partition"
    arguments = ["asset", "materialize", "--select", asset, option, partition]
    with _dagster(installed, arguments) as process:
        yield process


@contextmanager
def _dagster(installed: Installed, arguments: Sequence[str]) -> Iterator[Process]:
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "dagster", *arguments),
            *("--module-name", "extraction_pipeline.definitions"),
        ],
        env={**os.environ, "DAGSTER_HOME": installed.instance.root_directory},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def kill(process: Process) -> None:
    """SIGKILL: no chance to tidy up."""
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=20)
    assert process.returncode == -signal.SIGKILL


def ended_well(process: Process) -> None:
    """Wait for the end of a run that must succeed."""
    output, _ = process.communicate(timeout=90)
    assert process.returncode == 0, output[-3000:]
