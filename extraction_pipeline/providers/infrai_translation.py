"""Between this project's types and Infrai's wire format: pure functions.

A request item has a `capability` and a `body`, and no id is documented for it. So the custom id
travels in two ways: in the body's `metadata`, which an item may give back, and inside the answer:
the schema gets one more property, and the instructions say which id to copy into it. An item is
joined to its document by such an id and never by its position; where two ids disagree, the item
names nothing.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from extraction_pipeline.providers.base import (
    AnswerOutcome,
    CallRecord,
    DecodedResult,
    FailureKind,
    JobPhase,
    JobStatus,
    ModelRequest,
    RequestCounts,
    ResultKind,
    ResultReference,
    TokenUsage,
    UndecodableResult,
)
from extraction_pipeline.providers.dialect import ErrorReading
from extraction_pipeline.providers.http_failures import failure_kind
from extraction_pipeline.providers.infrai_wire import (
    Answer,
    ResultItem,
    WireError,
    WireJob,
    WireUsage,
    read_answer,
    read_envelope,
)
from extraction_pipeline.providers.request_line import canonical_line, checked_parameters
from extraction_pipeline.providers.schema_nodes import (
    require_closed_object,
    schema_nodes,
    unfit_schema,
)
from extraction_pipeline.providers.wire import parse_line, valid_unicode

ECHO = "extraction_request_id"
"""The property in which an answer gives back the id of its request."""
_ECHO_RULE = "\n\nCopy this id into `{echo}`, letter by letter: {custom_id}\n"
_CUSTOM_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

_RESERVED = frozenset(
    {"model", "messages", "response_format", "max_tokens", "metadata", "stream", "n"}
)

_STATUS_BY_CODE = {
    "INSUFFICIENT_CREDIT": 402,
    "UNAUTHORIZED": 401,
    "UNAUTHENTICATED": 401,
    "INVALID_API_KEY": 401,
    "FORBIDDEN": 403,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "CONFLICT": 409,
    "IDEMPOTENCY_CONFLICT": 409,
    "IDEMPOTENCY_KEY_CONFLICT": 409,
    "PAYLOAD_TOO_LARGE": 413,
    "REQUEST_TOO_LARGE": 413,
    "RATE_LIMITED": 429,
    "RATE_LIMIT_EXCEEDED": 429,
    "TOO_MANY_REQUESTS": 429,
    "VALIDATION_ERROR": 400,
    "BAD_REQUEST": 400,
    "UNSUPPORTED_CAPABILITY": 400,
}
"""What `ok: false` under a good status means. A code that is not here leaves doubt, as a 500 does;
402 `INSUFFICIENT_CREDIT` is documented, the others are the usual names."""

_ENDED = frozenset(
    {
        *("completed", "complete", "succeeded", "success", "done", "finished"),
        *("partial", "partially_completed", "completed_with_errors"),
    }
)
_FAILED = frozenset({"failed", "failure", "error", "errored"})
_CANCELLED = frozenset({"cancelled", "canceled"})
_EXPIRED = frozenset({"expired", "timeout", "timed_out"})
END_STATES = _ENDED | _FAILED | _CANCELLED | _EXPIRED
KNOWN_STATES = END_STATES | {
    *("queued", "pending", "validating", "processing", "running", "in_progress", "finalizing"),
    *("cancelling", "canceling"),
}
"""Every other state is no end either; these are the ones that need no mention."""
KNOWN_ERRORS = frozenset(_STATUS_BY_CODE)


def check_schema(schema_name: str, json_schema: Mapping[str, Any]) -> None:
    """Refuse a schema that is not strict, or in the way of the echoed id.

    Infrai hands requests on to other vendors, whose limits it does not tell. Raises
    `ConfigurationError` with the field's name.
    """
    for node in schema_nodes("Infrai", schema_name, json_schema):
        require_closed_object("Infrai", schema_name, node)
    if ECHO in json_schema.get("properties", {}):
        raise unfit_schema("Infrai", schema_name, ECHO, "is a name that the request itself needs")


def encode_request(request: ModelRequest, capability: str) -> bytes:
    """One element of a submission's `requests`, as canonical JSON without newline.

    Raises `ConfigurationError` for a parameter that this module sets itself, or text that is no
    valid Unicode.
    """
    schema = {
        **request.json_schema,
        "properties": {
            ECHO: {"type": "string", "description": "The id that the instructions give."},
            **request.json_schema["properties"],
        },
        "required": [ECHO, *request.json_schema["required"]],
    }
    rule = _ECHO_RULE.format(echo=ECHO, custom_id=request.custom_id)
    body = {
        "model": request.model,
        "messages": [
            {"role": "system", "content": request.instructions + rule},
            {"role": "user", "content": request.document},
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": request.schema_name, "strict": True, "schema": schema},
        },
        "max_tokens": request.max_output_tokens,
        "metadata": {"custom_id": request.custom_id},
        **checked_parameters(request, _RESERVED),
    }
    return canonical_line({"capability": capability, "body": body}, request.custom_id)


def status_within(status: int, body: bytes) -> int:
    """The status that an answer means: `ok: false` under a good one is a failure by its code."""
    if not 200 <= status < 300:
        return status
    try:
        envelope = read_envelope(body)
    except ValueError:
        return status
    if envelope.ok is not False:
        return status
    code = (envelope.error or WireError()).code
    return _STATUS_BY_CODE.get((code or "").upper(), 500)


def read_error(status: int, headers: Mapping[str, str], body: bytes) -> ErrorReading:
    """What a failed call says; a 4xx that calls itself retryable is to be asked again later."""
    try:
        error = read_envelope(body).error
    except ValueError:
        error = None
    if error is None:
        return ErrorReading()
    kind = failure_kind(_STATUS_BY_CODE.get((error.code or "").upper(), status), None, frozenset())
    if error.retryable and kind is FailureKind.REJECTED:
        kind = FailureKind.TRANSPORT
    wish = error.retry_after
    return ErrorReading(error.code, kind, wish if wish is not None and wish >= 0 else None)


def request_id_within(body: bytes) -> str | None:
    """The request id, which only the envelope tells."""
    try:
        metadata = read_envelope(body).metadata
    except ValueError:
        return None
    return metadata.request_id if metadata else None


def job_status(job_id: str, job: WireJob, call: CallRecord) -> JobStatus:
    """One reading of a batch. An unknown state is pending, never an end."""
    phase = _phase(job)
    if phase is JobPhase.FAILED and job.completed:
        phase = JobPhase.ENDED  # it got somewhere, and those answers are paid for
    served = phase is JobPhase.ENDED or (
        # Without a count it is not known whether anything was served, so it is looked at.
        phase in (JobPhase.CANCELLED, JobPhase.EXPIRED) and job.completed != 0
    )
    error = job.error
    return JobStatus(
        job_id=job_id,
        phase=phase,
        provider_state=job.state,
        counts=RequestCounts(job.total, job.completed, job.failed),
        results=(ResultReference(ResultKind.OUTPUT, job_id),) if served else (),
        call=call,
        error_code=error.code if error else None,
        error_message=error.message if error else None,
        failure_kind=_job_failure_kind(error) if phase is JobPhase.FAILED else None,
    )


def _phase(job: WireJob) -> JobPhase:
    state = job.state.lower()
    if state in _ENDED:
        return JobPhase.ENDED
    if state in _FAILED:
        return JobPhase.FAILED
    if state in _CANCELLED:
        return JobPhase.CANCELLED
    return JobPhase.EXPIRED if state in _EXPIRED else JobPhase.PENDING


def _job_failure_kind(error: WireError | None) -> FailureKind:
    if error is None or error.code is None:
        return FailureKind.MODEL
    if error.retryable:
        return FailureKind.TRANSPORT
    return failure_kind(_STATUS_BY_CODE.get(error.code.upper(), 500), None, frozenset())


def decode_result(line: bytes) -> DecodedResult:
    """Translate one item of the results. Raises `UndecodableResult` where it names no request."""
    try:
        item = parse_line(line, ResultItem, "custom_id")
    except ValueError as unreadable:
        raise UndecodableResult(str(unreadable)) from None
    answer = read_answer(item.result)
    text, finish, refusal = _said(answer)
    text, echoed = _without_echo(text)
    named = {name for name in (*_named_by(item, answer), echoed) if name}
    if len(named) != 1:
        raise UndecodableResult("A result line cannot be read: it names no request, or two.")
    error = item.error if item.error and item.error != WireError() else None
    outcome, said = _outcome(item, error, text, finish, refusal)
    usage = answer.usage or WireUsage()
    return DecodedResult(
        custom_id=named.pop(),
        outcome=outcome,
        text=valid_unicode(said),
        http_status=item.status_code,
        request_id=item.request_id or answer.id,
        model=answer.model,
        usage=TokenUsage(usage.input_tokens, usage.output_tokens),
        error_code=error.code if error else None,
        error_message=valid_unicode(error.message) if error else None,
    )


def _named_by(item: ResultItem, answer: Answer) -> list[str | None]:
    """The ids in all places where an item may give one back."""
    requests = [echo for echo in (item.body, item.request) if echo is not None]
    holders = [item.metadata, answer.metadata, *(echo.metadata for echo in requests)]
    return [
        item.custom_id,
        *(echo.custom_id for echo in requests),
        *(holder.custom_id for holder in holders if holder is not None),
    ]


def _said(answer: Answer) -> tuple[str | None, str | None, str | None]:
    """(text, finish reason, refusal) in either form."""
    if not answer.choices:
        return answer.content, answer.finish_reason, None
    choice = answer.choices[0]
    message = choice.message
    if message is None:
        return None, choice.finish_reason, None
    return message.content, choice.finish_reason, message.refusal


def _without_echo(text: str | None) -> tuple[str | None, str | None]:
    """The answer as the document's schema has it, and the id that the model copied."""
    if text is None or ECHO not in text:
        return text, None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text, None  # cut short, or no JSON: judged as it is
    if not isinstance(value, dict) or ECHO not in value:
        return text, None
    echoed = value.pop(ECHO)
    known = isinstance(echoed, str) and _CUSTOM_ID.fullmatch(echoed) is not None
    return json.dumps(value), echoed if known else None


