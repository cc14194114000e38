"""Peak memory and processor time of a program with all its processes, sampled while it runs."""

import threading
from dataclasses import dataclass, field
from pathlib import Path

import psutil

SAMPLE_SECONDS = 0.25


@dataclass
class Watch:
    """Of one program. Databases that it keeps in `folder` count as its own.

    `together_mb` is the highest sum over all its processes at one moment, and `largest_mb` the
    highest of one process. In both a page that several processes share is divided among them, so
    that it counts once (Linux; elsewhere it counts in each). `cpu_seconds` lacks what a process did
    after its last sample.
    """

    program: psutil.Process
    folder: Path
    together_mb: float = 0.0
    largest_mb: float = 0.0
    _cpu: dict[int, float] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Watch":
        """Begin to sample."""
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._over.set()
        self._thread.join()

    @property
    def cpu_seconds(self) -> float:
        """User and system time of all its processes."""
        return sum(self._cpu.values())

    def _sample(self) -> None:
        before = {process.pid: _cpu_seconds(process) for process in self._databases()}
        while not self._over.wait(SAMPLE_SECONDS):
            together = 0.0
            for process in self._processes():
                try:
                    memory = process.memory_full_info()
                    used = _cpu_seconds(process) - before.get(process.pid, 0.0)
                except psutil.Error:
                    continue  # it has just ended
                mb = getattr(memory, "pss", memory.rss) / 2**20
                together += mb
                self.largest_mb = max(self.largest_mb, mb)
                self._cpu[process.pid] = used
            self.together_mb = max(self.together_mb, together)

    def _processes(self) -> list[psutil.Process]:
        try:
            family = [self.program, *self.program.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []
        return family + [process for process in self._databases() if process not in family]

    def _databases(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter(["name"]):
            if process.info["name"] != "postgres":
                continue
            try:
                server = process.parent() or process
                said = [*process.cmdline(), *server.cmdline()]
            except psutil.Error:
                continue
            if any(str(self.folder) in part for part in said):
                found.append(process)
        return found


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
