"""Driving the real jobs and the real sensor in one process, without a daemon, until all is done.

The definitions, the instance and the event log are those of a daemon; only the waiting differs.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dagster import DagsterInstance, Definitions, ExecuteInProcessResult, RunRequest

from extraction_pipeline.errors import ExtractionPipelineError
from extraction_pipeline.ledger import jobs
from extraction_pipeline.ledger.summary import summarize
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.orchestration.jobs import WAITING, scan_collections, submit_missing
from extraction_pipeline.orchestration.sensors import tick

PAUSE_SECONDS = 0.25
QUIET = {"console": {"config": {"log_level": "CRITICAL"}}}


@dataclass(frozen=True)
class Target:
    """A collection, and the version to extract it at."""

    collection: str
    version: str


class RunFailed(ExtractionPipelineError):
    """A Dagster run that everything else depends on has failed."""


@dataclass(frozen=True)
class Driver:
    """Executes jobs, and the runs that the status sensor asks for; `tell` gets progress."""

    instance: DagsterInstance
    definitions: Definitions
    pipeline: Pipeline
    tell: Callable[[str], None]

    def scan(self, collections: Sequence[str]) -> None:
        """Run the scan job over these collections. Raises `RunFailed`."""
        self.tell(f"scanning {', '.join(collections)}")
        failure = self._run(
            scan_collections.name, "scan_documents", {"collections": list(collections)}
        )
        if failure is not None:
            raise failure.error()

    def submit(self, target: Target) -> None:
        """Run the submit job. Batch jobs that could not be sent yet are told of, and left to the
        sensor. Raises `RunFailed` where nothing could be submitted at all."""
        self.tell(f"submitting {target.collection} at {target.version}")
        failure = self._run(
            submit_missing.name,
            "submit_missing_documents",
            {"collection": target.collection, "extraction_version": target.version},
        )
        if failure is not None and failure.needs_nobody:
            self.tell(failure.cause)
        elif failure is not None:
            raise failure.error()

    def finish(self, targets: Sequence[Target]) -> None:
        """Submit and wait, as often as attempts are left for answers that failed."""
        rounds = max(
            self.pipeline.collection(target.collection).version(target.version).max_attempts
            for target in targets
        )
        for _ in range(rounds):
            for target in targets:
                self.submit(target)
            self.wait()
            if not any(self._waiting(target) for target in targets):
                return

    def _waiting(self, target: Target) -> int:
        version = self.pipeline.collection(target.collection).version(target.version)
        with self.pipeline.engine.connect() as connection:
            return summarize(
                connection, target.collection, version.name, version.max_attempts
            ).waiting

    def wait(self) -> None:
        """Tick the status sensor, and execute what it asks for, until no batch job is open."""
        shown = ""
        while True:
            result = tick(self.pipeline, self.instance, daemon=False)
            for cause in result.causes:
                self.tell(cause)
            for request in result.requests:
                self._execute(request)
            with self.pipeline.engine.connect() as connection:
                waiting = jobs.unfinished(connection)
            line = ", ".join(f"{count} {state}" for state, count in waiting.items())
            if line and line != shown:
                self.tell(f"open batch jobs: {line}")
            shown = line
            if not waiting:
                return
            if not result.requests:
                time.sleep(PAUSE_SECONDS)  # nothing to do until a job's next poll is due

    def _execute(self, request: RunRequest) -> None:
        (op_name,) = request.run_config["ops"]
        failure = self._run(
            request.job_name or "",
            op_name,
            request.run_config["ops"][op_name]["config"],
            tags=request.tags,
        )
        if failure is not None:
            self.tell(failure.cause)  # the sensor asks for it again

    def _run(
        self,
        job_name: str,
        op_name: str,
        config: Mapping[str, Any],
        *,
        tags: Mapping[str, str] | None = None,
    ) -> "_Failed | None":
        result = self.definitions.resolve_job_def(job_name).execute_in_process(
            run_config={"ops": {op_name: {"config": dict(config)}}, "loggers": QUIET},
            instance=self.instance,
            tags=dict(tags or {}),
            raise_on_error=False,
        )
        return None if result.success else _failed(result)


@dataclass(frozen=True)
class _Failed:
    """A run that failed: its one line of cause, and whether it mends itself."""

    cause: str
    needs_nobody: bool = False

    def error(self) -> RunFailed:
        return RunFailed(self.cause)


def _failed(result: ExecuteInProcessResult) -> _Failed:
    """The cause that the failed step gave: ours is one line that says what to do."""
    for event in result.all_events:
        if event.is_step_failure:
            failure = event.step_failure_data
            given = failure.user_failure_data
            if given is not None and given.description:
                return _Failed(given.description, WAITING in given.metadata)
            error = failure.error
            while error is not None and error.cause is not None:
                error = error.cause
            if error is not None:
                return _Failed(f"Run {result.run_id} failed: {error.message.strip()}")
    return _Failed(f"Run {result.run_id} failed without a cause.")
