"""A campaign: the real thing is fed and killed, then left alone to its end, and counted."""

import json
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import requests
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from extraction_pipeline_tests.chaos import counting
from extraction_pipeline_tests.chaos.counting import Counts, Harm
from extraction_pipeline_tests.chaos.dagster_daemon import DagsterDaemon, dagster_daemon
from extraction_pipeline_tests.chaos.database import Database, database
from extraction_pipeline_tests.chaos.plan import (
    Fate,
    Feeding,
    Meal,
    fates,
    feedings,
    first_fates,
    troubles,
)
from extraction_pipeline_tests.chaos.workers import KILLED, Workers, warm_workers
from extraction_pipeline_tests.chaos.world import ACTIVE, OTHER, World

AT_ONCE = 3
"""Runs at the same time."""
GLANCE_SECONDS = 0.02
HURRY_SECONDS = 1.0
LOOK_SECONDS = 0.5
CALM_SECONDS = 240.0
"""Without any progress, after which what is open counts as stuck."""
MOST_FAULTS = 15
"""Processes in a row that end by themselves, as they may while PostgreSQL is away."""
SCAN, SUBMIT = "scan_collections", "submit_missing"
AT_ONE_PROVIDER = (SUBMIT, "resolve_submission", "collect_batch")
"""Runs that deal with the provider of one collection."""
TELL_SECONDS = 20.0
"""Between two lines on how the end comes on."""
DELAY_SECONDS = 0.3
"""That a batch takes at the provider."""


@dataclass
class Process:
    """One process, and what is to become of it."""

    kind: str
    fate: Fate
    dies_at: float | None
    collection: str | None


@dataclass
class Task:
    """A run that waits for its process."""

    kind: str
    role: str
    arguments: dict[str, Any]


