"""What every batch provider is to the rest of the project: types, and one small interface.

Translation between these types and a wire format is pure (`encode_request`, `decode_result`); the
other methods make calls (HTTP through `providers.http`) and raise
`providers.errors.ProviderError`.
Nothing in this package knows Dagster or the database.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol


class FailureKind(StrEnum):
    """Why something failed, which decides who may act next (design, promise 4)."""

    TRANSPORT = "transport"
    """The way to the provider failed (429, 5xx, time-out): wait, then ask again."""
    MODEL = "model"
    """The model failed this request: a new attempt, bounded and counted."""
    DATABASE = "database"
    """Our own storage failed: replay from the stored raw response, never inference."""
    REJECTED = "rejected"
    """The provider refuses the request as such: a design input, no retry."""
    ACCOUNT = "account"
    """No credit, a bad key: stop submitting, burn no attempt."""


class AnswerOutcome(StrEnum):
    """How one request of a batch ended, as the provider says."""

    COMPLETED = "completed"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    BLOCKED = "blocked"
    EMPTY = "empty"
    ERRORED = "errored"
    """The provider failed on this request; a new attempt may work."""
    REJECTED = "rejected"
    """The provider says that the request itself is invalid; the same one fails again."""
    ACCOUNT = "account"
    """No credit or no permission; the request as such is not at fault."""
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class JobPhase(StrEnum):
    """A provider's many job states, as far as this project acts on them."""

    PENDING = "pending"
    """Accepted and not at an end. Unknown states count as pending, never as an end."""
    ENDED = "ended"
    """At an end with results to fetch, complete or partial."""
    FAILED = "failed"
    """At an end as a whole, without any result (validation, limits, an internal error)."""
    EXPIRED = "expired"
    """Ran out of time. Partial results may exist and are fetched."""
    CANCELLED = "cancelled"
    """Cancelled. Partial results may exist and are fetched."""

    @property
    def is_end(self) -> bool:
        """Whether the provider will not work on this job any more."""
        return self is not JobPhase.PENDING


@dataclass(frozen=True)
class ProviderLimits:
    """Declared limits of one provider: what one job may hold, how long results are kept, and how
    many payload bytes and jobs may be under way at once."""

    requests_per_job: int
    bytes_per_job: int
    result_retention_days: int | None
    queued_bytes: int | None = None
    jobs_at_once: int | None = None


@dataclass(frozen=True)
class ModelRequest:
    """One document's question, in no provider's words.

    `custom_id` matches `^[A-Za-z0-9_-]{1,64}$` and is unique in its job. `json_schema` is strict:
    every object closed, every property required. `parameters` are passed to the provider's request
    body as they are (`temperature`, for example). `document_hash` goes only to a provider that may
    key its results by it.
    """

    custom_id: str
    model: str
    instructions: str
    document: str = field(repr=False)
    schema_name: str
    json_schema: Mapping[str, Any] = field(repr=False)
    max_output_tokens: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    document_hash: str = ""


@dataclass(frozen=True)
class CallRecord:
    """What a provider's answer to one call said of itself; safe to log. No status: not HTTP."""

    http_status: int | None
    request_id: str | None


@dataclass(frozen=True)
class UploadReceipt:
    """A payload that lies at the provider; no job exists by it yet."""

    input_id: str
    call: CallRecord


@dataclass(frozen=True)
class Submission:
    """What one create call is made of.

    Where the provider takes an upload, `input_id` names it; where it does not, `payload` is the
    file of request lines, each with its newline, that the call itself carries. `last_look` is
    called as late as may be before the job can exist; what it raises leaves `submit`, and then
    there is no job.
    """

    job_key: str
    model: str
    input_id: str | None = None
    payload: Path | None = None
    last_look: Callable[[], None] = field(default=lambda: None, compare=False)


@dataclass(frozen=True)
class SubmissionReceipt:
    """The provider's acceptance of a job."""

    job_id: str
    provider_state: str
    call: CallRecord


@dataclass(frozen=True)
class FoundJob:
    """A job at the provider that carries our job key."""

    job_id: str
    provider_state: str
    created_at: datetime | None


class SearchVerdict(StrEnum):
    """What a search that came to its end says of a job key."""

    FOUND = "found"
    """At least one job is proven to carry it."""
    ABSENT = "absent"
    """No job carries it: the whole of the provider's list was read. Lists may lag a moment."""
    UNCERTAIN = "uncertain"
    """Neither is proven yet. Nothing may be sent again."""
    REPEATABLE = "repeatable"
    """The provider cannot be searched, and a create call repeated under the same job key with the
    same payload gives the same job, so the repetition is the search."""


@dataclass(frozen=True)
class Search:
    """The outcome of a search. `found` is empty but for `FOUND`; `possible` names the jobs that
    stand in the way of certainty."""

    verdict: SearchVerdict
    found: tuple[FoundJob, ...] = ()
    possible: tuple[str, ...] = ()

    @classmethod
    def of_whole_list(cls, found: Iterable[FoundJob]) -> "Search":
        """Of a search that read everything there is and knows each of ours when it sees it."""
        jobs = tuple(found)
        return cls(SearchVerdict.FOUND if jobs else SearchVerdict.ABSENT, jobs)


CLOCK_MARGIN = timedelta(hours=15)
"""How far the provider's clock may be from the database's, in whatever time zone it writes. A wide
one costs a look at more jobs; a narrow one that is passed once costs a second paid job."""


