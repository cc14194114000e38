"""What runs on which host: the production shape of `deploy/compose`, without containers."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copyfile, which

import fsspec
import yaml

from benchmarks.hosts.network import Host, Network
from benchmarks.synthetic import document
from extraction_pipeline.installation.dagster_tables import make_dagster_tables
from extraction_pipeline.installation.embedded_postgres import _programs, embedded_postgres
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.ledger.migrate import migrate

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
COLLECTION = "bench"
VERSION = "v1"
READY_SECONDS = 120.0
_BIN = Path(sys.executable).parent

DECLARED = f"""
name: {COLLECTION}
description: Synthetic summaries in an object store.
document_type: discharge_summary
source: {{kind: folder, url: s3://corpus/{COLLECTION}}}
active_version: {VERSION}
extraction_versions:
  {VERSION}: {{provider: local, model: rules-baseline}}
"""


@dataclass
class Services:
    """The hosts of one installation, and how they are started."""

    network: Network
    root: Path
    documents: int
    parts: int
    jobs: int
    count: int
    """Of worker hosts."""
    database: Host = field(init=False)
    store: Host = field(init=False)
    provider: Host = field(init=False)
    broker: Host = field(init=False)
    control: Host = field(init=False)
    workers: list[Host] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Give each service a host of its own."""
        names = ("database", "store", "provider", "broker", "control")
        self.database, self.store, self.provider, self.broker, self.control = map(
            self.network.add, names
        )

    def prepare(self) -> None:
        """Make what is on disks: the database's tables, and the one YAML."""
        (self.root / "collections").mkdir()
        (self.root / "collections" / f"{COLLECTION}.yaml").write_text(DECLARED)
        with embedded_postgres(self.root / "postgres") as url:
            engine = open_engine(url)
            migrate(engine)
            engine.dispose()
            make_dagster_tables(url)
        with (self.root / "postgres" / "pg_hba.conf").open("a") as allowed:
            allowed.write("host all all 10.77.0.0/24 trust\n")

    def start(self) -> None:
        """Start all services but the workers."""
        programs, account = _programs()
        self._start(
            self.database,
            [
                *("setpriv", f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups"),
                *(str(programs / "postgres"), "-D", str(self.root / "postgres")),
                *("-c", f"listen_addresses={self.database.address}", "-k", ""),
            ],
        )
        self._start(self.store, [_program("moto_server"), "-H", self.store.address, "-p", "9000"])
        self._start(
            self.broker,
            [
                *(which("redis-server") or "redis-server", "--bind", self.broker.address),
                *("--protected-mode", "no", "--save", "", "--dir", str(self.root)),
            ],
        )
        self._start(
            self.provider,
            [
                *(_program("extraction-pipeline"), "batch-server", "--host", self.provider.address),
                *("--port", "8765", "--state", str(self.root / "batch_server")),
                *("--api-key-variable", "EXTRACTION_LOCAL_API_KEY"),
            ],
        )
        for host, port in (
            (self.database, 5432),
            (self.store, 9000),
            (self.broker, 6379),
            (self.provider, 8765),
        ):
            _until(f"{host.name} listens", lambda h=host, p=port: _listens(h, p))  # type: ignore[misc]
        self._start(
            self.control,
            [
                *(_program("dagster"), "code-server", "start", "-h", self.control.address),
                *("-p", "4266", "-m", "extraction_pipeline.definitions"),
            ],
        )
        _until("the code server listens", lambda: _listens(self.control, 4266))
        workspace = {"grpc_server": {"host": self.control.address, "port": 4266}}
        self.workspace.write_text(yaml.safe_dump({"load_from": [workspace]}))
        self._start(
            self.control, [_program("dagster-daemon"), "run", "-w", str(self.workspace)], "daemon"
        )

    def start_workers(self) -> None:
        """Add hosts with a Celery worker each; what they load is loaded before a run comes."""
        for _ in range(self.count):
            host = self.network.add(f"worker{len(self.workers) + 1}")
            self.workers.append(host)
            self._start(
                host,
                [
                    *(_program("celery"), "-A", "dagster_celery.app", "worker", "-Q", "dagster"),
                    *("-I", "extraction_pipeline.definitions", "-n", f"worker@{host.name}"),
                    *("--concurrency", "1", "--max-tasks-per-child", "1"),
                    *("--prefetch-multiplier", "1", "-O", "fair", "--loglevel", "INFO"),
                    *("--without-gossip", "--without-mingle"),
                ],
                bounded=True,
            )
        for host in self.workers:
            log = self._log(host.name)
            _until(f"{host.name} is ready", lambda log=log: " ready." in log.read_text())  # type: ignore[misc]

    def write_documents(self) -> None:
        """Put the documents into the object store."""
        os.environ.update(self.environment(self.control))
        files = fsspec.filesystem("s3")
        for bucket in ("corpus", "extraction"):
            files.mkdir(bucket)
        files.pipe(
            {
                f"corpus/{COLLECTION}/summary-{number:07}.txt": document(number)
                for number in range(self.documents)
            }
        )

    def dagster(self, *words: str) -> None:
        """Run a command of Dagster's on the control host, as an operator does."""
        done = subprocess.run(
            [_program("dagster"), *words],
            env=self.environment(self.control),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise SystemExit(f"dagster {' '.join(words)}\n{done.stdout}\n{done.stderr}")

    @property
    def workspace(self) -> Path:
        """Where the definitions are found."""
        return self.root / "workspace.yaml"

    @property
    def database_url(self) -> str:
        """The one PostgreSQL."""
        return f"postgresql://postgres@{self.database.address}:5432/postgres"

    def environment(self, host: Host) -> dict[str, str]:
        """The settings of every process; each host has folders of its own."""
        home = self.root / host.name
        (home / "dagster").mkdir(parents=True, exist_ok=True)
        instance = home / "dagster" / "dagster.yaml"
        if not instance.exists():
            instance.write_text(yaml.safe_dump(self._instance()))
            config = DEPLOY / "compose" / "dagster_celery_config.py"
            copyfile(config, home / config.name)
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("EXTRACTION_", "DAGSTER_", "AWS_"))
        }
        return kept | {
            "PYTHONPATH": str(home),
            "DAGSTER_HOME": str(home / "dagster"),
            "EXTRACTION_HOME": str(home),
            "EXTRACTION_DATABASE_URL": self.database_url,
            "EXTRACTION_STORE_URL": "s3://extraction",
            "EXTRACTION_COLLECTIONS": str(self.root / "collections"),
            "EXTRACTION_LOCAL_BASE_URL": f"http://{self.provider.address}:8765/v1",
            "EXTRACTION_LOCAL_API_KEY": "of-this-benchmark",
            "EXTRACTION_LIMITS": json.dumps(
                {"local": {"requests_per_job": -(-self.documents // self.jobs)}}
            ),
            "EXTRACTION_SCAN_PARTS": str(self.parts),
            "EXTRACTION_NIGHTLY_CRON": "0 0 29 2 *",  # not in the middle of this
            "EXTRACTION_POLL_SECONDS": "1",
            "EXTRACTION_POLL_MAX_SECONDS": "5",
            "EXTRACTION_RESOLVE_GRACE_SECONDS": "5",
            "EXTRACTION_READ_TIMEOUT": "20",
            "CELERY_BROKER_URL": f"redis://{self.broker.address}:6379/0",
            "AWS_ACCESS_KEY_ID": "benchmark",
            "AWS_SECRET_ACCESS_KEY": "benchmark",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL_S3": f"http://{self.store.address}:9000",
        }

    def _instance(self) -> Mapping[str, object]:
        """The instance file of production, that looks more often for what was lost."""
        instance = yaml.safe_load((DEPLOY / "compose" / "dagster.yaml").read_text())
        # What waits, waits in Dagster's queue: a run that waits at the broker counts as not begun.
        instance["concurrency"]["runs"]["max_concurrent_runs"] = self.count
        instance["run_monitoring"] |= {"start_timeout_seconds": 45, "poll_interval_seconds": 5}
        return dict(instance)

    def _log(self, name: str) -> Path:
        return self.root / f"{name}.log"

    def _start(
        self, host: Host, words: Sequence[str], name: str | None = None, *, bounded: bool = False
    ) -> None:
        self.network.start(
            host, words, self.environment(host), self._log(name or host.name), bounded=bounded
        )


def _program(name: str) -> str:
    return str(_BIN / name)


def _listens(host: Host, port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((host.address, port)) == 0


def _until(what: str, holds: Callable[[], bool]) -> None:
    until = time.monotonic() + READY_SECONDS
    while not holds():
        if time.monotonic() > until:
            raise SystemExit(f"It was waited in vain until {what}.")
        time.sleep(0.2)  # other hosts' processes: there is nothing to wait on
