"""What the server has accepted, as its own types."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from extraction_pipeline.batch_server.dialects import Dialect


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


REQUESTS_PURPOSE = "batch_requests"
"""The purpose of a file with a batch's requests that the server wrote, and removes at its end."""
RESULTS_PURPOSE = "batch_output"


@dataclass(frozen=True)
class StoredFile:
    """A file that was uploaded or written by the server. Times are Unix seconds."""

    id: str
    size: int
    created_at: float
    filename: str
    purpose: str
    dialect: Dialect = Dialect.OPENAI
    media_type: str | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class LinePlace:
    """Where a request lies in the input file, in bytes; `position` counts requests from 0."""

    position: int
    custom_id: str
    offset: int
    length: int


@dataclass(frozen=True)
class InputFault:
    """Why an input file was not accepted; `line` counts from 1."""

    code: str
    message: str
    param: str | None = None
    line: int | None = None


@dataclass
class InputReport:
    """What a check of an input file found. The batch may start if there is no fault."""

    total: int = 0
    model: str | None = None
    faults: list[InputFault] = field(default_factory=list)


@dataclass(frozen=True)
class Tally:
    """How far a batch is: lines answered with success and without, and the tokens of both."""

    completed: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def answered(self) -> int:
        """Lines that have an answer."""
        return self.completed + self.failed


@dataclass(frozen=True)
class NewBatch:
    """What a client asked for.

    `job_key` is what the client's own name for the job is, as far as the wire format carries one,
    and `digest` is of what was asked under it. `source_file_id` is the client's file that the
    requests came from, if it was not the input itself. `total` is given where the requests were
    counted on the way in. Results come in the order of the requests if `keeps_order`, else in
    another one on purpose.
    """

    endpoint: str
    completion_window: str
    input_file_id: str
    metadata: Mapping[str, Any] | None = None
    dialect: Dialect = Dialect.OPENAI
    job_key: str | None = None
    digest: str | None = None
    source_file_id: str | None = None
    total: int | None = None
    keeps_order: bool = False

    @property
    def job_keys(self) -> frozenset[str]:
        """The client's own names for the job: `job_key`, or what OpenAI's metadata hold."""
        values = (self.metadata or {}).values() if self.dialect is Dialect.OPENAI else ()
        return frozenset(str(key) for key in (self.job_key, *values) if key is not None)


@dataclass(frozen=True)
class Batch:
    """An accepted batch. `total` is `None` until its input was checked; `reached` holds the Unix
    second at which each later state was entered. A deleted one is still brought to its end."""

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
    deleted: bool = False

    @property
    def ended_at(self) -> float | None:
        """The Unix second of its end."""
        return self.reached.get(self.state) if self.state.is_end else None

    @property
    def unserved(self) -> int:
        """Requests that have no answer."""
        return (self.total or 0) - self.tally.answered


@dataclass(frozen=True)
class DialectStatistics:
    """What was accepted in one wire format.

    `requests_completed` have a model's answer: what a provider takes money for. Of the batches that
    ended, `distinct_requests_answered` counts them without those that ask a model the same as
    another one, and `requests_answered_again` how many questions were answered, and paid for, more
    than once; under which id or in which batch does not matter. `jobs_by_key`
    counts by the client's own name for a job: a metadata value (OpenAI), the custom ids' part
    before the dash (Anthropic), the display name (Gemini), the idempotency key (Infrai).
    """

    files_uploaded: int
    jobs_created: int
    requests_accepted: int
    requests_completed: int
    distinct_requests_answered: int
    requests_answered_again: int
    jobs_by_state: Mapping[str, int]
    jobs_by_key: Mapping[str, int]


@dataclass(frozen=True)
class Statistics:
    """What the server accepted since its state folder was made. Only ever grows."""

    files_uploaded: int
    jobs_created: int
    requests_accepted: int
    jobs_by_state: Mapping[str, int]
    jobs_by_metadata: Mapping[str, Mapping[str, int]]
    """For every metadata key, how many jobs carry each of its values."""
    dialects: Mapping[str, DialectStatistics]
    """The same by wire format, for each that was used."""
    faults_applied: Mapping[str, int]
    """How often each planned fault was applied, by its name."""
