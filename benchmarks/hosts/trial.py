"""One trial: the whole way of a corpus over several hosts, with or without losing two of them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import requests
from sqlalchemy import Engine, text

from benchmarks.hosts.network import Host
from benchmarks.hosts.services import COLLECTION, VERSION, Services
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.ledger.dead_peers import SERVER_SECONDS
from extraction_pipeline_tests.chaos import counting

LOOK_SECONDS = 0.25
LONGEST_SECONDS = 900.0
SESSIONS_AT_WORK = 3
"""Of a host: more than a run opens before its first step."""
AWAY_SECONDS = 60.0
"""How long a host is cut off: its sessions end meanwhile, and others take its work over."""

_STAGES: Mapping[str, str] = {
    "read in parts": "scan_in_parts",
    "submit": "submit_missing",
    "collect and publish": "collect_batch",
}


@dataclass
class Trial:
    """What one trial came to. `seconds` are from the first begin of a stage's runs to the last end;
    all `counts` must be zero, and `freed` below what `dead_peers` promises."""

    workers: int
    documents: int
    seconds: dict[str, float] = field(default_factory=dict)
    runs: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    freed: list[tuple[str, float]] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether nothing came twice, nothing was lost, and locks were freed in time."""
        in_time = all(seconds <= SERVER_SECONDS + 5 for _, seconds in self.freed)
        return in_time and not any(self.counts.values())


def run_trial(services: Services, tell: Callable[[str], None], *, losing: bool) -> Trial:
    """Read, submit, collect and publish everything; with `losing`, one host is cut off for a minute
    while sources are read, and another one killed while results are collected."""
    trial = Trial(len(services.workers), services.documents)
    engine = open_engine(services.database_url)
    watch = _Watch(engine, time.monotonic() + LONGEST_SECONDS)
    words = ("-w", str(services.workspace))
    services.dagster("job", "backfill", *words, "-j", "scan_in_parts", "--all", "all", "--noprompt")
    joined_at, lost = None, services.workers[0]
    if losing:
        lost = watch.at_work(services.workers)
        services.network.cut(lost)
        tell(f"{lost.name} is cut off, with {watch.sessions(lost.address)} sessions")
        joined_at = time.monotonic() + AWAY_SECONDS
        trial.freed.append((lost.name, watch.freed(lost.address)))
        tell(f"{lost.name}: its sessions were ended after {trial.freed[-1][1]:.1f} s")

    def join_again() -> None:
        nonlocal joined_at
        if joined_at is not None and time.monotonic() > joined_at:
            joined_at = None
            services.network.join(lost)
            tell(f"{lost.name} is back")

    watch.until(lambda: watch.ended("scan_in_parts") == services.parts, join_again)
    if (lacking := services.documents - watch.registered()) > 0:
        # Dagster does not try again what belongs to a backfill of a job; the next night reads it.
        tell(f"{lacking} documents were not read with their part, and are read as a night does")
        services.dagster("job", "launch", *words, "-j", "scan_collections")
    watch.until(lambda: watch.registered() == services.documents, join_again)
    tell("all documents are registered")
    config = (
        f'{{"ops": {{"submit_missing_documents": {{"config": {{"collection": "{COLLECTION}"}}}}}}}}'
    )
    services.dagster("job", "launch", *words, "-j", "submit_missing", "--config-json", config)
    if losing:
        watch.until(lambda: watch.running("collect_batch") >= 1, join_again)
        dead = watch.at_work([one for one in services.workers if one is not lost])
        killed = services.network.kill(dead)
        tell(f"{dead.name} is killed, with {killed} processes")
        trial.freed.append((dead.name, watch.freed(dead.address)))
        tell(f"{dead.name}: its sessions were ended after {trial.freed[-1][1]:.1f} s")
    watch.until(lambda: watch.open_work(services.documents) == 0, join_again)
    watch.until(lambda: joined_at is None, join_again)
    watch.until(lambda: watch.running("%") == 0)
    for stage, job in _STAGES.items():
        trial.seconds[stage], trial.runs[stage] = watch.stage(job)
    trial.counts = _counts(engine, services)
    engine.dispose()
    return trial