@dataclass(frozen=True)
class Sought:
    """What is known of a job that is looked for.

    No create call of it was made before `first_tried_at`, and the last one began at
    `last_tried_at`. Every custom id in it begins with `custom_id_prefix`, and no other job's do.
    `known_job_ids` are jobs at the provider that are known to be others of ours, `input_ids`
    uploads that were made for this job and no other.
    """

    job_key: str
    first_tried_at: datetime
    last_tried_at: datetime
    request_count: int
    custom_id_prefix: str
    known_job_ids: frozenset[str] = frozenset()
    input_ids: frozenset[str] = frozenset()

    def rules_out(self, made_at: datetime | None) -> bool:
        """Whether a job of that time was made before any create call of this one."""
        return made_at is not None and made_at < self.first_tried_at - CLOCK_MARGIN


@dataclass(frozen=True)
class RequestCounts:
    """Requests as the provider counts them, `None` where it does not; they need not add up.

    Each of `completed` has a row in the output of an ended job: answers that were paid for.
    """

    total: int | None = None
    completed: int | None = None
    failed: int | None = None


class ResultKind(StrEnum):
    """Which of a job's result streams this is."""

    OUTPUT = "output"
    ERROR = "error"


LONGEST_RESULT_LINE = 64 * 1024 * 1024
"""Bytes of a line of results. A longer one is not read: far more than any model says, and more than
memory should hold several times over."""


@dataclass(frozen=True)
class ResultReference:
    """Where one stream of results lies at the provider."""

    kind: ResultKind
    reference: str


@dataclass(frozen=True)
class JobStatus:
    """One reading of a job. `error_code` and `error_message` are the provider's own words.

    `failure_kind` says what a `FAILED` job means: `TRANSPORT` for a limit on queued work (send it
    again later, no attempt used up), `ACCOUNT`, `REJECTED` for a payload that fails again as it
    is, and `MODEL` for everything else. `None` in every other phase.
    """

    job_id: str
    phase: JobPhase
    provider_state: str
    counts: RequestCounts
    results: tuple[ResultReference, ...]
    call: CallRecord
    error_code: str | None = None
    error_message: str | None = field(default=None, repr=False)
    failure_kind: FailureKind | None = None
    ended_at: datetime | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True)
class TokenUsage:
    """Tokens of one request, `None` where the provider does not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True)
class DecodedResult:
    """One line of results, translated. `text` is the model's answer and never logged.

    It names its request by `custom_id`, or `document_hash`, or both.
    """

    custom_id: str | None
    outcome: AnswerOutcome
    text: str | None = field(repr=False)
    http_status: int | None
    request_id: str | None
    model: str | None
    usage: TokenUsage
    error_code: str | None = None
    error_message: str | None = field(default=None, repr=False)
    document_hash: str | None = None


class UndecodableResult(ValueError):
    """A result line that is not of the provider's form; it names no document by itself."""


class ProviderFiles(Protocol):
    """Files at a provider that takes payloads before the create call."""

    def upload(self, payload: Path, job_key: str) -> UploadReceipt:
        """Bring a payload to the provider. No job exists by it, so it may be tried again."""

    def holds(self, file_id: str) -> bool:
        """Whether the file is there and seen with this key; a file of another account is not."""

    def delete(self, file_id: str) -> None:
        """Delete a file, where the provider can; one that is gone already is no error.

        A create call that names it afterwards makes no job.
        """


class BatchProvider(Protocol):
    """The interface of a provider. One instance per provider and base URL; safe to share."""

    @property
    def name(self) -> str:
        """The name that collections and the ledger use, such as `openai`."""

    @property
    def base_url(self) -> str:
        """Where calls go, without credentials."""

    @property
    def account(self) -> str:
        """What all calls with this key at this address share, as a hash that tells neither."""

    @property
    def limits(self) -> ProviderLimits:
        """What one job may hold."""

    @property
    def files(self) -> ProviderFiles | None:
        """Where the payload is brought first; `None` where the create call itself carries it."""

    def check_schema(self, schema_name: str, json_schema: Mapping[str, Any]) -> None:
        """Refuse a schema that the provider cannot take. Pure.

        Raises `ConfigurationError` with the name of the field.
        """

    def encode_request(self, request: ModelRequest) -> bytes:
        """One line of the payload, without its newline. Pure and deterministic.

        Raises `ConfigurationError` for parameters or text that cannot be sent.
        """

    def submit(self, submission: Submission) -> SubmissionReceipt:
        """Create the job: exactly one create call, never repeated.

        Raises `OutcomeUnknown` whenever the provider may have accepted, `CallRefused` only where
        an answer proves that it did not, and `CallFailed` only where the request never left (no
        connection came about).
        """

    def find(self, sought: Sought) -> Search:
        """Look for the jobs at the provider that carry a job key.

        A verdict is that of a complete, successful search; a search that failed raises.
        """

    def status(self, job_id: str) -> JobStatus:
        """One reading of the job."""

    def download(self, result: ResultReference) -> AbstractContextManager[Iterator[bytes]]:
        """Stream one result file in chunks; a body that was cut short raises, never just ends."""

    def decode_result(self, line: bytes) -> DecodedResult:
        """Translate one result line. Pure. Raises `UndecodableResult`."""

    def cancel(self, job_id: str) -> JobStatus:
        """Ask the provider to stop the job; results that are paid for stay."""

    def clean_up(self, job_id: str | None, file_ids: Sequence[str]) -> None:
        """Delete what the provider still holds of a job whose results are stored: its payload and
        results among `file_ids`, and the job itself where that holds them.

        What is gone already, or cannot be deleted there, is no error; it may be asked for again.
        """
