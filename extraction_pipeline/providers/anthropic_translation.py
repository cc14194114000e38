"""Between this project's types and Anthropic's wire format: pure functions."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from extraction_pipeline.providers.anthropic_wire import (
    ContentBlock,
    ErrorBody,
    ResultLine,
    WireBatch,
    WireCounts,
    WireError,
    WireMessage,
    WireResult,
    WireUsage,
)
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
from extraction_pipeline.providers.endpoint import AnthropicOutput
from extraction_pipeline.providers.request_line import checked_parameters, encoded_line
from extraction_pipeline.providers.schema_nodes import (
    require_closed_object,
    schema_nodes,
    unfit_schema,
)
from extraction_pipeline.providers.wire import parse_line, valid_unicode

MOST_UNIONS = 16
"""Properties with a choice of types that one schema may hold, as in Anthropic's guide to structured
outputs (2026). Nothing says whether a definition that is used twice counts twice; it counts once
here, and `AnthropicOutput.TOOL` is the way out where the live API counts otherwise."""

ACCOUNT_CODES = frozenset({"authentication_error", "billing_error", "permission_error"})
_REJECTING_CODES = frozenset(
    {"invalid_request_error", "not_found_error", "request_too_large", "conflict_error"}
)
_ACCOUNT_WORDS = re.compile(
    r"credit balance is too low|API usage limit|spend(?:ing)? limit", re.IGNORECASE
)
"""A lack of credit and a spend limit come as `invalid_request_error`; only the text tells."""
_RESERVED = frozenset(
    {"model", "messages", "system", "max_tokens", "output_config", "stream", "tools", "tool_choice"}
)


def check_schema(schema_name: str, json_schema: Mapping[str, Any], output: AnthropicOutput) -> None:
    """Refuse a schema that Anthropic refuses. Raises `ConfigurationError` with the field's name."""
    for node in schema_nodes("Anthropic", schema_name, json_schema):
        require_closed_object("Anthropic", schema_name, node)
    if output is AnthropicOutput.TOOL:
        return
    unions = list(_union_fields("", json_schema))
    for name, definition in json_schema.get("$defs", {}).items():
        unions += _union_fields(name, definition)
    if len(unions) > MOST_UNIONS:
        raise unfit_schema(
            "Anthropic",
            schema_name,
            unions[MOST_UNIONS],
            f"is past the {MOST_UNIONS} fields that may be null or of several types",
            "Make fewer fields optional, or set EXTRACTION_ANTHROPIC_OUTPUT=tool.",
        )


def _union_fields(path: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """The fields of several types, references not followed."""
    if "anyOf" in schema or isinstance(schema.get("type"), list):
        yield path
    for name, inner in schema.get("properties", {}).items():
        yield from _union_fields(f"{path}.{name}" if path else name, inner)
    if "items" in schema:
        yield from _union_fields(path, schema["items"])
    for option in schema.get("anyOf", ()):
        yield from _union_fields(path, option)


def encode_request(request: ModelRequest, output: AnthropicOutput) -> bytes:
    """One element of a batch's `requests`, without newline.

    Raises `ConfigurationError` for a parameter that this module sets itself, or text that is no
    valid Unicode.
    """
    params: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens,
        "system": request.instructions,
        "messages": [{"role": "user", "content": request.document}],
    }
    if output is AnthropicOutput.TOOL:
        params["tools"] = [{"name": request.schema_name, "input_schema": request.json_schema}]
        params["tool_choice"] = {"type": "tool", "name": request.schema_name}
    else:
        params["output_config"] = {"format": {"type": "json_schema", "schema": request.json_schema}}
    params |= checked_parameters(request, _RESERVED)
    return encoded_line({"custom_id": request.custom_id, "params": params}, request.custom_id)


def read_error(status: int, headers: Mapping[str, str], body: bytes) -> ErrorReading:
    """What a failed call says.

    A 429 that names no time to come back is a limit on the month's spending and does not pass by
    itself; a lack of credit also comes as 400, told by its text alone.
    """
    try:
        error = ErrorBody.model_validate_json(body).error or WireError()
    except ValueError:
        return ErrorReading()
    comes_back = "retry-after" in headers or "retry-after-ms" in headers
    at_fault = (
        error.type in ACCOUNT_CODES
        or _is_out_of_credit(error)
        or (status == 429 and error.type == "rate_limit_error" and not comes_back)
    )
    return ErrorReading(error.type, FailureKind.ACCOUNT if at_fault else None)


def _is_out_of_credit(error: WireError) -> bool:
    return error.type == "invalid_request_error" and bool(
        _ACCOUNT_WORDS.search(error.message or "")
    )


