"""One installation in this process for all crash points: a world, a database, a batch server.

What is to die is a fork of this process, which opens everything anew; what mends it is this one.
"""

import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from dagster import DagsterInstance
from sqlalchemy import Connection, text

from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.crash_points import STOPPING, VARIABLE, CrashPoint
from extraction_pipeline.ledger import answers, items, jobs
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.cleaning import clean_up
from extraction_pipeline.lifecycle.collecting import collect
from extraction_pipeline.lifecycle.decisions import give_up
from extraction_pipeline.lifecycle.opening import open_pipeline
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.polling import poll
from extraction_pipeline.lifecycle.publishing import publish_job
from extraction_pipeline.lifecycle.registration import scan
from extraction_pipeline.lifecycle.resolution import resolve
from extraction_pipeline.lifecycle.submission import submit_documents
from extraction_pipeline.orchestration import event_log
from extraction_pipeline.orchestration.lifeline import lifeline
from extraction_pipeline.orchestration.recording import (
    Recorder,
    record_documents,
    record_results,
    record_submission,
)
from extraction_pipeline.orchestration.resource import opened_pipeline
from extraction_pipeline.orchestration.sensors import run_requests
from extraction_pipeline.providers.names import ProviderName
from extraction_pipeline.settings import load_settings
from extraction_pipeline_tests.chaos import counting
from extraction_pipeline_tests.chaos.counting import Counts, Harm
from extraction_pipeline_tests.chaos.roles import PIECE, run
from extraction_pipeline_tests.chaos.workers import KILLED
from extraction_pipeline_tests.chaos.world import ACTIVE, World

ACTOR = "test"
PATIENCE_SECONDS = 30.0


@dataclass(frozen=True)
class Work:
    """The steps of one process over one collection."""

    pipeline: Pipeline
    instance: DagsterInstance
    name: str

    @property
    def collection(self) -> Collection:
        return self.pipeline.collection(self.name)

    @property
    def recorder(self) -> Recorder:
        return Recorder(self.instance, "run-of-a-test", "job", "step")

    def scan(self) -> None:
        scan(self.pipeline, self.collection)

    def record_documents(self) -> None:
        record_documents(self.pipeline, self.collection, self.recorder)

    def submit(self) -> None:
        """Submit what is new. What waits is tried without a pause."""
        submit_documents(
            self.pipeline, self.collection, self.collection.active, actor=ACTOR, before_due=True
        )

    def resolve(self) -> None:
        """Search until nothing is unresolved."""

        def none_left() -> bool:
            left = self._jobs(JobState.SUBMITTING, JobState.UNRESOLVED)
            for job in left:
                resolve(self.pipeline, job.id, ACTOR)
            return not left

        _until(none_left)

    def record_submission(self) -> None:
        for job in self._jobs(JobState.SUBMITTED, JobState.PUBLISHED):
            record_submission(self.pipeline, job.id, self.recorder)

    def poll(self) -> None:
        """Read until every job has ended."""

        def none_left() -> bool:
            left = self._jobs(JobState.SUBMITTED)
            for job in left:
                poll(self.pipeline, job, ACTOR)
            return not left

        _until(none_left)

    def give_up(self) -> None:
        """Submit what is new and give it up, as a person does with a job that is held."""
        self.submit()
        for job in self._jobs(JobState.SUBMITTED):
            with self.pipeline.engine.begin() as connection:
                jobs.move(connection, job, JobState.HELD)
            give_up(self.pipeline, job.id, ACTOR, "a test")

    def look_again(self) -> None:
        """Look at what was given up until it has ended after all."""

        def none_left() -> bool:
            left = self._jobs(JobState.FAILED)
            for job in left:
                poll(self.pipeline, job, ACTOR)
            return not left

        _until(none_left)

    def collect_late(self) -> None:
        self.look_again()
        self.collect()

    def ask_for_runs(self) -> None:
        """What the sensor does once it has polled."""
        run_requests(self.pipeline, self.instance)

    def collect(self) -> None:
        for job in self._jobs(JobState.ENDED):
            collect(self.pipeline, job.id, ACTOR)

    def publish(self) -> None:
        for job in self._jobs(JobState.COLLECTED):
            publish_job(self.pipeline, job.id, ACTOR)

    def record_results(self) -> None:
        for job in self._jobs(JobState.PUBLISHED):
            record_results(self.pipeline, job.id, self.recorder)

    def clean_up(self) -> None:
        clean_up(self.pipeline, ACTOR)

    def night(self) -> None:
        """The nightly run, as Dagster executes it."""
        run("nightly", {}, {}, partition="2026-11-02")

    def everything(self) -> None:
        """All steps in their order, as often as it takes until nothing is open."""
        self.scan()
        self.record_documents()
        self.submit()
        self.resolve()
        self.submit()
        self.record_submission()
        self.poll()
        self.collect()
        self.publish()
        self.record_submission()
        self.record_results()

    def _jobs(self, *states: JobState) -> list[jobs.JobRow]:
        statement = text("""
            SELECT id FROM extraction.batch_jobs
            WHERE state = ANY(CAST(:states AS extraction.job_state[])) ORDER BY id
        """)
        with self.pipeline.engine.connect() as connection:
            ids = connection.execute(statement, {"states": [state.value for state in states]})
            found = [jobs.job_by_id(connection, job) for job in ids.scalars().all()]
        return [job for job in found if job.collection == self.name]


