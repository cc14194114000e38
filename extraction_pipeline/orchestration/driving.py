"""Driving the real jobs and the real sensor in one process, without a daemon, until all is done.

The definitions, the instance and the event log are those of a daemon; only the waiting differs.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dagster import DagsterEvent, DagsterInstance, Definitions, ExecuteInProcessResult, RunRequest
from dagster._core.utils import make_new_run_id

from extraction_pipeline.errors import ExtractionPipelineError
from extraction_pipeline.ledger import jobs
from extraction_pipeline.ledger.summary import summarize
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.orchestration.jobs import CAUSE, WAITING, scan_collections, submit_missing
from extraction_pipeline.orchestration.lifeline import lifeline
from extraction_pipeline.orchestration.sensors import tick

PAUSE_SECONDS = 0.25
PATIENCE_SECONDS = 900.0
QUIET = {"console": {"config": {"log_level": "CRITICAL"}}}


@dataclass(frozen=True)
class Target:
    """A collection, and the version to extract it at."""

    collection: str
    version: str


class RunFailed(ExtractionPipelineError):
    """A Dagster run that everything else depends on has failed."""


class NothingWorks(ExtractionPipelineError):
    """For as long as a driver's patience, no step of any open batch job has worked."""


@dataclass(frozen=True)
class Driver:
    """Executes jobs, and the runs that the status sensor asks for; `tell` gets progress.

    `patience` is how many seconds it goes on while every step fails. A provider that answers, and
    has only not ended its jobs, is waited for without end.
    """

    instance: DagsterInstance
    definitions: Definitions
    pipeline: Pipeline
    tell: Callable[[str], None]
    patience: float = PATIENCE_SECONDS

    def scan(self, collections: Sequence[str]) -> None:
        """Run the scan job over these collections. Raises `RunFailed`."""
        self.tell(f"scanning {', '.join(collections)}")
        failure = self._run(
            scan_collections.name, "scan_documents", {"collections": list(collections)}
        )
        if failure is not None:
            raise failure.error()

    def submit(self, target: Target) -> bool:
        """Run the submit job; whether every batch job went out. Those that could not be sent yet
        are told of, and left to the sensor. Raises `RunFailed` where nothing could be submitted at
        all."""
        self.tell(f"submitting {target.collection} at {target.version}")
        failure = self._run(
            submit_missing.name,
            "submit_missing_documents",
            {"collection": target.collection, "extraction_version": target.version},
        )
        if failure is not None and not failure.needs_nobody:
            raise failure.error()
        if failure is not None:
            self.tell(failure.cause)
        return failure is None

    def finish(self, targets: Sequence[Target]) -> None:
        """Submit and wait, as often as attempts are left for answers that failed.

        Raises `NothingWorks` and `RunFailed`.
        """
        rounds = max(
            self.pipeline.collection(target.collection).version(target.version).max_attempts
            for target in targets
        )
        for _ in range(rounds):
            sent = [self.submit(target) for target in targets]
            self.wait(trouble=not all(sent))
            if not any(self._waiting(target) for target in targets):
                return

    def _waiting(self, target: Target) -> int:
        version = self.pipeline.collection(target.collection).version(target.version)
        with self.pipeline.engine.connect() as connection:
            return summarize(
                connection, target.collection, version.name, version.max_attempts
            ).waiting

    def wait(self, *, trouble: bool = False) -> None:
        """Tick the status sensor, and execute what it asks for, until no batch job is open.

        `trouble` says that the last step failed. Raises `NothingWorks`.
        """
        shown = ""
        failing_since = time.monotonic() if trouble else None
        while True:
            result = tick(self.pipeline, self.instance, daemon=False)
            causes = list(result.causes)
            worked = result.polled > len(causes)
            for request in result.requests:
                cause = self._execute(request)
                causes += [cause] if cause else []
            for cause in causes:
                self.tell(cause)
            with self.pipeline.engine.connect() as connection:
                waiting = jobs.unfinished(connection)
            line = ", ".join(f"{count} {state}" for state, count in waiting.items())
            if line and line != shown:
                self.tell(f"open batch jobs: {line}")
            if not waiting:
                return
            if worked or (shown and line != shown):
                failing_since = None
            elif causes:
                failing_since = failing_since or time.monotonic()
                self._give_up(failing_since, sum(waiting.values()), causes[-1])
            shown = line
            if not result.requests:
                time.sleep(PAUSE_SECONDS)  # nothing to do until a job's next poll is due

    def _give_up(self, failing_since: float, waiting: int, cause: str) -> None:
        seconds = time.monotonic() - failing_since
        if seconds > self.patience:
            raise NothingWorks(
                f"Nothing worked for {seconds:.0f} s, and {waiting} batch jobs are open. {cause}",
                remedy="They go on with the next run, or with `extraction-pipeline dev`.",
            )

    def _execute(self, request: RunRequest) -> str | None:
        """Execute a run; one line on why its job is no further, if it is not."""
        (op_name,) = request.run_config["ops"]
        failure = self._run(
            request.job_name or "",
            op_name,
            request.run_config["ops"][op_name]["config"],
            tags=request.tags,
        )
        return failure.cause if failure else None  # the sensor asks for it again

    def _run(
        self,
        job_name: str,
        op_name: str,
        config: Mapping[str, Any],
        *,
        tags: Mapping[str, str] | None = None,
    ) -> "_Failed | None":
        run_id = make_new_run_id()
        try:
            result = self.definitions.resolve_job_def(job_name).execute_in_process(
                run_config={"ops": {op_name: {"config": dict(config)}}, "loggers": QUIET},
                instance=self.instance,
                tags=dict(tags or {}),
                raise_on_error=False,
                run_id=run_id,
            )
        finally:
            # This process lives on, and the run does not, whatever became of it.
            url = self.pipeline.settings.database_url
            if url is not None:
                lifeline(url.get_secret_value()).let_go(run_id)
        return _failed(result)


@dataclass(frozen=True)
class _Failed:
    """A run that failed: its one line of cause, and whether it mends itself."""

    cause: str
    needs_nobody: bool = False

    def error(self) -> RunFailed:
        return RunFailed(self.cause)


def _failed(result: ExecuteInProcessResult) -> _Failed | None:
    """The cause that the failed step gave: ours is one line that says what to do. A run that ended
    well may give one too: that its job could not be resolved yet."""
    if result.success:
        for event in result.all_events:
            if event.is_successful_output and CAUSE in event.step_output_data.metadata:
                return _Failed(str(event.step_output_data.metadata[CAUSE].value), True)
        return None
    if any(_was_interrupted(event) for event in result.all_events):
        raise KeyboardInterrupt  # Dagster made a failed run of Ctrl-C
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


def _was_interrupted(event: DagsterEvent) -> bool:
    if event.is_step_failure:
        error = event.step_failure_data.error
    elif event.is_run_failure:
        error = event.job_failure_data.error
    else:
        return False
    while error is not None:
        if error.cls_name in ("DagsterExecutionInterruptedError", "KeyboardInterrupt"):
            return True
        error = error.cause
    return False
