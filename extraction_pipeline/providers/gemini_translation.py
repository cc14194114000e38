"""Between this project's types and Gemini's wire format: pure functions.

Request lines use the names of the protocol's own definition (`generation_config`), as the guide
does for files; the properties of a schema keep their names.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
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
from extraction_pipeline.providers.endpoint import GeminiSchemaField
from extraction_pipeline.providers.gemini_schema import check_depth, gemini_schema
from extraction_pipeline.providers.gemini_wire import (
    ErrorBody,
    ResultLine,
    WireError,
    WireMetadata,
    WireOperation,
    WireOutput,
    WireResponse,
    WireStats,
    WireUsage,
)
from extraction_pipeline.providers.http_failures import failure_kind
from extraction_pipeline.providers.request_line import checked_parameters, encoded_line
from extraction_pipeline.providers.wire import parse_line, valid_unicode

INLINE = "inline"
"""What the reference of results that lie in the batch itself begins with: `inline:batches/id`."""

LONGEST_LIFE = timedelta(hours=48)
"""After this a batch expires, as Google's guide says."""

_RESERVED = frozenset(
    {
        *("response_mime_type", "response_schema", "response_json_schema", "max_output_tokens"),
        *("responseMimeType", "responseSchema", "responseJsonSchema", "maxOutputTokens"),
        *("candidate_count", "candidateCount"),
    }
)
_ACCOUNT_STATUSES = frozenset({"PERMISSION_DENIED", "UNAUTHENTICATED", "FAILED_PRECONDITION"})
_ACCOUNT_REASONS = frozenset({"API_KEY_INVALID", "API_KEY_EXPIRED", "BILLING_DISABLED"})

# The codes of google.rpc, which batches and their requests bear.
_CANCELLED, _INVALID_ARGUMENT, _NOT_FOUND = 1, 3, 5
_PERMISSION_DENIED, _FAILED_PRECONDITION, _UNAUTHENTICATED = 7, 9, 16
_OUT_OF_RANGE, _UNIMPLEMENTED = 11, 12
_REJECTING = frozenset({_INVALID_ARGUMENT, _NOT_FOUND, _OUT_OF_RANGE, _UNIMPLEMENTED})
_ACCOUNT = frozenset({_PERMISSION_DENIED, _FAILED_PRECONDITION, _UNAUTHENTICATED})

_TRUNCATED = frozenset({"MAX_TOKENS"})
_BLOCKED = frozenset(
    {
        *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"),
        *("IMAGE_SAFETY", "MODEL_ARMOR"),
    }
)
_BROKEN = frozenset({"OTHER", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"})


def check_schema(
    schema_name: str, json_schema: Mapping[str, Any], place: GeminiSchemaField
) -> None:
    """Refuse a schema that Gemini cannot take. Raises `ConfigurationError` naming the field."""
    if place is GeminiSchemaField.RESPONSE_SCHEMA:
        gemini_schema(schema_name, json_schema)
    else:
        check_depth(schema_name, json_schema)


def encode_request(request: ModelRequest, place: GeminiSchemaField) -> bytes:
    """One line of a batch's file, without its newline.

    The request's parameters go into its `generation_config`. Raises `ConfigurationError` for those
    that this module sets itself, for a schema that cannot be converted, and for text that is no
    valid Unicode.
    """
    schema = request.json_schema
    if place is GeminiSchemaField.RESPONSE_SCHEMA:
        schema = gemini_schema(request.schema_name, schema)
    body: dict[str, Any] = {
        "contents": [{"role": "user", "parts": [{"text": request.document}]}],
        "generation_config": {
            "response_mime_type": "application/json",
            place.value: schema,
            "max_output_tokens": request.max_output_tokens,
            **checked_parameters(request, _RESERVED),
        },
    }
    if request.instructions.strip():  # an empty one is refused
        body["system_instruction"] = {"parts": [{"text": request.instructions}]}
    return encoded_line({"key": request.custom_id, "request": body}, request.custom_id)


def read_error(status: int, headers: Mapping[str, str], body: bytes) -> ErrorReading:
    """What a failed call says: its status word, and a time to come back where a detail names one.

    An invalid key comes as 400 with a reason, and so does a project without billing; depleted
    credit is 402, told by the status.
    """
    try:
        error = ErrorBody.model_validate_json(body).error
    except ValueError:
        return ErrorReading()
    details = error.details or []
    at_fault = error.status in _ACCOUNT_STATUSES or any(
        detail.reason in _ACCOUNT_REASONS for detail in details
    )
    delays = [_seconds(detail.retry_delay) for detail in details if detail.retry_delay]
    return ErrorReading(
        code=error.status,
        kind=FailureKind.ACCOUNT if at_fault else None,
        retry_after=next((delay for delay in delays if delay is not None), None),
    )


def _seconds(duration: str) -> float | None:
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,9})?)s", duration)
    return float(match.group(1)) if match else None


def job_status(operation: WireOperation, call: CallRecord) -> JobStatus:
    """One reading of a batch. An unknown state is pending unless the operation says it is done."""
    metadata = operation.metadata or WireMetadata()
    stats = metadata.batch_stats
    results = _results(operation)
    phase = _phase(operation, has_results=bool(results))
    error = operation.error
    return JobStatus(
        job_id=operation.name,
        phase=phase,
        provider_state=provider_state(operation),
        counts=_counts(stats) if stats else RequestCounts(),
        results=results if phase.is_end else (),
        call=call,
        error_code=_code_name(error) if error else None,
        error_message=error.message if error else None,
        failure_kind=_job_failure_kind(error) if phase is JobPhase.FAILED else None,
        ended_at=metadata.end_time if phase.is_end else None,
        expires_at=metadata.create_time + LONGEST_LIFE if metadata.create_time else None,
    )


