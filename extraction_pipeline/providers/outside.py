"""A service without an API, behind a folder that both sides see: a bureau, a specialist, a script.

    outbox/<job key>.jsonl      the requests, for the service to read or to take away
    inbox/<job key>.jsonl       the results, whole when their last line says so
    sent/<job key>              empty and ours: the requests were there, or were about to be
    sent/<job key>.cancelled    the same: they were taken back

The job key is the job's id. Its request file appears in one step and is never written twice. The
mark in `sent` comes before it, so without one nobody has seen the requests, and the create call may
be repeated; with one alone, the service has taken them, or we died in between. What of the two is
only known when results come, or by a person.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from typing import Any, BinaryIO

from extraction_pipeline.providers.base import (
    CallRecord,
    DecodedResult,
    FailureKind,
    FoundJob,
    JobPhase,
    JobStatus,
    ModelRequest,
    ProviderLimits,
    RequestCounts,
    ResultKind,
    ResultReference,
    Search,
    SearchVerdict,
    Sought,
    Submission,
    SubmissionReceipt,
)
from extraction_pipeline.providers.errors import (
    CallFailed,
    CallRefused,
    OutcomeUnknown,
    ProviderError,
)
from extraction_pipeline.providers.exchange_folder import ExchangeFolder, open_exchange_folder
from extraction_pipeline.providers.folder_endpoint import SETTING, FolderEndpoint
from extraction_pipeline.providers.identifiers import account_id, checked_job_key
from extraction_pipeline.providers.limits import narrowed
from extraction_pipeline.providers.outside_results import NotWhole, whole_lines
from extraction_pipeline.providers.outside_translation import decode_result, encode_request

NAME = "outside"
LIMITS = ProviderLimits(
    requests_per_job=10_000, bytes_per_job=200_000_000, result_retention_days=None
)
"""Of this project's choosing: what one file should hold that people or their scripts work with."""

OUTBOX = "outbox"
INBOX = "inbox"
SENT = "sent"


class JobState(StrEnum):
    """How far a job is, as its files say."""

    WAITING = "waiting"
    TAKEN = "taken"
    NOT_WHOLE = "results_not_whole"
    DELIVERED = "delivered"
    CANCELLED = "cancelled"


_PHASES = {
    JobState.WAITING: JobPhase.PENDING,
    JobState.TAKEN: JobPhase.PENDING,
    JobState.NOT_WHOLE: JobPhase.PENDING,
    JobState.DELIVERED: JobPhase.ENDED,
    JobState.CANCELLED: JobPhase.CANCELLED,
}
_CALL = CallRecord(http_status=None, request_id=None)


class OutsideProvider:
    """A `BatchProvider` over a shared folder."""

    def __init__(self, endpoint: FolderEndpoint, limits: ProviderLimits = LIMITS) -> None:
        self._place = endpoint.folder
        self._limits = narrowed(limits, endpoint.limits)

    @property
    def name(self) -> str:
        """The name that collections and the ledger use."""
        return NAME

    @property
    def base_url(self) -> str:
        """The folder, as a path or URL."""
        return self._place or ""

    @property
    def account(self) -> str:
        """The folder, as a hash."""
        return account_id(NAME, self.base_url)

    @property
    def limits(self) -> ProviderLimits:
        """What one job may hold."""
        return self._limits

    @property
    def files(self) -> None:
        """None: the request file is the job."""
        return None

    def check_schema(self, schema_name: str, json_schema: Mapping[str, Any]) -> None:
        """Any schema will do: it is there to be read."""

    def encode_request(self, request: ModelRequest) -> bytes:
        """One request line; see `outside_translation.encode_request`."""
        return encode_request(request)

    def decode_result(self, line: bytes) -> DecodedResult:
        """Translate one result line; see `outside_translation.decode_result`."""
        return decode_result(line)

    def submit(self, submission: Submission) -> SubmissionReceipt:
        """Let the request file appear, unless a job of this key is there."""
        if submission.payload is None:
            raise ValueError("the create call needs the payload")
        job_key = checked_job_key(submission.job_key)
        with self._opened() as folder:
            for name in (OUTBOX, INBOX, SENT):
                folder.make(name)
            _remove_staged(folder, job_key)
            state = _state(folder, job_key)
            if state is None:
                requests = folder.stage(_requests(job_key), submission.payload)
                mark = folder.stage(_mark(job_key), None)
                submission.last_look()
                _appear(folder, {mark: _mark(job_key), requests: _requests(job_key)})
        if state is JobState.TAKEN:
            raise _unknown("they were there, or were about to be")
        return SubmissionReceipt(job_key, state or JobState.WAITING, _CALL)

    def find(self, sought: Sought) -> Search:
        """The job of this key, or whether asking for it again makes no second one."""
        job_key = checked_job_key(sought.job_key)
        with self._opened() as folder:
            _remove_staged(folder, job_key)
            state = _state(folder, job_key)
        match state:
            case None:
                return Search(SearchVerdict.REPEATABLE)
            case JobState.TAKEN:
                return Search(SearchVerdict.UNCERTAIN)
        return Search(SearchVerdict.FOUND, (FoundJob(job_key, state, None),))

    def status(self, job_id: str) -> JobStatus:
        """One look at the job's files: it has ended when its results are there whole."""
        job_key = checked_job_key(job_id)
        with self._opened() as folder:
            lines = _whole_results(folder, job_key)
            state = JobState.DELIVERED if lines is not None else _state(folder, job_key)
        if state is None:
            raise CallRefused(
                f"{NAME}: job {job_key} has no file in the shared folder.",
                kind=FailureKind.REJECTED,
                remedy=f"Check that {SETTING} names the folder used before.",
                http_status=404,
                code="not_there",
            )
        return JobStatus(
            job_id=job_key,
            phase=_PHASES[state],
            provider_state=state,
            counts=RequestCounts(completed=lines),
            results=() if lines is None else (ResultReference(ResultKind.OUTPUT, job_key),),
            call=_CALL,
        )

    def download(self, result: ResultReference) -> AbstractContextManager[Iterator[bytes]]:
        """The result lines, without the one that only ends the file."""
        return self._results(checked_job_key(result.reference))

    @contextmanager
    def _results(self, job_key: str) -> Iterator[Iterator[bytes]]:
        with self._opened() as folder:
            file = folder.open(_results_of(job_key))
        with file:
            yield _lines_until_cut(file)

    def cancel(self, job_id: str) -> JobStatus:
        """Take the requests back, unless the results are there whole."""
        status = self.status(job_id)
        if status.phase.is_end:
            return status
        with self._opened() as folder:
            folder.make(SENT)
            mark = _cancellation(job_id)
            folder.put(folder.stage(mark, None), mark)
            folder.remove(_requests(job_id))
        return self.status(job_id)

    def clean_up(self, job_id: str | None, file_ids: Sequence[str]) -> None:
        """Delete all files of the job."""
        if job_id is None:
            return
        job_key = checked_job_key(job_id)
        with self._opened() as folder:
            _remove_staged(folder, job_key)
            for name in (_requests, _results_of, _cancellation, _mark):
                folder.remove(name(job_key))

    @contextmanager
    def _opened(self) -> Iterator[ExchangeFolder]:
        with _failures():
            folder = self._folder()
            if not folder.is_there():
                raise CallFailed(
                    f"{NAME}: the shared folder is not there.",
                    kind=FailureKind.TRANSPORT,
                    remedy="Mount it, make it (in an object store: with an object in it), or "
                    f"correct {SETTING}.",
                )
            yield folder

    def _folder(self) -> ExchangeFolder:
        try:
            return open_exchange_folder(self.base_url)
        except (ImportError, ValueError) as error:
            # fsspec says which package a protocol needs, or that it knows none of that name.
            cause = str(error).rstrip(".")
        raise CallFailed(
            f"{NAME}: the URL in {SETTING} cannot be used: {cause}.",
            kind=FailureKind.TRANSPORT,
            remedy="Correct it, or install what is lacking.",
        )


