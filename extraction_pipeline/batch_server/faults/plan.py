"""A plan of faults: which calls and batches go wrong, and how. JSON, read when a server starts
(`--faults`) or given to it while it runs (`PUT /faults`).

Every fault names its `kind`, where it applies and how often:

    {"faults": [
        {"kind": "drop", "call": "create", "accepted": true, "first": 1},
        {"kind": "answer", "call": "status", "status": 429, "retry_after": 7, "every": 3},
        {"kind": "rows", "dialect": "gemini", "what": "missing", "rows": [2]}
    ]}

Of the faults of calls, the first one in the plan that is due is applied to a call, alone.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from extraction_pipeline.batch_server.dialects import Dialect
from extraction_pipeline.batch_server.records import BatchState
from extraction_pipeline.errors import ConfigurationError

LONGEST_PLAN = 1024 * 1024
"""Bytes."""
_Seconds = Annotated[float, Field(ge=0, le=24 * 3600)]


class CallName(StrEnum):
    """What a call asks for, whatever its wire format; `file` is the record of one, `results` its
    content where it holds a batch's results."""

    UPLOAD = "upload"
    CREATE = "create"
    STATUS = "status"
    LIST = "list"
    LIST_FILES = "list_files"
    FILE = "file"
    RESULTS = "results"
    CANCEL = "cancel"
    DELETE = "delete"


OF_ONE_BATCH = frozenset({CallName.STATUS, CallName.FILE, CallName.RESULTS, CallName.CANCEL})
"""Calls that say which batch they are about."""


class Closed(BaseModel):
    """A part of a plan: unknown names are refused, and errors do not quote the input."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class _Fault(Closed):
    """What all faults have: where and how often they apply.

    Of the calls (or requests, or batches) that a fault is about, it leaves the first `skip` alone,
    then takes every `every`th, each with `probability` (drawn from `seed`), until it was applied
    `first` times; without `first`, for ever. `job` counts the batches of a wire format that were
    accepted since the plan is in force, from 1. `job_key` is the client's own name for a job, as
    `jobs_by_key` of the statistics has it.
    """

    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """What the statistics count it under; its kind, if it has none."""
    dialect: Dialect | None = None
    job_key: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    job: Annotated[int, Field(ge=1)] | None = None
    skip: Annotated[int, Field(ge=0)] = 0
    first: Annotated[int, Field(ge=1)] | None = None
    every: Annotated[int, Field(ge=1)] = 1
    probability: Annotated[float, Field(gt=0, le=1)] = 1.0
    seed: int = 0

    @property
    def label(self) -> str:
        """What it is counted under."""
        return self.name or str(getattr(self, "kind", "fault"))

    @property
    def per_batch(self) -> bool:
        """Whether `skip`, `first` and `every` count for each batch on its own."""
        return False

    @property
    def needs_batch(self) -> bool:
        """Whether it cannot be told without the batch whether the fault is meant."""
        return self.per_batch or self.job is not None or self.job_key is not None


class _CallFault(_Fault):
    """A fault of calls: of one kind of them, or of all.

    `batch_is` restricts it to calls about batches that have ended, or have not. With `each_batch`,
    its occurrences are counted for each batch on its own.
    """

    call: CallName | None = None
    batch_is: Literal["open", "ended"] | None = None
    each_batch: bool = False

    def is_of(self, call: CallName) -> bool:
        """Whether it is a fault of such calls."""
        return self.call in (None, call)

    @property
    def per_batch(self) -> bool:
        """As `each_batch` says."""
        return self.each_batch

    @property
    def needs_batch(self) -> bool:
        """As for all, and for `batch_is`."""
        return super().needs_batch or self.batch_is is not None

    @model_validator(mode="after")
    def _says_what_can_be_known(self) -> Self:
        if self.needs_batch and self.call not in OF_ONE_BATCH:
            calls = ", ".join(sorted(OF_ONE_BATCH))
            raise ValueError(
                "job, job_key, batch_is and each_batch need a call that is about one batch: "
                f"{calls}"
            )
        return self


class Drop(_CallFault):
    """The connection breaks without an answer; `accepted` says whether the server did it first."""

    kind: Literal["drop"]
    accepted: bool = False


class AnswerWith(_CallFault):
    """An error in the provider's own form (or a gateway's `page` of HTML); `accepted` as above.

    `code` is the provider's own word for the error, where its form has a place for one.
    `retry_after` is in seconds, and is sent as such or as a date.
    """

    kind: Literal["answer"]
    status: Annotated[int, Field(ge=400, le=599)]
    accepted: bool = False
    page: bool = False
    code: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    retry_after: _Seconds | None = None
    retry_after_as: Literal["seconds", "date"] = "seconds"


class Hang(_CallFault):
    """Nothing is said for so many seconds; then the answer comes, if the client is still there.

    With `accepted` the server does it first; without, once the time is over, and not at all for a
    client that has gone.
    """

    kind: Literal["hang"]
    seconds: _Seconds = 3600.0
    accepted: bool = False


class Slow(_CallFault):
    """The answer's body trickles, and takes so many seconds."""

    kind: Literal["slow"]
    seconds: _Seconds


class Cut(_CallFault):
    """The answer's body ends too early: in the middle of a line, or after one (of JSON in one line,
    always in the middle). With `announced`, the client can tell by HTTP's framing."""

    kind: Literal["cut"]
    call: CallName | None = CallName.RESULTS
    at: Literal["mid_line", "line_end"] = "mid_line"
    announced: bool = False