@dataclass
class _Watch:
    """Looks at the database, as an operator does."""

    engine: Engine
    deadline: float

    def until(
        self, holds: Callable[[], bool], meanwhile: Callable[[], None] = lambda: None
    ) -> None:
        """Wait until something holds; the trial ends as failed at its deadline."""
        while not holds():
            meanwhile()
            if time.monotonic() > self.deadline:
                raise SystemExit(f"The trial did not come to its end: {self._states()}")
            time.sleep(LOOK_SECONDS)  # other hosts' work: there is nothing to wait on

    def registered(self) -> int:
        """Documents that are registered and recorded."""
        return self._number(
            "SELECT count(*) FROM extraction.documents WHERE recorded_at IS NOT NULL"
        )

    def running(self, job: str) -> int:
        """Runs of a job that are under way."""
        return self._number(
            "SELECT count(*) FROM runs WHERE pipeline_name LIKE :job"
            " AND status IN ('STARTING', 'STARTED', 'QUEUED', 'NOT_STARTED')"
            if job == "%"
            else "SELECT count(*) FROM runs WHERE pipeline_name = :job AND status = 'STARTED'",
            job=job,
        )

    def ended(self, job: str) -> int:
        """Runs of a job that are over."""
        return self._number(
            "SELECT count(*) FROM runs WHERE pipeline_name = :job"
            " AND status IN ('SUCCESS', 'FAILURE', 'CANCELED')",
            job=job,
        )

    def at_work(self, hosts: Sequence[Host]) -> Host:
        """A host whose run has begun its work: it holds sessions of the ledger."""
        found: list[Host] = []

        def any_is() -> bool:
            found.extend(host for host in hosts if self.sessions(host.address) > SESSIONS_AT_WORK)
            return bool(found)

        self.until(any_is)
        return found[0]

    def sessions(self, address: str) -> int:
        """Sessions that the server has for a host."""
        return self._number(
            "SELECT count(*) FROM pg_stat_activity WHERE client_addr = CAST(:address AS inet)",
            address=address,
        )

    def freed(self, address: str) -> float:
        """Seconds until the server has ended all sessions of a host."""
        began = time.monotonic()
        self.until(lambda: self.sessions(address) == 0)
        return time.monotonic() - began

    def open_work(self, documents: int) -> int:
        """Documents without a record, and jobs that are not at their end."""
        return self._number(
            """
            SELECT :documents - (SELECT count(*) FROM extraction.extractions)
                 + (SELECT count(*) FROM extraction.batch_jobs
                    WHERE state <> 'published' OR submission_recorded_at IS NULL
                       OR results_recorded_at IS NULL)
            """,
            documents=documents,
        )

    def stage(self, job: str) -> tuple[float, int]:
        """Seconds from the first begin of a job's runs to the last end, and how many they were."""
        with self.engine.connect() as connection:
            row = connection.execute(
                text(
                    "SELECT coalesce(max(end_time) - min(start_time), 0) AS seconds,"
                    " count(*) AS runs FROM runs WHERE pipeline_name = :job"
                ),
                {"job": job},
            ).one()
        return float(row.seconds), int(row.runs)

    def _states(self) -> dict[str, int]:
        with self.engine.connect() as connection:
            return {
                str(name): int(count)
                for name, count in connection.execute(
                    text(
                        "SELECT pipeline_name || ' ' || status, count(*) FROM runs GROUP BY 1"
                        " UNION ALL SELECT 'batch job ' || state, count(*)"
                        " FROM extraction.batch_jobs GROUP BY 1"
                        " UNION ALL SELECT 'documents', count(*) FROM extraction.documents"
                    )
                )
            }

    def _number(self, statement: str, **values: Any) -> int:
        with self.engine.connect() as connection:
            return int(connection.execute(text(statement), values).scalar_one())


def _counts(engine: Engine, services: Services) -> dict[str, int]:
    """Everything that must be zero, by the provider's, the ledger's and Dagster's rows."""
    statistics = requests.get(
        f"http://{services.provider.address}:8765/statistics",
        headers={"Authorization": "Bearer of-this-benchmark"},
        timeout=10,
    ).json()
    with engine.connect() as connection:
        asked = counting.requests(connection, statistics)
        known = {
            row[0]
            for row in connection.execute(text("SELECT document_hash FROM extraction.documents"))
        }
        lost, without_end = counting.lost_documents(connection, {COLLECTION: known}, VERSION)
        false, missing = counting.records(connection)
    return {
        "duplicates": asked.duplicates,
        "asked again": asked.asked_again,
        "lost": lost + services.documents - len(known),
        "without end": without_end,
        "false records": false,
        "missing records": missing,
    }
