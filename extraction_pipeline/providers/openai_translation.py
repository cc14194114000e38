"""Between this project's types and OpenAI's wire format: pure functions.

Requests are chat completions with a strict JSON schema in `response_format`. Chat completions,
rather than the Responses API, because that is what every compatible server speaks too.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

import orjson

from extraction_pipeline.errors import ConfigurationError
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
from extraction_pipeline.providers.http_failures import failure_kind
from extraction_pipeline.providers.openai_wire import (
    ChatBody,
    ChatMessage,
    ErrorBody,
    ResponseEnvelope,
    WireBatch,
    WireError,
    parse_result_line,
)

CHAT_COMPLETIONS = "/v1/chat/completions"
TOKEN_LIMIT_EXCEEDED = "token_limit_exceeded"
"""The code of a batch that failed because too many tokens were queued: wait, then send it again."""

ACCOUNT_CODES = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "account_deactivated",
        "invalid_api_key",
        "organization_deactivated",
    }
)
_QUEUE_CODES = frozenset({TOKEN_LIMIT_EXCEEDED, "rate_limit_exceeded"})
_SERVER_CODES = frozenset({"server_error", "internal_error"})
_BLOCKED_CODES = frozenset(
    {"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"}
)
_LINE_CODES = {
    "batch_expired": AnswerOutcome.EXPIRED,
    "batch_cancelled": AnswerOutcome.CANCELLED,
    "batch_canceled": AnswerOutcome.CANCELLED,
}
_RESERVED = frozenset(
    {"model", "messages", "response_format", "max_completion_tokens", "max_tokens", "n", "stream"}
)
_LINE_SEPARATORS = {
    character.encode(): f"\\u{ord(character):04x}".encode() for character in "\u0085\u2028\u2029"
}


def encode_request(request: ModelRequest) -> bytes:
    """One input line, without its newline.

    Raises `ConfigurationError` for a parameter that this module sets itself, or text that is no
    valid Unicode.
    """
    taken = sorted(_RESERVED & request.parameters.keys())
    if taken:
        raise ConfigurationError(
            f"The parameters of model {request.model} set {', '.join(taken)}.",
            remedy="Take it out: the pipeline sets it from the extraction version itself.",
        )
    body = {
        "model": request.model,
        "messages": [
            {"role": "system", "content": request.instructions},
            {"role": "user", "content": request.document},
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": request.schema_name,
                "strict": True,
                "schema": request.json_schema,
            },
        },
        "max_completion_tokens": request.max_output_tokens,
        **dict(sorted(request.parameters.items())),
    }
    line = {
        "custom_id": request.custom_id,
        "method": "POST",
        "url": CHAT_COMPLETIONS,
        "body": body,
    }
    try:
        encoded = orjson.dumps(line)
    except TypeError:
        encoded = None
    if encoded is None:
        raise ConfigurationError(
            f"Request {request.custom_id} cannot be written as JSON in UTF-8.",
            remedy="Its text, schema or parameters hold a value that JSON or Unicode lacks.",
        )
    # Legal inside a JSON string, but some readers of JSON lines end a line there.
    for character, escape in _LINE_SEPARATORS.items():
        encoded = encoded.replace(character, escape)
    return encoded


def read_error_code(body: bytes) -> str | None:
    """The code, else the type, in the body of a failed call; `None` if it has none."""
    try:
        error = ErrorBody.model_validate_json(body).error
    except ValueError:
        return None
    return error.code or error.type


def job_status(batch: WireBatch, call: CallRecord) -> JobStatus:
    """One reading of a batch. An unknown status is pending, never an end."""
    results = tuple(
        ResultReference(kind, file_id)
        for kind, file_id in (
            (ResultKind.OUTPUT, batch.output_file_id),
            (ResultKind.ERROR, batch.error_file_id),
        )
        if file_id is not None
    )
    phase = _phase(batch.status, has_results=bool(results))
    error = _telling_error(batch.errors.data or [] if batch.errors else [])
    counts = batch.request_counts
    return JobStatus(
        job_id=batch.id,
        phase=phase,
        provider_state=batch.status,
        counts=RequestCounts(counts.total, counts.completed, counts.failed)
        if counts
        else RequestCounts(),
        results=results,
        call=call,
        error_code=(error.code or error.type) if error else None,
        error_message=error.message if error else None,
        failure_kind=_job_failure_kind(error) if phase is JobPhase.FAILED else None,
        ended_at=as_time(
            batch.completed_at or batch.failed_at or batch.expired_at or batch.cancelled_at
        )
        if phase.is_end
        else None,
        expires_at=as_time(batch.expires_at),
    )


def as_time(seconds: int | None) -> datetime | None:
    """Unix seconds as a moment in UTC."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _phase(status: str, *, has_results: bool) -> JobPhase:
    match status:
        case "completed":
            # Completed without any file: its results are not there yet. Taking it for an end would
            # ask and pay for every document again.
            return JobPhase.ENDED if has_results else JobPhase.PENDING
        case "failed":
            # With files it got somewhere, and those answers are paid for.
            return JobPhase.ENDED if has_results else JobPhase.FAILED
        case "expired":
            return JobPhase.EXPIRED
        case "cancelled":
            return JobPhase.CANCELLED
    return JobPhase.PENDING