class Garbled(_CallFault):
    """A line of the results, counted from 0, is no JSON; the body is as long as before."""

    kind: Literal["garbled"]
    call: Literal[CallName.RESULTS] = CallName.RESULTS
    line: Annotated[int, Field(ge=0)] = 0


class NoCredit(_CallFault):
    """The account is out of credit, in the provider's own words."""

    kind: Literal["no_credit"]
    call: CallName | None = CallName.CREATE


class KeyRotated(_CallFault):
    """The keys that the first `skip` calls carried are refused from then on; others are taken."""

    kind: Literal["key_rotated"]
    call: None = None
    skip: Annotated[int, Field(ge=1)] = 1


class ListLags(_CallFault):
    """Batches and files are not in lists in their first `seconds`."""

    kind: Literal["list_lags"]
    call: Literal[CallName.LIST, CallName.LIST_FILES] | None = None
    seconds: _Seconds

    def is_of(self, call: CallName) -> bool:
        """Lists only."""
        return call in (CallName.LIST, CallName.LIST_FILES) and super().is_of(call)


class StateSaid(_CallFault):
    """A status says this word for the batch's state."""

    kind: Literal["state"]
    call: Literal[CallName.STATUS] = CallName.STATUS
    word: Annotated[str, Field(max_length=200)]


class CountsSaid(_CallFault):
    """The counts of a status are left out, null, zero, of the other type (texts for numbers), or
    more than there are requests."""

    kind: Literal["counts"]
    call: Literal[CallName.STATUS] = CallName.STATUS
    what: Literal["missing", "null", "zero", "other_type", "too_many"]


class ResultsPlace(_CallFault):
    """What an ended batch says of where its results are is absent, null or empty.

    That is OpenAI's `output_file_id`, Anthropic's `results_url` and Gemini's `response`; Infrai
    names no place.
    """

    kind: Literal["results_place"]
    call: Literal[CallName.STATUS] = CallName.STATUS
    what: Literal["missing", "null", "empty"]


class Says(_Fault):
    """The model's answer to a request is something else, and is paid for as before; or there is
    none, but an `error` with `status`, or the news that the account has `no_credit`."""

    kind: Literal["says"]
    what: Literal["bad_json", "half_json", "refusal", "truncated", "empty", "error", "no_credit"]
    status: Annotated[int, Field(ge=400, le=599)] = 500


class Rows(_Fault):
    """A batch's results are shuffled, or lack `rows` (counted from 0), have them twice, or have
    more with ids of nobody's."""

    kind: Literal["rows"]
    what: Literal["shuffled", "missing", "repeated", "foreign"]
    rows: tuple[Annotated[int, Field(ge=0)], ...] = (0,)


class Stuck(_Fault):
    """A batch does not go on from this state, as long as the plan is in force."""

    kind: Literal["stuck"]
    at: Literal[
        BatchState.VALIDATING, BatchState.IN_PROGRESS, BatchState.FINALIZING, BatchState.CANCELLING
    ] = BatchState.IN_PROGRESS


class Ends(_Fault):
    """A batch expires or is cancelled when it has this many answers, or fails at its validation
    with `code` (which Anthropic's batches never do)."""

    kind: Literal["ends"]
    how: Literal[BatchState.EXPIRED, BatchState.CANCELLED, BatchState.FAILED]
    after: Annotated[int, Field(ge=0)] = 0
    code: Annotated[str, Field(min_length=1, max_length=100)] = "token_limit_exceeded"


class Announced(_Fault):
    """A batch's webhook comes `times` times with one id (`repeated`) or as many (`renumbered`),
    signed so many `seconds` ago (`late`), before the batch's client can know its id and at no other
    time (`early`), after that of the next batch that ends (`out_of_order`), with one for a batch
    of nobody's (`foreign`), or not at all (`lost`)."""

    kind: Literal["webhook"]
    what: Literal["repeated", "renumbered", "late", "early", "out_of_order", "foreign", "lost"]
    times: Annotated[int, Field(ge=2, le=1000)] = 10
    seconds: _Seconds = 24 * 3600.0


CallFault = (
    Drop
    | AnswerWith
    | Hang
    | Slow
    | Cut
    | Garbled
    | NoCredit
    | KeyRotated
    | ListLags
    | StateSaid
    | CountsSaid
    | ResultsPlace
)
BatchFault = Says | Rows | Stuck | Ends | Announced
Fault = CallFault | BatchFault


class FaultPlan(Closed):
    """All that is to go wrong; nothing, where it is empty."""

    faults: Annotated[
        tuple[Annotated[Fault, Field(discriminator="kind")], ...], Field(max_length=1000)
    ] = ()


def load_plan(path: Path) -> FaultPlan:
    """Read a plan file. Raises `ConfigurationError`, which names the place of what is wrong."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"The fault plan {path} cannot be read: {error.strerror}.",
            remedy="Name a file of JSON with --faults, or leave the option out.",
        ) from None
    try:
        return FaultPlan.model_validate_json(content)
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        raise ConfigurationError(
            f"The fault plan {path} is wrong{_place(fault['loc'])}: {fault['msg']}.",
            remedy='Mend it; {"faults": []} is the smallest one.',
        ) from None


def _place(parts: tuple[Any, ...]) -> str:
    return f" at {'.'.join(str(part) for part in parts)}" if parts else ""
