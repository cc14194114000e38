"""What became of a run that was executed in this process, as a person is told of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dagster import (
    DagsterEvent,
    ExecuteInProcessResult,
    IntMetadataValue,
    JsonMetadataValue,
    MetadataValue,
)
from dagster_shared.error import SerializableErrorInfo

from extraction_pipeline.dagster_storage.refusals import refusals
from extraction_pipeline.errors import ExtractionPipelineError
from extraction_pipeline.orchestration.failures import EXIT_CODE, NEEDS_PERSON
from extraction_pipeline.orchestration.jobs import CAUSE, NOTES, WAITING
from extraction_pipeline.providers.base import FailureKind
from extraction_pipeline.providers.errors import ProviderError


class RunFailed(ExtractionPipelineError):
    """A Dagster run that everything else depends on has failed; with the exit code of the error
    that made it fail."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True)
class Failed:
    """A run that failed: its one line of cause, whether it mends itself, and whether it does so
    only after somebody has acted."""

    cause: str
    needs_nobody: bool = False
    needs_person: bool = False
    exit_code: int = RunFailed.exit_code

    @property
    def mends(self) -> bool:
        """Whether the sensor carries on what is left, without anybody's help."""
        return self.needs_nobody and not self.needs_person

    def error(self) -> ExtractionPipelineError:
        """The error that a command ends with."""
        if self.needs_nobody:
            return stopped_for_person(self.cause)
        return RunFailed(self.cause, self.exit_code)


def stopped_for_person(cause: str) -> ProviderError:
    """What waits for a person, who has to act on the account or the settings."""
    return ProviderError(cause, kind=FailureKind.ACCOUNT)


def notes_of(result: ExecuteInProcessResult) -> list[str]:
    """What a run has to say to a person besides its outcome."""
    found: list[str] = []
    for event in result.all_events:
        given: Mapping[str, MetadataValue[Any]] = {}
        if event.is_successful_output:
            given = event.step_output_data.metadata
        elif event.is_step_failure and event.step_failure_data.user_failure_data is not None:
            given = event.step_failure_data.user_failure_data.metadata
        notes = given.get(NOTES)
        if isinstance(notes, JsonMetadataValue) and isinstance(notes.data, list):
            found += map(str, notes.data)
    return found


def failed(result: ExecuteInProcessResult) -> Failed | None:
    """The cause that the failed step gave: ours is one line that says what to do. A run that ended
    well may give one too: that its job could not be resolved yet."""
    if result.success:
        for event in result.all_events:
            if event.is_successful_output and CAUSE in event.step_output_data.metadata:
                given = event.step_output_data.metadata
                return Failed(str(given[CAUSE].value), True, NEEDS_PERSON in given)
        return None
    if any(_was_interrupted(event) for event in result.all_events):
        raise KeyboardInterrupt  # Dagster made a failed run of Ctrl-C
    for event in result.all_events:
        if event.is_step_failure:
            said = event.step_failure_data.user_failure_data
            if said is not None and said.description:
                return Failed(
                    said.description,
                    WAITING in said.metadata,
                    NEEDS_PERSON in said.metadata,
                    _exit_code(said.metadata),
                )
        errors = list(_errors_of(event))
        refusal = refusals.behind(error.message for error in errors)
        if refusal is not None:
            return Failed(str(refusal), exit_code=refusal.exit_code)
        if errors:
            return Failed(f"Run {result.run_id} failed: {errors[-1].message.strip()}")
    if refusals.last is not None:  # what would have told of it could not be written
        return Failed(str(refusals.last), exit_code=refusals.last.exit_code)
    return Failed(f"Run {result.run_id} failed without a cause.")


def _exit_code(metadata: Mapping[str, MetadataValue[Any]]) -> int:
    given = metadata.get(EXIT_CODE)
    return given.value if isinstance(given, IntMetadataValue) and given.value else 1


def _was_interrupted(event: DagsterEvent) -> bool:
    return any(
        error.cls_name in ("DagsterExecutionInterruptedError", "KeyboardInterrupt")
        for error in _errors_of(event)
    )


def _errors_of(event: DagsterEvent) -> Iterator[SerializableErrorInfo]:
    """The error that a step or run failed with, what it was raised from, and so on to the first."""
    error = None
    if event.is_step_failure:
        error = event.step_failure_data.error
    elif event.is_run_failure:
        error = event.job_failure_data.error
    while error is not None:
        yield error
        error = error.cause or error.context