def build_outside(endpoint: FolderEndpoint) -> OutsideProvider:
    """The service behind this folder."""
    return OutsideProvider(endpoint)


def _requests(job_key: str) -> str:
    return f"{OUTBOX}/{job_key}.jsonl"


def _mark(job_key: str) -> str:
    return f"{SENT}/{job_key}"


def _cancellation(job_key: str) -> str:
    return f"{SENT}/{job_key}.cancelled"


def _results_of(job_key: str) -> str:
    return f"{INBOX}/{job_key}.jsonl"


def _state(folder: ExchangeFolder, job_key: str) -> JobState | None:
    """What the names of its files say of a job; `None` where there is none."""
    if folder.has(_cancellation(job_key)):
        return JobState.CANCELLED
    if folder.has(_results_of(job_key)):
        return JobState.NOT_WHOLE
    if folder.has(_requests(job_key)):
        return JobState.WAITING
    return JobState.TAKEN if folder.has(_mark(job_key)) else None


def _remove_staged(folder: ExchangeFolder, job_key: str) -> None:
    for name in (_requests, _mark, _cancellation):
        folder.remove_staged(name(job_key))


def _whole_results(folder: ExchangeFolder, job_key: str) -> int | None:
    """How many results there are, once all of them are."""
    if not folder.has(_results_of(job_key)):
        return None
    try:
        with folder.open(_results_of(job_key)) as file:
            return sum(1 for _ in whole_lines(file))
    except NotWhole:
        return None


def _lines_until_cut(file: BinaryIO) -> Iterator[bytes]:
    with _failures():
        yield from whole_lines(file)


def _appear(folder: ExchangeFolder, names: Mapping[str, str]) -> None:
    """Bring staged files to their names, in order. Raises `OutcomeUnknown`."""
    try:
        for staged, name in names.items():
            folder.put(staged, name)
        return
    except Exception as error:  # noqa: BLE001 - every file system has errors of its own
        cause = _cause(error)
    raise _unknown(cause)


def _unknown(cause: str) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"{NAME}: whether the requests came into the outbox is not known: {cause}.",
        kind=FailureKind.TRANSPORT,
    )


@contextmanager
def _failures() -> Iterator[None]:
    """Every failure of the file system as `CallFailed`, which never names a path."""
    try:
        yield
        return
    except ProviderError:
        raise
    except NotWhole:
        cause = "the results are not there whole any more"
    except Exception as error:  # noqa: BLE001 - as above
        cause = f"the shared folder cannot be used: {_cause(error)}"
    raise CallFailed(
        f"{NAME}: {cause}.",
        kind=FailureKind.TRANSPORT,
        remedy=f"Check {SETTING}, and that this user may read and write there.",
    )


def _cause(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or type(error).__name__)
