"""Hosts as network namespaces, joined by a bridge in a namespace of its own (Linux, root).

Nothing outside is touched: the root namespace has no interface and no route there. Whatever was
started in a host is killed, and every namespace is deleted, when the block ends.
"""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

NETWORK = "10.77.0"
_CLONE_NEWNET = 0x40000000
_GROUPS = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
_PERIOD = 100_000
END_SECONDS = 10.0


@dataclass(frozen=True)
class Host:
    """One host: its namespace, its address, and the name of its end at the bridge."""

    name: str
    number: int
    space: str

    @property
    def address(self) -> str:
        """Its address on the network."""
        return f"{NETWORK}.{self.number}"

    @property
    def port(self) -> str:
        """Its link, as the bridge calls it."""
        return f"port{self.number}"


@dataclass
class Network:
    """A bridge and the hosts on it. `cores` bounds what each host that is asked for it may use."""

    prefix: str
    cores: float | None = None
    hosts: dict[str, Host] = field(default_factory=dict)

    def add(self, name: str) -> Host:
        """A new host on the bridge."""
        number = len(self.hosts) + 2
        host = Host(name, number, f"{self.prefix}-{name}")
        _ip("netns", "add", host.space)
        self.hosts[name] = host
        inside = f"inside{number}"
        _ip("-n", self._bridge, "link", "add", host.port, "type", "veth", "peer", "name", inside)
        _ip("-n", self._bridge, "link", "set", inside, "netns", host.space)
        _ip("-n", self._bridge, "link", "set", host.port, "master", "bridge", "up")
        _ip("-n", host.space, "address", "add", f"{host.address}/24", "dev", inside)
        _ip("-n", host.space, "link", "set", inside, "up")
        _ip("-n", host.space, "link", "set", "lo", "up")
        return host

    def open(self) -> None:
        """Make the bridge."""
        _ip("netns", "add", self._bridge)
        _ip("-n", self._bridge, "link", "add", "bridge", "type", "bridge")
        _ip("-n", self._bridge, "link", "set", "bridge", "up")

    def start(
        self,
        host: Host,
        words: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        *,
        bounded: bool = False,
    ) -> "subprocess.Popen[bytes]":
        """Start a program on a host; `bounded` to its share of the processors."""
        inside = ["ip", "netns", "exec", host.space, *words]
        group = self._group(host) if bounded else None
        if group is not None:
            inside = ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh", *inside]
        with log.open("ab") as out:
            return subprocess.Popen(
                inside,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def cut(self, host: Host) -> None:
        """Take its link down: nothing comes or goes, and nobody is told."""
        _ip("-n", self._bridge, "link", "set", host.port, "down")

    def join(self, host: Host) -> None:
        """Bring its link up again."""
        _ip("-n", self._bridge, "link", "set", host.port, "up")

    def kill(self, host: Host) -> int:
        """SIGKILL to all that runs on a host, with its link down: nobody hears of its end, as of a
        host that loses its power. Returns how many processes they were."""
        self.cut(host)
        return _kill_all(host.space)

    def close(self) -> None:
        """End all processes on all hosts, and delete every namespace."""
        for host in self.hosts.values():
            until = time.monotonic() + END_SECONDS
            while _kill_all(host.space) and time.monotonic() < until:
                time.sleep(0.1)  # children that were being made meanwhile
            _ip("netns", "delete", host.space)
            for place in _GROUPS:
                with suppress(OSError):
                    (place / host.space).rmdir()
        _ip("netns", "delete", self._bridge)

    @property
    def _bridge(self) -> str:
        return f"{self.prefix}-bridge"

    def _group(self, host: Host) -> Path | None:
        if self.cores is None:
            return None
        quota = int(self.cores * _PERIOD)
        first, second = (place / host.space for place in _GROUPS)
        if first.parent.is_dir():
            first.mkdir(exist_ok=True)
            (first / "cpu.cfs_period_us").write_text(str(_PERIOD))
            (first / "cpu.cfs_quota_us").write_text(str(quota))
            return first
        second.mkdir(exist_ok=True)
        (second / "cpu.max").write_text(f"{quota} {_PERIOD}")
        return second


def enter(host: Host) -> None:
    """Let this process, which may have one thread alone, be on a host from here on."""
    with Path(f"/var/run/netns/{host.space}").open() as space:
        if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")


@contextmanager
def network(prefix: str, cores: float | None) -> Iterator[Network]:
    """A network; all of it is gone when the block ends."""
    made = Network(prefix, cores)
    made.open()
    try:
        yield made
    finally:
        made.close()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, stdout=subprocess.DEVNULL)


def _kill_all(space: str) -> int:
    looking = subprocess.Popen(["ip", "netns", "pids", space], stdout=subprocess.PIPE, text=True)
    found, _ = looking.communicate()
    if looking.returncode != 0:
        raise subprocess.CalledProcessError(looking.returncode, looking.args)
    # On our own host we are among them, and so is who looks.
    ours = (os.getpid(), looking.pid)
    pids = [int(pid) for pid in found.split() if int(pid) not in ours]
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return len(pids)
