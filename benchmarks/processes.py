"""Dagster's own processes in a benchmark: webserver, daemon, code server and run workers."""

import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import requests

from extraction_pipeline.installation.dagster_processes import DagsterProcesses
from extraction_pipeline.settings import Settings

STARTING_SECONDS = 300.0
LOOK_SECONDS = 0.5
HOST = "127.0.0.1"

KINDS = {
    "dagster_webserver": "webserver",
    "dagster._daemon": "daemon",
    "code-server": "code server",
    "grpc": "code server",
    "spawn_main": "run worker",
    "batch-server": "batch server",
}
"""What a process is, by a word of its command line; the first that is found counts."""


@dataclass
class Dagster:
    """A running `dagster dev`, asked over HTTP as its UI asks it."""

    port: int
    peaks: dict[str, float] = field(default_factory=dict)
    """Most memory in MB that a process of each kind had."""

    @property
    def url(self) -> str:
        """Where its UI is."""
        return f"http://{HOST}:{self.port}"

    def ask(self, query: str, variables: Mapping[str, object] | None = None) -> dict[str, Any]:
        """The data of one GraphQL request. Raises `SystemExit` with its errors."""
        answer = requests.post(
            f"{self.url}/graphql",
            json={"query": query, "variables": dict(variables or {})},
            timeout=600,
        ).json()
        if answer.get("errors"):
            raise SystemExit(f"The webserver refused a query: {answer['errors'][0]['message']}")
        data: dict[str, Any] = answer["data"]
        return data


@contextmanager
def running_dagster(settings: Settings) -> Iterator[Dagster]:
    """Dagster's processes over a home, until the block ends; peaks of memory are kept."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        dagster = Dagster(free.getsockname()[1])
    over = threading.Event()
    with (settings.home / "benchmark.lock").open("ab") as lock:
        # The daemon logs every partition of a backfill at each look at it.
        with _output_to(settings.home / "dagster.log"):
            processes = DagsterProcesses(HOST, dagster.port, lock)
        watch = threading.Thread(target=_watch, args=(dagster, over), daemon=True)
        watch.start()
        try:
            _wait_for(dagster)
            yield dagster
        finally:
            over.set()
            watch.join()
            processes.stop()


@contextmanager
def _output_to(file: Path) -> Iterator[None]:
    """Let processes that begin in the block write to a file."""
    kept = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    try:
        with file.open("ab") as log:
            for descriptor in kept:
                os.dup2(log.fileno(), descriptor)
        yield
    finally:
        for descriptor, saved in kept.items():
            os.dup2(saved, descriptor)
            os.close(saved)


def _wait_for(dagster: Dagster) -> None:
    until = time.monotonic() + STARTING_SECONDS
    loaded = "{ repositoriesOrError { __typename ... on RepositoryConnection { nodes { name } } } }"
    while time.monotonic() < until:
        with suppress(requests.ConnectionError):
            if dagster.ask(loaded)["repositoriesOrError"].get("nodes"):
                return
        time.sleep(LOOK_SECONDS)
    raise SystemExit(f"Dagster did not start within {STARTING_SECONDS:.0f} s")


def _watch(dagster: Dagster, over: threading.Event) -> None:
    while not over.wait(LOOK_SECONDS):
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error, OSError):
                kind = _kind(process.cmdline())
                if kind is not None:
                    peak = _peak(process)
                    dagster.peaks[kind] = max(dagster.peaks.get(kind, 0.0), peak)


def _kind(command: list[str]) -> str | None:
    line = " ".join(command)
    return next((kind for word, kind in KINDS.items() if word in line), None)


def _peak(process: psutil.Process) -> float:
    status = Path(f"/proc/{process.pid}/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return float(process.memory_info().rss) / 2**20