def _telling_error(errors: Iterable[WireError]) -> WireError | None:
    """The error that decides what to do: one about a limit or the account, else the first."""
    listed = list(errors)
    decisive = (error for error in listed if error.code in _QUEUE_CODES | ACCOUNT_CODES)
    return next(decisive, listed[0] if listed else None)


def _job_failure_kind(error: WireError | None) -> FailureKind:
    code = error.code or error.type if error else None
    if code in _QUEUE_CODES or code in _SERVER_CODES:
        return FailureKind.TRANSPORT
    if code in ACCOUNT_CODES:
        return FailureKind.ACCOUNT
    return FailureKind.MODEL if code is None else FailureKind.REJECTED


def decode_result(line: bytes) -> DecodedResult:
    """Translate one line of an output or error file. Raises `UndecodableResult`."""
    try:
        result = parse_result_line(line)
    except ValueError as unreadable:
        raise UndecodableResult(str(unreadable)) from None
    response = result.response or ResponseEnvelope()
    body = response.body or ChatBody()
    error = _as_error(result.error) or _as_error(body.error)
    outcome, text = _outcome(response, body, error)
    usage = body.usage
    return DecodedResult(
        custom_id=result.custom_id,
        outcome=outcome,
        text=_valid_unicode(text),
        http_status=response.status_code,
        request_id=response.request_id,
        model=body.model,
        usage=TokenUsage(usage.prompt_tokens, usage.completion_tokens) if usage else TokenUsage(),
        error_code=(error.code or error.type) if error else None,
        error_message=_valid_unicode(error.message) if error else None,
    )


def _as_error(error: WireError | str | None) -> WireError | None:
    """An error with content; servers also send null, "" and {} where there is none."""
    if isinstance(error, str):
        return WireError(message=error) if error else None
    return error if error is not None and (error.code or error.type or error.message) else None


def _outcome(
    response: ResponseEnvelope, body: ChatBody, error: WireError | None
) -> tuple[AnswerOutcome, str | None]:
    status = response.status_code
    if error is not None or (status is not None and not 200 <= status < 300):
        return _failure(status, error), None
    if not body.choices:
        return AnswerOutcome.ERRORED, None
    choice = body.choices[0]
    text, refusal = _said(choice.message or ChatMessage())
    match choice.finish_reason:
        case _ if refusal:
            return AnswerOutcome.REFUSED, refusal
        case "content_filter":
            return AnswerOutcome.BLOCKED, text
        case "length" | "max_tokens":
            return AnswerOutcome.TRUNCATED, text
        case "error":
            return AnswerOutcome.ERRORED, text
    if text is None or not text.strip():
        return AnswerOutcome.EMPTY, text
    return AnswerOutcome.COMPLETED, text


def _failure(status: int | None, error: WireError | None) -> AnswerOutcome:
    code = error.code or error.type if error else None
    if code in _LINE_CODES:
        return _LINE_CODES[code]
    if code in _BLOCKED_CODES:
        return AnswerOutcome.BLOCKED
    if status is None or 200 <= status < 300:
        # No HTTP answer: the batch itself could not serve the line.
        if code in ACCOUNT_CODES:
            return AnswerOutcome.ACCOUNT
        return AnswerOutcome.REJECTED if code == "invalid_request_error" else AnswerOutcome.ERRORED
    match failure_kind(status, code, ACCOUNT_CODES):
        case FailureKind.ACCOUNT:
            return AnswerOutcome.ACCOUNT
        case FailureKind.REJECTED:
            return AnswerOutcome.REJECTED
    return AnswerOutcome.ERRORED


def _said(message: ChatMessage) -> tuple[str | None, str | None]:
    """The message's text and refusal, given as strings or as parts."""
    if not isinstance(message.content, list):
        return message.content, message.refusal
    texts = [part.text for part in message.content if part.text is not None]
    refusals = [part.refusal for part in message.content if part.refusal]
    return "".join(texts) if texts else None, message.refusal or "".join(refusals) or None


def _valid_unicode(text: str | None) -> str | None:
    """The text with lone surrogates, which no UTF-8 can hold, replaced by U+FFFD."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