@dataclass
class Campaign:
    """One campaign in its world. `tell` gets a line for each process that was killed."""

    world: World
    seed: int
    tell: Callable[[str], None]
    database: Database
    workers: Workers
    dagster: DagsterDaemon | None
    with_faults: bool
    kills: Counter[str] = field(default_factory=Counter)
    harmed: set[str] = field(default_factory=set)
    calm: bool = False
    _processes: dict[int, Process] = field(default_factory=dict)
    _queue: deque[Task] = field(default_factory=deque)
    _fates: dict[str, Iterator[Fate]] = field(default_factory=dict)
    _first_fates: Iterator[Fate] = field(init=False)
    _troubles: Iterator[list[Mapping[str, object]]] = field(init=False)
    _read: int = 0
    _hurried: float = 0.0
    _faults: int = 0

    def __post_init__(self) -> None:
        """Draw from the seed."""
        self._first_fates = first_fates(self.seed)
        self._troubles = troubles(self.seed)

    def run(self, kills: int, until: float) -> None:
        """Feed and kill, until so many have died, and one over each collection, or the time is
        over."""
        meals = feedings(self.seed, self.world.collections)
        restart_at = 0
        while time.monotonic() < until:
            unharmed = self._unharmed()
            if self.kills.total() >= kills and not unharmed:
                break
            self._turn()
            self._turn_of_dagster()
            if not self._queue and self._runs() < AT_ONCE:
                meal = next(meals)
                if unharmed and self.kills.total() >= kills:
                    meal = replace(meal, meal=Meal.DOCUMENTS, collection=unharmed[0])
                self._eat(meal)
            if self.kills.total() >= restart_at + RESTART_EVERY:
                restart_at = self.kills.total()
                self.database.restart()
                self.kills["postgres"] += 1
                self.tell("postgres: broken off and started again")

    def end(self) -> bool:
        """Let everything come to its end without kills; whether it did."""
        self.calm = True
        doomed = sum(bool(process.fate.environment) for process in self._processes.values())
        self.tell(
            f"{self.kills.total()} kills: {dict(self.kills)}; calm begins: no more are drawn, and "
            f"{doomed} of the processes that run may still die at a point drawn before"
        )
        self._end_faults()
        until = time.monotonic() + CALM_SECONDS
        least: int | None = None
        looked = asked = 0.0
        told = time.monotonic()
        while time.monotonic() < until:
            self._turn()
            if self.dagster is not None:
                self.dagster.keep_running()
            if time.monotonic() < looked + LOOK_SECONDS:
                continue
            looked = time.monotonic()
            open_work = self._open_work()
            if least is None or open_work < least:
                least, until = open_work, looked + CALM_SECONDS
            if looked > told + TELL_SECONDS:
                told = looked
                self.tell(
                    f"calm: {open_work} jobs and documents are open, {self._runs()} runs at work, "
                    f"{len(self._queue)} wait"
                )
            if self._queue or self._runs():
                continue
            if open_work == 0:
                return True
            if looked > asked + 5:
                asked = looked
                for collection in self.world.collections:
                    self._scan(collection)
                    self._submit(collection)
        return False

    def _end_faults(self) -> None:
        """Where no server answers, the next one starts without any."""
        with suppress(requests.RequestException):
            requests.put(f"{self.world.root_url}/faults", json={"faults": []}, timeout=5)

    def stop(self) -> None:
        """End the processes that have no end of their own but the server."""
        for number, process in self._processes.items():
            if process.kind == "daemon":
                self.workers.kill(number)

    def statistics(self) -> dict[str, Any]:
        """What the provider has accepted."""
        return dict(requests.get(f"{self.world.root_url}/statistics", timeout=10).json())

    def _turn(self) -> None:
        for number, code in self.workers.ended(GLANCE_SECONDS):
            self._note_end(self._processes.pop(number), code)
        now = time.monotonic()
        for number, process in self._processes.items():
            if process.dies_at is not None and now >= process.dies_at and not self.calm:
                process.dies_at = None
                self.workers.kill(number)
        standing = {process.kind for process in self._processes.values()}
        if "server" not in standing:
            self._start("server", "server", **self._server())
        resting = self.dagster is not None and self.dagster.alone and not self.calm
        if "daemon" not in standing and not resting:
            self._start("daemon", "daemon", requests=str(self.world.requests))
        self._queue.extend(self._asked_for())
        while self._queue and self._runs() < AT_ONCE:
            task = self._queue.popleft()
            self._start(task.kind, task.role, **task.arguments)
        if now > self._hurried + HURRY_SECONDS:
            self._hurried = now
            with suppress(SQLAlchemyError):
                self.database.hurry()

    def _turn_of_dagster(self) -> None:
        """Let the real daemon work, and now and then die."""
        killed = self.dagster.turn() if self.dagster is not None else None
        if killed is not None:
            self.kills[killed] += 1
            self.tell(f"{killed}: killed")

    def _server(self) -> dict[str, Any]:
        state = str(self.world.root / "batch_server")
        faults = [] if self.calm or not self.with_faults else next(self._troubles)
        return {
            "state": state,
            "port": self.world.port,
            "delay": DELAY_SECONDS,
            "faults": faults,
        }

    def _start(self, kind: str, role: str, **arguments: Any) -> None:
        if kind not in self._fates:
            self._fates[kind] = fates(self.seed, kind)
        collection = self._dealt_with(kind, arguments)
        fate = Fate() if self.calm else next(self._fates[kind])
        if not self.calm and (unharmed := self._unharmed()):
            if kind == SCAN:
                fate = Fate()  # else there is nothing to submit
            elif kind == SUBMIT and collection in unharmed:
                fate = next(self._first_fates)
        number = self.workers.start(role, fate.environment, **arguments)
        dies_at = None if fate.after is None else time.monotonic() + fate.after
        self._processes[number] = Process(kind, fate, dies_at, collection)

    def _unharmed(self) -> list[str]:
        """Collections over whose provider no process has died yet."""
        return [one for one in self.world.collections if one not in self.harmed]

    def _dealt_with(self, kind: str, arguments: Mapping[str, Any]) -> str | None:
        """The collection whose provider a process deals with, where it is one alone."""
        if kind not in AT_ONE_PROVIDER:
            return None
        (op,) = arguments["ops"].values()
        config = op["config"]
        of_job = str(config.get("job_key", "")).partition(".")[0]
        return str(config.get("collection", of_job))

    def _note_end(self, process: Process, code: int) -> None:
        if code == KILLED:
            self.kills[process.kind] += 1
            if process.collection is not None:
                self.harmed.add(process.collection)
            self.tell(f"{process.kind}: killed {process.fate}")
            self._faults = 0
        elif code not in (0, 3) or process.kind in ("server", "daemon"):
            self.tell(f"{process.kind}: ended with {code}")
            self._faults += 1
            if self._faults > MOST_FAULTS:
                raise RuntimeError(
                    f"processes end by themselves, see {self.world.root}/workers.log"
                )

    def _runs(self) -> int:
        return sum(one.kind not in ("server", "daemon") for one in self._processes.values())

    def _asked_for(self) -> Iterator[Task]:
        """What the sensor has asked for since the last look."""
        if not self.world.requests.exists():
            return
        with self.world.requests.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                try:
                    asked = json.loads(line)
                except ValueError:
                    continue  # half a line of a process that was killed, and the next one's
                yield Task(asked["job"], "run", asked)

    def _eat(self, feeding: Feeding) -> None:
        name = feeding.collection
        self.tell(f"feeding: {feeding.meal} {name}")
        match feeding.meal:
            case Meal.DOCUMENTS:
                self.world.write(name, feeding.documents)
                self._scan(name)
                self._submit(name)
            case Meal.TWO_SUBMITTERS:
                self.world.write(name, feeding.documents)
                self._scan(name)
                self._submit(name)
                self._submit(name)
            case Meal.BACKFILL | Meal.REPLAY:
                of_old = feeding.meal is Meal.BACKFILL
                self._queue.append(
                    Task(
                        "backfill",
                        "backfill",
                        {
                            "collection": name,
                            "asset": "batch_submissions" if of_old else "extractions",
                            "version": OTHER if of_old else ACTIVE,
                            "first": feeding.first,
                            "last": feeding.last,
                        },
                    )
                )
            case Meal.NIGHT:
                self._run("nightly", {}, partition="2026-11-02")

    def _scan(self, collection: str) -> None:
        config = {"collections": [collection]}
        self._run(SCAN, {"scan_documents": {"config": config}})

    def _submit(self, collection: str) -> None:
        config = {"collection": collection}
        self._run(SUBMIT, {"submit_missing_documents": {"config": config}})

    def _run(self, job: str, ops: dict[str, Any], partition: str | None = None) -> None:
        arguments = {"job": job, "ops": ops, "tags": {}, "partition": partition}
        self._queue.append(Task(job, "run", arguments))

    def _open_work(self) -> int:
        """Jobs that are not at their end, and documents without one."""
        with self.database.engine.connect() as connection:
            lost, without = counting.lost_documents(connection, self.world.written, ACTIVE)
            jobs = connection.execute(
                text("""
                    SELECT count(*) FROM extraction.batch_jobs
                    WHERE state NOT IN ('published', 'rejected', 'failed')
                       OR (job_id IS NOT NULL AND submission_recorded_at IS NULL)
                       OR (state = 'published' AND results_recorded_at IS NULL)
                """)
            ).scalar_one()
        return lost + without + int(jobs)