def _outcome(
    item: ResultItem,
    error: WireError | None,
    text: str | None,
    finish: str | None,
    refusal: str | None,
) -> tuple[AnswerOutcome, str | None]:
    state = (item.state or "").lower()
    if state in _CANCELLED:
        return AnswerOutcome.CANCELLED, None
    if state in _EXPIRED:
        return AnswerOutcome.EXPIRED, None
    status = item.status_code
    failed = item.ok is False or state in _FAILED or error is not None
    if failed or (status is not None and not 200 <= status < 300):
        return _failure(error or WireError(), status), None
    if refusal:
        return AnswerOutcome.REFUSED, refusal
    match finish:
        case "content_filter":
            return AnswerOutcome.BLOCKED, text
        case "length" | "max_tokens":
            return AnswerOutcome.TRUNCATED, text
        case "refusal":
            return AnswerOutcome.REFUSED, text
        case "error":
            return AnswerOutcome.ERRORED, text
    if text is None or not text.strip():
        return AnswerOutcome.EMPTY, text
    return AnswerOutcome.COMPLETED, text


def _failure(error: WireError, status: int | None) -> AnswerOutcome:
    code = (error.code or "").upper()
    if code in ("EXPIRED", "TIMEOUT", "BATCH_TIMEOUT"):
        return AnswerOutcome.EXPIRED
    if code in ("CANCELLED", "CANCELED"):
        return AnswerOutcome.CANCELLED
    meant = _STATUS_BY_CODE.get(code, status)
    if meant is None or error.retryable:
        return AnswerOutcome.ERRORED
    match failure_kind(meant, None, frozenset()):
        case FailureKind.ACCOUNT:
            return AnswerOutcome.ACCOUNT
        case FailureKind.REJECTED:
            return AnswerOutcome.REJECTED
    return AnswerOutcome.ERRORED
