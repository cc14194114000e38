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
from extraction_pipeline.ledger.summary import submitted_since
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.orchestration.jobs import scan_collections, submit_missing
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
        self._run(scan_collections.name, "scan_documents", {"collections": list(collections)})

    def submit(self, target: Target) -> bool:
        """Run the submit job; whether every batch job went out. The rest is left to the sensor."""
        return self._run(
            submit_missing.name,
            "submit_missing_documents",
            {"collection": target.collection, "extraction_version": target.version},
            must_work=False,
        )

    def finish(self, targets: Sequence[Target]) -> None:
        """Submit and wait, as often as attempts are left for answers that failed."""
        rounds = max(
            self.pipeline.collection(target.collection).version(target.version).max_attempts
            for target in targets
        )
        for _ in range(rounds):
            with self.pipeline.engine.connect() as connection:
                before = submitted_since(connection, 0).last_job
            for target in targets:
                self.submit(target)
            self.wait()
            with self.pipeline.engine.connect() as connection:
                if submitted_since(connection, before).jobs == 0:
                    return

    def wait(self) -> None:
        """Tick the status sensor, and execute what it asks for, until no batch job is open."""
        shown = ""
        while True:
            result = tick(self.pipeline, self.instance)
            for cause in result.causes:
                self.tell(cause)
            for request in result.requests:
                self._execute(request)
            with self.pipeline.engine.connect() as connection:
                waiting = jobs.unfinished(connection)
            line = ", ".join(f"{count} {state}" for state, count in waiting.items())
            if line != shown:
                self.tell(f"batch jobs: {line or 'none open'}")
                shown = line
            if not waiting:
                return
            if not result.requests:
                time.sleep(PAUSE_SECONDS)  # nothing to do until a job's next poll is due

    def _execute(self, request: RunRequest) -> None:
        (op_name,) = request.run_config["ops"]
        self._run(
            request.job_name or "",
            op_name,
            request.run_config["ops"][op_name]["config"],
            tags=request.tags,
            must_work=False,
        )

    def _run(
        self,
        job_name: str,
        op_name: str,
        config: Mapping[str, Any],
        *,
        tags: Mapping[str, str] | None = None,
        must_work: bool = True,
    ) -> bool:
        result = self.definitions.resolve_job_def(job_name).execute_in_process(
            run_config={"ops": {op_name: {"config": dict(config)}}, "loggers": QUIET},
            instance=self.instance,
            tags=dict(tags or {}),
            raise_on_error=False,
        )
        if not result.success and must_work:
            raise RunFailed(
                f"Run {result.run_id} of job {job_name} failed. {_cause(result)}",
                remedy="`extraction-pipeline dev` shows the run.",
            )
        return bool(result.success)


def _cause(result: ExecuteInProcessResult) -> str:
    """The last cause that a failed step gave: ours is one line that says what to do."""
    for event in result.all_events:
        if event.is_step_failure:
            failure = event.step_failure_data
            if failure.user_failure_data and failure.user_failure_data.description:
                return failure.user_failure_data.description
            error = failure.error
            while error is not None and error.cause is not None:
                error = error.cause
            if error is not None:
                return error.message.strip()
    return "It gave no cause."