Step = Callable[[Work], None]


@dataclass(frozen=True)
class Ground:
    """The world of these tests, and this process's own pipeline over it."""

    world: World
    pipeline: Pipeline
    instance: DagsterInstance

    def work(self, collection: str) -> Work:
        """The steps, in this process."""
        return Work(self.pipeline, self.instance, collection)

    @contextmanager
    def failing(self, fault: Mapping[str, object] | None) -> Iterator[None]:
        """Let the provider have this fault, if any."""
        if fault is None:
            yield
            return
        where = f"{self.world.root_url}/faults"
        requests.put(where, json={"faults": [fault]}, timeout=10).raise_for_status()
        yield
        requests.put(where, json={"faults": []}, timeout=10).raise_for_status()

    def dies_at(
        self, point: CrashPoint, collection: str, step: Step, environment: Mapping[str, str]
    ) -> bool:
        """Whether a process that takes this step dies at this point."""
        with warnings.catch_warnings():
            # It opens connections of its own, and takes none of this process's locks.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            _be(collection, step, self.instance, {**environment, VARIABLE: point.value})
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status) == KILLED

    def is_cut_off_at(
        self, point: CrashPoint, collection: str, step: Step, meanwhile: Callable[[], None]
    ) -> bool:
        """Whether a process that takes this step comes to this point. There it is stopped, and its
        sessions with the database end; it goes on once `meanwhile` is done."""
        before = self._sessions()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            _be(collection, step, self.instance, {STOPPING: point.value})
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            return False
        try:
            self._end_sessions_since(before)
            meanwhile()
        finally:
            os.kill(pid, signal.SIGCONT)
            os.waitpid(pid, 0)
        return True

    def _sessions(self) -> list[int]:
        statement = text("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
        with self.pipeline.engine.connect() as connection:
            return list(connection.execute(statement).scalars())

    def _end_sessions_since(self, before: list[int]) -> None:
        statement = text(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> ALL(:before)"
            " AND pid <> pg_backend_pid()"
        )
        with self.pipeline.engine.connect() as connection:
            connection.execute(statement, {"before": before})

    def counts(self) -> dict[str, int]:
        """Everything that must be zero, by the provider's, the ledger's and Dagster's rows."""
        with self.pipeline.engine.connect() as connection:
            counts = self.counted(connection)
            unmarked = connection.execute(
                text("""
                    SELECT count(*) FROM extraction.batch_jobs WHERE state <> 'published'
                    OR submission_recorded_at IS NULL OR results_recorded_at IS NULL
                """)
            ).scalar_one()
        return {
            **counts.broken,
            "asked again": counts.asked_again,
            "not at their end": unmarked,
        }

    def counted(self, connection: Connection) -> Counts:
        """The counts of a campaign that ends here."""
        statistics = requests.get(f"{self.world.root_url}/statistics", timeout=10).json()
        return counting.counted(connection, statistics, self.world.written, ACTIVE, Harm())


@contextmanager
def open_ground(
    root: Path, providers: Sequence[ProviderName], database_url: str, root_url: str
) -> Iterator[Ground]:
    """A world over a database with all tables and a batch server that runs."""
    world = World(root, providers, int(root_url.rsplit(":", 1)[1]))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in world.variables(database_url).items():
            patch.setenv(name, value)
        patch.setenv("EXTRACTION_READ_TIMEOUT", "0.6")
        patch.setenv("EXTRACTION_SEND_TIMEOUT", "0.3")
        patch.setenv("EXTRACTION_CONNECT_TIMEOUT", "0.3")
        for module, name in ((items, "CHUNK"), (answers, "CHUNK"), (event_log, "BATCH")):
            patch.setattr(module, name, PIECE)
        opened_pipeline.cache_clear()
        pipeline = open_pipeline(load_settings())
        with DagsterInstance.from_config(str(world.dagster_home)) as instance:
            yield Ground(world, pipeline, instance)
        pipeline.engine.dispose()
        opened_pipeline.cache_clear()


def _be(
    collection: str,
    step: Step,
    instance: DagsterInstance,
    environment: Mapping[str, str],
) -> None:
    """Be the process that is to die."""
    try:
        signal.alarm(int(PATIENCE_SECONDS))
        os.environ.update(environment)
        opened_pipeline.cache_clear()
        lifeline.cache_clear()
        again = DagsterInstance.from_ref(instance.get_ref())
        work = Work(opened_pipeline(), again, collection)
        step(work)
    finally:
        os._exit(1)


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("waited in vain")
        time.sleep(0.02)
