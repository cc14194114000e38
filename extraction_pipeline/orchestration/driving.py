"""Driving the real jobs and the real sensor in one process, without a daemon, until all is done.

The definitions, the instance and the event log are those of a daemon; only the waiting differs.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    DagsterInstance,
    Definitions,
    ExecuteInProcessResult,
    JobDefinition,
    RunRequest,
)
from dagster._core.utils import make_new_run_id

from extraction_pipeline.dagster_storage.refusals import refusals
from extraction_pipeline.errors import ExtractionPipelineError
from extraction_pipeline.ledger import jobs
from extraction_pipeline.ledger.summary import Submitted, submitted_by, summarize
from extraction_pipeline.ledger.versions import find_version
from extraction_pipeline.lifecycle.cost_line import cost_line
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.orchestration.interrupts import no_signal_lost
from extraction_pipeline.orchestration.jobs import (
    JOB_KEY_TAG,
    scan_collections,
    submit_missing,
)
from extraction_pipeline.orchestration.lifeline import lifeline
from extraction_pipeline.orchestration.outcomes import (
    Failed,
    failed,
    notes_of,
    stopped_for_person,
)
from extraction_pipeline.orchestration.sensors import tick
from extraction_pipeline.providers.errors import ProviderError

PAUSE_SECONDS = 0.25
PATIENCE_SECONDS = 900.0
QUIET = {"console": {"config": {"log_level": "CRITICAL"}}}


@dataclass(frozen=True)
class Target:
    """A collection, and the version to extract it at."""

    collection: str
    version: str


class NothingWorks(ExtractionPipelineError):
    """For as long as a driver's patience, no step of any open batch job has worked: the provider
    does not answer, or refuses."""

    exit_code = ProviderError.exit_code


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
    runs: list[str] = field(default_factory=list, compare=False)
    """Ids of the runs that it executed: who they are in the audit trail."""

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
        all, and `ProviderError` where nothing will be before somebody has acted."""
        self.tell(f"submitting what {target.collection} lacks at {target.version}")
        failure = self._submit(target)
        if failure is not None and not failure.mends:
            raise failure.error()
        return failure is None

    def _submit(self, target: Target) -> "Failed | None":
        failure = self._run(
            submit_missing.name,
            "submit_missing_documents",
            {"collection": target.collection, "extraction_version": target.version},
        )
        if failure is not None and failure.mends:
            self.tell(failure.cause)
        with self.pipeline.engine.connect() as connection:
            collection = self.pipeline.collection(target.collection)
            costs = cost_line(connection, self.pipeline, collection, target.version)
        if costs is not None:
            self.tell(costs)
        return failure

    def finish(self, targets: Sequence[Target]) -> None:
        """Submit and wait, as often as attempts are left for answers that failed; then run the
        checks of these collections.

        A target that cannot be submitted (its account is refused, its ceiling would be passed, its
        recipe has changed) does not keep the others from their end. Raises `NothingWorks`,
        `RunFailed` and `ProviderError`.
        """
        broken = self._publish(targets)
        self.check(sorted({target.collection for target in targets}))
        if broken:
            for other in broken[1:]:
                self.tell(other.cause)
            raise broken[0].error()

    def _publish(self, targets: Sequence[Target]) -> "list[Failed]":
        """Submit and wait in rounds; the failures of those that could not be submitted."""
        rounds = max(
            self.pipeline.collection(target.collection).version(target.version).max_attempts
            for target in targets
        )
        left = dict.fromkeys(targets, 0)
        for _ in range(rounds):
            for target, count in left.items():
                again = f" again: {count} wait" if count else ""
                self.tell(f"submitting what {target.collection} lacks at {target.version}{again}")
            sent = {target: self._submit(target) for target in left}
            broken = [one for one in sent.values() if one is not None and not one.mends]
            going = [target for target, one in sent.items() if one is None or one.mends]
            if going:
                self.wait(going, trouble=any(sent[target] for target in going))
            if broken:
                return broken
            waiting = {target: self._waiting(target) for target in targets}
            left = {target: count for target, count in waiting.items() if count}
            if not left:
                break
        return []

    def check(self, collections: Sequence[str]) -> None:
        """Run all checks of these collections, in one run, and tell of each that did not pass."""
        every = self.definitions.resolve_implicit_global_asset_job_def()
        chosen = {
            key
            for key in every.asset_layer.asset_graph.asset_check_keys
            if key.asset_key.path[0] in collections
        }
        result = self._run_job(every.get_subset(asset_check_selection=chosen), {})
        failure = failed(result)
        if failure is not None:
            self.tell(failure.cause)
        for evaluation in result.get_asset_check_evaluations():
            if not evaluation.passed:
                self.tell(_told(evaluation))

    def submitted(self) -> list[Submitted]:
        """What the runs of this driver brought to a provider, by collection and version."""
        with self.pipeline.engine.connect() as connection:
            return submitted_by(connection, self.runs)

    def _waiting(self, target: Target) -> int:
        version = self.pipeline.collection(target.collection).version(target.version)
        with self.pipeline.engine.connect() as connection:
            return summarize(
                connection, target.collection, version.name, version.max_attempts
            ).waiting

    def wait(self, targets: Sequence[Target] | None = None, *, trouble: bool = False) -> None:
        """Tick the status sensor, and execute what it asks for, until no batch job is open: of
        these targets, or of all.

        `trouble` says that the last step failed. Raises `NothingWorks`, and `ProviderError` once
        every job that is open waits for a person.
        """
        shown = ""
        failing_since = time.monotonic() if trouble else None
        stopped: dict[str, str] = {}
        paused: tuple[str, ...] = ()
        while True:
            versions = None if targets is None else self._versions_of(targets)
            result = tick(self.pipeline, self.instance, daemon=False, versions=versions)
            causes = list(result.causes)
            worked = result.polled > len(causes)
            for reading in result.readings:
                _note(stopped, reading.job_key, reading.cause, reading.needs_person)
            for request in result.requests:
                failure = self._execute(request)
                causes += [failure.cause] if failure else []
                _note(
                    stopped,
                    request.tags[JOB_KEY_TAG],
                    failure.cause if failure is not None else None,
                    failure is not None and failure.needs_person,
                )
            for line in (*causes, *(one for one in result.pauses if one not in paused)):
                self.tell(line)
            paused = result.pauses
            with self.pipeline.engine.connect() as connection:
                waiting = jobs.unfinished(connection, versions)
            states = Counter(state.value for state in waiting.values())
            line = ", ".join(f"{count} {state}" for state, count in states.items())
            if line and line != shown:
                self.tell(f"open batch jobs: {line}")
            if not waiting:
                return
            if waiting.keys() <= stopped.keys():
                raise stopped_for_person(stopped[next(iter(waiting))])
            if worked or (shown and line != shown):
                failing_since = None
            elif causes:
                failing_since = failing_since or time.monotonic()
                self._give_up(failing_since, len(waiting), causes[-1])
            shown = line
            if not result.requests:
                time.sleep(PAUSE_SECONDS)  # nothing to do until a job's next poll is due

    def _versions_of(self, targets: Sequence[Target]) -> list[int]:
        """Ids of the targets' versions that were used by now."""
        with self.pipeline.engine.connect() as connection:
            found = [find_version(connection, one.collection, one.version) for one in targets]
        return [version.id for version in found if version is not None]

    def _give_up(self, failing_since: float, waiting: int, cause: str) -> None:
        seconds = time.monotonic() - failing_since
        if seconds > self.patience:
            raise NothingWorks(
                f"Nothing worked for {seconds:.0f} s, and {waiting} batch jobs are open. {cause}",
                remedy="They go on with the next run, or with `extraction-pipeline dev`.",
            )

    def _execute(self, request: RunRequest) -> "Failed | None":
        """Execute a run; why its job is no further, if it is not. The sensor asks for it again."""
        (op_name,) = request.run_config["ops"]
        return self._run(
            request.job_name or "",
            op_name,
            request.run_config["ops"][op_name]["config"],
            tags=request.tags,
        )

    def _run(
        self,
        job_name: str,
        op_name: str,
        config: Mapping[str, Any],
        *,
        tags: Mapping[str, str] | None = None,
    ) -> "Failed | None":
        job = self.definitions.resolve_job_def(job_name)
        return failed(self._run_job(job, {op_name: {"config": dict(config)}}, tags))

    def _run_job(
        self, job: JobDefinition, ops: Mapping[str, Any], tags: Mapping[str, str] | None = None
    ) -> ExecuteInProcessResult:
        run_id = make_new_run_id()
        refusals.forget()
        try:
            with no_signal_lost():
                result = job.execute_in_process(
                    run_config={"ops": ops, "loggers": QUIET},
                    instance=self.instance,
                    tags=dict(tags or {}),
                    raise_on_error=False,
                    run_id=run_id,
                )
        except Exception:
            if refusals.last is not None:
                raise refusals.last from None  # not even the run's failure could be written
            raise
        finally:
            # This process lives on, and the run does not, whatever became of it.
            url = self.pipeline.settings.database_url
            if url is not None:
                lifeline(url.get_secret_value()).let_go(run_id)
        self.runs.append(run_id)
        for line in notes_of(result):
            self.tell(line)
        return result


def _told(evaluation: AssetCheckEvaluation) -> str:
    asset = "/".join(evaluation.asset_key.path)
    return f"check {evaluation.check_name} of {asset}: {evaluation.description or 'did not pass'}"


def _note(stopped: dict[str, str], job_key: str, cause: str | None, needs_person: bool) -> None:
    """Keep in mind whether a job waits for a person, by the last that was heard of it."""
    if needs_person:
        stopped[job_key] = cause or ""
    else:
        stopped.pop(job_key, None)
