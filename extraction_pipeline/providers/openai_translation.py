"""Between this project's types and OpenAI's wire format: pure functions.

Requests are chat completions with a strict JSON schema in `response_format`. Chat completions,
rather than the Responses API, because that is what every compatible server speaks too.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
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
from extraction_pipeline.providers.openai_wire import (
    ChatBody,
    ChatMessage,
    ErrorBody,
    ResponseEnvelope,
    ResultLine,
    WireBatch,
    WireError,
)
from extraction_pipeline.providers.request_line import checked_parameters, encoded_line
from extraction_pipeline.providers.schema_nodes import (
    require_closed_object,
    schema_nodes,
    unfit_schema,
)
from extraction_pipeline.providers.wire import parse_line, valid_unicode

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
_SCHEMA_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")

MOST_LEVELS = 10
MOST_PROPERTIES = 5_000
MOST_ENUM_VALUES = 1_000
MOST_CHARACTERS = 120_000
"""Limits of a strict schema, as in OpenAI's guide to structured outputs (2026)."""


def check_schema(schema_name: str, json_schema: Mapping[str, Any]) -> None:
    """Refuse a schema beyond what OpenAI's guide to structured outputs allows.

    Raises `ConfigurationError` with the name of the field.
    """
    if not _SCHEMA_NAME.fullmatch(schema_name):
        raise unfit_schema(
            "OpenAI", schema_name, "its name", "is not 1 to 64 of A-Z, a-z, 0-9, _ and -"
        )
    properties = values = characters = 0
    for node in schema_nodes("OpenAI", schema_name, json_schema):
        require_closed_object("OpenAI", schema_name, node)
        names, enum = node.schema.get("properties", ()), node.schema.get("enum", ())
        properties += len(names)
        values += len(enum)
        characters += sum(len(str(text)) for text in (*names, *enum))
        for count, most, what in (
            (node.level, MOST_LEVELS, "levels"),
            (properties, MOST_PROPERTIES, "properties"),
            (values, MOST_ENUM_VALUES, "enum values"),
            (characters, MOST_CHARACTERS, "characters of names and enum values"),
        ):
            if count > most:
                reason = f"goes past the {most:,} {what} that a schema may have"
                raise unfit_schema("OpenAI", schema_name, node.field, reason)


def encode_request(request: ModelRequest) -> bytes:
    """One input line, without its newline.

    Raises `ConfigurationError` for a parameter that this module sets itself, or text that is no
    valid Unicode.
    """
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
        **checked_parameters(request, _RESERVED),
    }
    line = {
        "custom_id": request.custom_id,
        "method": "POST",
        "url": CHAT_COMPLETIONS,
        "body": body,
    }
    return encoded_line(line, request.custom_id)


def read_error_code(body: bytes) -> str | None:
    """The code, else the type, in the body of a failed call; `None` if it has none."""
    try:
        error = ErrorBody.model_validate_json(body).error
    except ValueError:
        return None
    return error.code or error.type


def read_error(status: int, headers: Mapping[str, str], body: bytes) -> ErrorReading:
    """What a failed call says; a lack of credit is told by the code, under 429 or any status."""
    code = read_error_code(body)
    return ErrorReading(code, FailureKind.ACCOUNT if code in ACCOUNT_CODES else None)


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
        result = parse_line(line, ResultLine, "custom_id")
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
        text=valid_unicode(text),
        http_status=response.status_code,
        request_id=response.request_id,
        model=body.model,
        usage=TokenUsage(usage.prompt_tokens, usage.completion_tokens) if usage else TokenUsage(),
        error_code=(error.code or error.type) if error else None,
        error_message=valid_unicode(error.message) if error else None,
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