RESTART_EVERY = 25
"""Kills between two restarts of PostgreSQL."""


@dataclass(frozen=True)
class Orders:
    """What is asked of a campaign. `with_daemon`: the installed Dagster daemon takes part;
    `with_faults`: the provider's network fails at random as well."""

    kills: int
    seed: int
    minutes: float
    with_daemon: bool = True
    with_faults: bool = True


@contextmanager
def campaign(world: World, orders: Orders, tell: Callable[[str], None]) -> Iterator[Campaign]:
    """A campaign that is ready to run."""
    with ExitStack() as stack:
        running = stack.enter_context(database(world.postgres))
        environment = world.environment(running.url)
        log = world.root / "workers.log"
        workers = stack.enter_context(warm_workers(environment, log))
        daemon = None
        if orders.with_daemon:
            place = world.root / "dagster.log"
            daemon = stack.enter_context(dagster_daemon(environment, place, orders.seed))
        yield Campaign(world, orders.seed, tell, running, workers, daemon, orders.with_faults)


def fight(world: World, orders: Orders, tell: Callable[[str], None]) -> Counts:
    """Run a campaign to its end, and count what came of it."""
    began = time.monotonic()
    with campaign(world, orders, tell) as running:
        running.run(orders.kills, began + 60 * orders.minutes)
        if running.dagster is not None:
            running.dagster.stop()
        if not running.end():
            tell("not everything came to its end in time")
        tell(f"{running.kills.total()} kills in all: {dict(running.kills)}")
        running.stop()
        statistics = running.statistics()
        harm = Harm(
            running.kills.total(),
            len(running.harmed),
            round(time.monotonic() - began),
            orders.seed,
        )
        with running.database.engine.connect() as connection:
            tell(str(counting.requests(connection, statistics)))
            return counting.counted(connection, statistics, world.written, ACTIVE, harm)