def provider_state(operation: WireOperation) -> str:
    """The state as Gemini writes it."""
    metadata = operation.metadata or WireMetadata()
    return metadata.state or operation.state or "BATCH_STATE_UNSPECIFIED"


def _counts(stats: WireStats) -> RequestCounts:
    """Counts that are left out are zero."""
    return RequestCounts(
        total=stats.request_count or 0,
        completed=stats.successful_request_count or 0,
        failed=stats.failed_request_count or 0,
    )


def _results(operation: WireOperation) -> tuple[ResultReference, ...]:
    """A file where there is one; a job of few requests may answer inline instead."""
    mirrored = operation.metadata.output if operation.metadata else None
    output = operation.response or mirrored or WireOutput()
    if output.responses_file is not None:
        return (ResultReference(ResultKind.OUTPUT, output.responses_file),)
    if output.inlined_responses is not None and output.inlined_responses.inlined_responses:
        return (ResultReference(ResultKind.OUTPUT, f"{INLINE}:{operation.name}"),)
    return ()


def _phase(operation: WireOperation, *, has_results: bool) -> JobPhase:
    state = provider_state(operation).removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
    match state:
        case "SUCCEEDED" | "PARTIALLY_SUCCEEDED":
            # It says so before its file is there. Taken for the end, all would be asked again.
            return JobPhase.ENDED if has_results else JobPhase.PENDING
        case "FAILED":
            return JobPhase.ENDED if has_results else JobPhase.FAILED
        case "CANCELLED":
            return JobPhase.CANCELLED
        case "EXPIRED":
            return JobPhase.EXPIRED
    if operation.done is not True:
        return JobPhase.PENDING
    if has_results:
        return JobPhase.ENDED
    if operation.error is None:
        return JobPhase.PENDING
    return JobPhase.CANCELLED if operation.error.code == _CANCELLED else JobPhase.FAILED


def _job_failure_kind(error: WireError | None) -> FailureKind:
    if error is None or error.code is None:
        return FailureKind.MODEL
    if error.code >= 100:
        return failure_kind(error.code, None, frozenset())
    if error.code in _ACCOUNT:
        return FailureKind.ACCOUNT
    return FailureKind.REJECTED if error.code in _REJECTING else FailureKind.TRANSPORT


def _code_name(error: WireError) -> str | None:
    return error.status or (None if error.code is None else str(error.code))


def decode_result(line: bytes) -> DecodedResult:
    """Translate one result, of a file or inline. Raises `UndecodableResult`."""
    try:
        result = parse_line(line, ResultLine, "key")
    except ValueError as unreadable:
        raise UndecodableResult(str(unreadable)) from None
    keys = {key for key in (result.key, result.metadata and result.metadata.key) if key}
    if len(keys) != 1:
        raise UndecodableResult("A result line cannot be read: it names no request, or two.")
    error = result.error if result.error and result.error != WireError() else None
    outcome, text = _outcome(result.response, error)
    response = result.response or WireResponse()
    return DecodedResult(
        custom_id=keys.pop(),
        outcome=outcome,
        text=valid_unicode(text),
        http_status=None,
        request_id=response.response_id,
        model=response.model_version,
        usage=_usage(response.usage_metadata),
        error_code=_code_name(error) if error else None,
        error_message=valid_unicode(error.message) if error else None,
    )


def _outcome(
    response: WireResponse | None, error: WireError | None
) -> tuple[AnswerOutcome, str | None]:
    if response is None or (error is not None and not response.candidates):
        return _failure(error or WireError()), None
    if not response.candidates:
        blocked = response.prompt_feedback is not None and response.prompt_feedback.block_reason
        return AnswerOutcome.BLOCKED if blocked else AnswerOutcome.EMPTY, None
    candidate = response.candidates[0]
    parts = (candidate.content.parts if candidate.content else None) or []
    texts = [part.text for part in parts if part.text is not None and not part.thought]
    text = "".join(texts) if texts else None
    reason = candidate.finish_reason
    if reason in _TRUNCATED:
        return AnswerOutcome.TRUNCATED, text
    if reason in _BLOCKED:
        return AnswerOutcome.BLOCKED, text
    if reason in _BROKEN:
        return AnswerOutcome.ERRORED, text
    if text is None or not text.strip():
        return AnswerOutcome.EMPTY, text
    return AnswerOutcome.COMPLETED, text


def _failure(error: WireError) -> AnswerOutcome:
    code = error.code
    if code == _CANCELLED:
        return AnswerOutcome.CANCELLED
    if code is None:
        return AnswerOutcome.ERRORED
    match _job_failure_kind(error):
        case FailureKind.ACCOUNT:
            return AnswerOutcome.ACCOUNT
        case FailureKind.REJECTED:
            return AnswerOutcome.REJECTED
    return AnswerOutcome.ERRORED


def _usage(usage: WireUsage | None) -> TokenUsage:
    """Thoughts are paid for as output; counts that are left out are zero."""
    if usage is None:
        return TokenUsage()
    return TokenUsage(
        input_tokens=usage.prompt_token_count or 0,
        output_tokens=(usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0),
    )
