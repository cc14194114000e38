"""What the server has accepted, as its own types."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class BatchState(StrEnum):
    """Where a batch stands, in OpenAI's words."""

    VALIDATING = "validating"
    IN_PROGRESS = "in_progress"
    FINALIZING = "finalizing"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"

    @property
    def is_end(self) -> bool:
        """Whether the batch stays as it is from here on."""
        return self in (
            BatchState.COMPLETED,
            BatchState.FAILED,
            BatchState.EXPIRED,
            BatchState.CANCELLED,
        )


@dataclass(frozen=True)
class StoredFile:
    """A file that was uploaded or written by the server. Times are Unix seconds."""

    id: str
    size: int
    created_at: float
    filename: str
    purpose: str


@dataclass(frozen=True)
class InputFault:
    """Why an input file was not accepted; `line` counts from 1."""

    code: str
    message: str
    param: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Tally:
    """How far a batch is: lines answered with success and without, and the tokens of both."""

    completed: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True)
class NewBatch:
    """What a client asked for."""

    endpoint: str
    completion_window: str
    input_file_id: str
    metadata: Mapping[str, str] | None


@dataclass(frozen=True)
class Batch:
    """An accepted batch. `total` is `None` until its input was checked; `reached` holds the Unix
    second at which each later state was entered."""

    id: str
    state: BatchState
    asked: NewBatch
    created_at: float
    expires_at: float
    reached: Mapping[BatchState, float]
    model: str | None = None
    total: int | None = None
    tally: Tally = Tally()
    faults: tuple[InputFault, ...] = ()
    output_file_id: str | None = None
    error_file_id: str | None = None


@dataclass(frozen=True)
class Statistics:
    """What the server accepted since its state folder was made. Only ever grows."""

    files_uploaded: int
    jobs_created: int
    requests_accepted: int
    jobs_by_state: Mapping[str, int]
    jobs_by_metadata: Mapping[str, Mapping[str, int]]
    """For every metadata key, how many jobs carry each of its values."""
