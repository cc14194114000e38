"""Times stages: seconds, CPU seconds and peak memory of each process, and database connections.

On a machine that others use as well, seconds say little and CPU seconds much: both are told.
Memory and CPU are those of Linux's /proc.
"""

import cProfile
import os
import pstats
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from sqlalchemy import Connection, text

from benchmarks.statements import busy_statements, looking
from extraction_pipeline.reports.table import render_table

READER = "reader_child"
"""In the command line of the processes that parse documents."""

KINDS = ("pipeline", "postgres", "batch server")
OTHERS = text("""
    SELECT count(*) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
""")
GLANCE = 0.5
"""Seconds between counts of the connections."""
LOOKS, PAUSE = 50, 0.02
"""How often processes are looked at again when one was just ending, and after how many seconds."""
PROFILED = 25
"""Lines of a profile that are shown."""


@dataclass(frozen=True)
class Stage:
    """Seconds of one stage; of each kind of process the CPU seconds of all, and the peak memory in
    MB of the largest."""

    name: str
    seconds: float
    cpu: dict[str, float]
    memory: dict[str, float]
    documents: int

    @property
    def own_cpu(self) -> float:
        """CPU seconds of the pipeline's own processes: without the batch server."""
        return sum(spent for kind, spent in self.cpu.items() if kind != "batch server")


@dataclass
class Watch:
    """Times stages one after the other. With `profiling` each is told in its functions and the
    database's statements as well, which makes it slower."""

    database_url: str
    profiling: bool = False
    stages: list[Stage] = field(default_factory=list)
    connections: int = 0
    """The most that were open at once to the database, but for the watch's own."""

    @contextmanager
    def stage(self, name: str, documents: int) -> Iterator[None]:
        """Time a block, with the peaks of memory set back before it."""
        for process in processes():
            _reset_peak(process)
        before = cpu_seconds()
        profile = cProfile.Profile() if self.profiling else None
        started = time.perf_counter()
        if profile is None:
            yield
        else:
            print(f"== {name}")  # noqa: T201
            with busy_statements(self.database_url, print), profile:
                yield
        seconds = time.perf_counter() - started
        cpu = {kind: spent - before.get(kind, 0.0) for kind, spent in cpu_seconds().items()}
        memory: dict[str, float] = {}
        for process in processes():
            try:
                kind = _kind(process)
            except psutil.NoSuchProcess:
                continue
            memory[kind] = max(memory.get(kind, 0.0), _peak(process))
        self.stages.append(Stage(name, seconds, cpu, memory, documents))
        if profile is not None:
            pstats.Stats(profile).sort_stats("tottime").print_stats(PROFILED)

    @contextmanager
    def counting_connections(self) -> Iterator[None]:
        """Count the open connections to the database every now and then, from one of its own."""

        def count(connection: Connection) -> None:
            found = connection.execute(OTHERS).scalar_one()
            self.connections = max(self.connections, int(found))

        with looking(self.database_url, GLANCE, count):
            yield


def processes() -> list[psutil.Process]:
    """This process, its children, and the database servers of its home."""
    ours = psutil.Process()
    family = [ours, *ours.children(recursive=True)]
    home = os.environ.get("EXTRACTION_HOME", "")
    for process in psutil.process_iter(["name"]):
        if process.info["name"] == "postgres" and process not in family:
            try:
                belongs = any(home in part for part in process.cmdline()) or any(
                    home in part for part in (process.parent() or process).cmdline()
                )
            except psutil.Error:
                continue
            if belongs:
                family.append(process)
    return family


def cpu_seconds() -> dict[str, float]:
    """What each kind of process has used so far, those that have ended with it."""
    spent, complete = _read_cpu()
    for _ in range(LOOKS):
        if complete:
            break
        time.sleep(PAUSE)
        spent, complete = _read_cpu()
    return spent


def _read_cpu() -> tuple[dict[str, float], bool]:
    """And whether all could be read: the seconds of one that is ending are nowhere until its parent
    has taken them."""
    spent: dict[str, float] = {}
    complete = True
    for process in processes():
        try:
            times, kind = process.cpu_times(), _kind(process)
        except psutil.Error:
            complete = False
            continue
        spent[kind] = spent.get(kind, 0.0) + times.user + times.system
        if kind != "batch server":
            # Of children that have ended: sessions of the database, readers.
            spent[kind] += times.children_user + times.children_system
    return spent, complete


def _kind(process: psutil.Process) -> str:
    if process.pid == os.getpid() or any("multiprocessing" in one for one in process.cmdline()):
        return "pipeline"
    if process.name() == "postgres":
        return "postgres"
    return "reader" if any(READER in part for part in process.cmdline()) else "batch server"


def _reset_peak(process: psutil.Process) -> None:
    try:
        Path(f"/proc/{process.pid}/clear_refs").write_text("5")
    except OSError:
        return  # not Linux, or gone: the peak is then that of the whole life


def _peak(process: psutil.Process) -> float:
    try:
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        return float(process.memory_info().rss) / 2**20
    except (OSError, psutil.Error):
        return 0.0


def report(
    stages: list[Stage],
    say: Callable[[str], None],
    *,
    total: bool = True,
    waiting: str | None = None,
) -> None:
    """One line a stage, and their `total`, in which the stage called `waiting` is left out."""
    rows = [_row(stage) for stage in stages]
    ours = [stage for stage in stages if stage.name != waiting]
    if total:
        rows.append(
            _row(
                Stage(
                    "all" if len(ours) == len(stages) else f"all but {waiting}",
                    sum(one.seconds for one in ours),
                    {kind: sum(one.cpu.get(kind, 0.0) for one in ours) for kind in KINDS},
                    {kind: max(one.memory.get(kind, 0.0) for one in ours) for kind in KINDS},
                    ours[0].documents,
                )
            )
        )
    header = [
        "stage",
        "seconds",
        "documents/s",
        *(f"{kind}, CPU s" for kind in KINDS),
        *(f"{kind}, peak MB" for kind in KINDS),
    ]
    say(render_table(header, rows))


def _row(stage: Stage) -> list[str | int | float | None]:
    return [
        stage.name,
        round(stage.seconds, 1),
        round(stage.documents / stage.seconds),
        *(round(stage.cpu.get(kind, 0.0), 1) for kind in KINDS),
        *(round(stage.memory.get(kind, 0.0)) for kind in KINDS),
    ]