def job_status(batch: WireBatch, call: CallRecord) -> JobStatus:
    """One reading of a batch. Its one end state says nothing of how it ended; the counts do."""
    counts = batch.request_counts or WireCounts()
    phase = _phase(batch, counts)
    served = batch.results_url is not None and phase.is_end
    return JobStatus(
        job_id=batch.id,
        phase=phase,
        provider_state=batch.processing_status,
        counts=RequestCounts(
            total=total_count(batch),
            completed=counts.succeeded,
            failed=_sum(counts.errored, counts.canceled, counts.expired),
        ),
        results=(ResultReference(ResultKind.OUTPUT, batch.id),) if served else (),
        call=call,
        ended_at=batch.ended_at if phase.is_end else None,
        expires_at=batch.expires_at,
    )


def total_count(batch: WireBatch) -> int | None:
    """How many requests the batch holds: its counts always add up to it."""
    counts = batch.request_counts or WireCounts()
    return _sum(
        counts.processing, counts.succeeded, counts.errored, counts.canceled, counts.expired
    )


def may_hold(batch: WireBatch, requests: int) -> bool:
    """Whether this may be a batch of so many requests.

    No counter exceeds what a batch holds. At the end they add up to it; while it runs they may be
    of different moments, and where one is missing or odd they may fall short of it.
    """
    counts = batch.request_counts or WireCounts()
    each = (
        counts.processing,
        counts.succeeded,
        counts.errored,
        counts.canceled,
        counts.expired,
    )
    known = [count for count in each if count is not None]
    if batch.processing_status == "ended" and len(known) == len(each):
        return sum(known) == requests
    return max(known, default=0) <= requests


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _phase(batch: WireBatch, counts: WireCounts) -> JobPhase:
    if batch.processing_status != "ended":
        return JobPhase.PENDING
    total = total_count(batch)
    if total and counts.canceled == total:
        return JobPhase.CANCELLED
    if total and counts.expired == total:
        return JobPhase.EXPIRED
    if batch.results_url is None and batch.archived_at is None:
        # Its results are not there yet. Taking this for the end would ask and pay for all again.
        return JobPhase.PENDING
    return JobPhase.ENDED


def decode_result(line: bytes) -> DecodedResult:
    """Translate one line of results. Raises `UndecodableResult`."""
    try:
        parsed = parse_line(line, ResultLine, "custom_id")
    except ValueError as unreadable:
        raise UndecodableResult(str(unreadable)) from None
    result = parsed.result or WireResult()
    envelope = result.error or ErrorBody()
    error = envelope.error or WireError(type=envelope.type, message=envelope.message)
    message = result.message or WireMessage()
    outcome, text = _outcome(result, message, error)
    return DecodedResult(
        custom_id=parsed.custom_id,
        outcome=outcome,
        text=valid_unicode(text),
        http_status=None,
        request_id=message.id or envelope.request_id,
        model=message.model,
        usage=_usage(message.usage),
        error_code=error.type,
        error_message=valid_unicode(error.message),
    )


def _outcome(
    result: WireResult, message: WireMessage, error: WireError
) -> tuple[AnswerOutcome, str | None]:
    match result.type:
        case "canceled" | "cancelled":
            return AnswerOutcome.CANCELLED, None
        case "expired":
            return AnswerOutcome.EXPIRED, None
        case "succeeded" if result.message is not None:
            return _answered(message)
    if error.type in ACCOUNT_CODES or _is_out_of_credit(error):
        return AnswerOutcome.ACCOUNT, None
    if error.type in _REJECTING_CODES:
        return AnswerOutcome.REJECTED, None
    return AnswerOutcome.ERRORED, None


def _answered(message: WireMessage) -> tuple[AnswerOutcome, str | None]:
    text = _said(message.content or [])
    match message.stop_reason:
        case "refusal":
            explanation = message.stop_details.explanation if message.stop_details else None
            return AnswerOutcome.REFUSED, text or explanation
        case "max_tokens" | "model_context_window_exceeded":
            return AnswerOutcome.TRUNCATED, text
        case "pause_turn":
            return AnswerOutcome.ERRORED, text  # half an answer, which a batch cannot go on with
    if text is None or not text.strip():
        return AnswerOutcome.EMPTY, text
    return AnswerOutcome.COMPLETED, text


def _said(content: Iterable[ContentBlock]) -> str | None:
    """The answer: the arguments of the tool if one was called, else the text without thinking."""
    blocks = list(content)
    for block in blocks:
        if block.type == "tool_use" and block.input is not None:
            return json.dumps(block.input)
    texts = [block.text for block in blocks if block.type == "text" and block.text is not None]
    return "".join(texts) if texts else None


def _usage(usage: WireUsage | None) -> TokenUsage:
    if usage is None:
        return TokenUsage()
    return TokenUsage(
        input_tokens=_sum(
            usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens
        ),
        output_tokens=usage.output_tokens,
    )
