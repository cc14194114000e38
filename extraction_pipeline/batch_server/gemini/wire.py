"""The bodies of Gemini's batches and files, as this server sends and takes them.

Google's rules for JSON: both spellings of a name are taken, camelCase is sent, 64-bit integers are
strings, and fields with a zero, an empty text or `false` are left out.
"""

import base64
from datetime import UTC, datetime
from typing import Any

from pydantic import AliasGenerator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from extraction_pipeline.batch_server.records import Batch, BatchState, StoredFile
from extraction_pipeline.batch_server.results import SLOT

BAD_KEY = "API_KEY_INVALID"
FAILED_PRECONDITION = "FAILED_PRECONDITION"
_TYPES = "type.googleapis.com/google.ai.generativelanguage.v1main"
_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
_CANCELLED_WITHOUT_RESULTS = 13
_DEADLINE_EXCEEDED = 4

_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "RESOURCE_EXHAUSTED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class Taken(BaseModel):
    """A body that clients send: closed, as Google's are."""

    model_config = ConfigDict(
        alias_generator=AliasGenerator(validation_alias=to_camel),
        populate_by_name=True,
        extra="forbid",
        hide_input_in_errors=True,
    )


class _InputConfig(Taken):
    file_name: str | None = None
    requests: dict[str, Any] | None = Field(None, repr=False)


class _BatchResource(Taken):
    display_name: str = ""
    input_config: _InputConfig
    model: str | None = None
    priority: int | str | None = None


class CreateBatch(Taken):
    """The body of `batchGenerateContent`, with or without its inline requests. `model` and
    `priority` change nothing here: the path names the model, and batches take turns."""

    batch: _BatchResource


class InlineRequest(Taken):
    """One request in the body of a batch; `metadata` comes back with its result."""

    request: dict[str, Any] = Field(repr=False)
    metadata: dict[str, Any] | None = None


class FileLine(Taken):
    """One request in an uploaded file; `key` comes back with its result."""

    request: dict[str, Any] = Field(repr=False)
    key: str | None = None


class _FileResource(Taken):
    display_name: str = ""
    mime_type: str | None = None
    size_bytes: int | str | None = None
    name: str | None = None


class CreateFile(Taken):
    """The body of the first call of an upload."""

    file: _FileResource = _FileResource()


def batch_state(batch: Batch) -> str:
    """Where a batch stands, in Gemini's words.

    One that was cancelled when some of its requests had answers succeeds, with errors in the place
    of the rest: so recorded of the real service, as is the other case.
    """
    match batch.state:
        case BatchState.VALIDATING:
            state = "PENDING"
        case BatchState.IN_PROGRESS | BatchState.FINALIZING | BatchState.CANCELLING:
            state = "RUNNING"
        case BatchState.COMPLETED:
            state = "SUCCEEDED"
        case BatchState.CANCELLED:
            state = "SUCCEEDED" if batch.tally.answered else "CANCELLED"
        case BatchState.FAILED:
            state = "FAILED"
        case BatchState.EXPIRED:
            state = "EXPIRED"
    return f"BATCH_STATE_{state}"


def has_results(batch: Batch) -> bool:
    """Whether results can be fetched: of an expired batch there are none, whatever was done."""
    return batch_state(batch) == "BATCH_STATE_SUCCEEDED"


def operation(batch: Batch, *, inline: bool = True) -> dict[str, Any]:
    """The wire's view of a batch. Its inline results are a `SLOT`, or left out without `inline`."""
    output = _output(batch, inline=inline) if has_results(batch) else None
    error = _error(batch)
    parts = {
        "name": f"batches/{batch.id}",
        "metadata": _metadata(batch, output),
        "done": batch.state.is_end,
        "error": error,
        "response": output,
    }
    return _without_defaults(parts)


def _metadata(batch: Batch, output: dict[str, Any] | None) -> dict[str, Any]:
    ended_at = batch.ended_at
    changed_at = max(batch.created_at, *batch.reached.values(), batch.created_at)
    source = batch.asked.source_file_id
    return _without_defaults(
        {
            "@type": f"{_TYPES}.GenerateContentBatch",
            "model": batch.asked.endpoint.rpartition(":")[0],
            "displayName": batch.asked.job_key,
            "inputConfig": None if source is None else {"fileName": f"files/{source}"},
            "output": output,
            "createTime": _time(batch.created_at),
            "endTime": None if ended_at is None else _time(ended_at),
            "updateTime": _time(changed_at),
            "batchStats": _stats(batch),
            "state": batch_state(batch),
            "name": f"batches/{batch.id}",
        }
    )


def _stats(batch: Batch) -> dict[str, str]:
    unserved_failed = batch.unserved if has_results(batch) else 0
    counts = {
        "requestCount": batch.total or 0,
        "pendingRequestCount": batch.unserved - unserved_failed,
        "successfulRequestCount": batch.tally.completed,
        "failedRequestCount": batch.tally.failed + unserved_failed,
    }
    return {name: str(count) for name, count in counts.items() if count}


def _output(batch: Batch, *, inline: bool) -> dict[str, Any]:
    output: dict[str, Any] = {"@type": f"{_TYPES}.GenerateContentBatchOutput"}
    if batch.asked.source_file_id is not None:
        output["responsesFile"] = f"files/{result_file_id(batch.id)}"
    elif inline:
        output["inlinedResponses"] = {"inlinedResponses": SLOT}
    return output


def _error(batch: Batch) -> dict[str, Any] | None:
    if not batch.state.is_end or has_results(batch):
        return None
    if batch.state is BatchState.EXPIRED:
        return {"code": _DEADLINE_EXCEEDED, "message": "The batch expired."}
    return {"code": _CANCELLED_WITHOUT_RESULTS, "message": "The batch was cancelled."}


def result_file_id(batch_id: str) -> str:
    """The id of the file with a batch's results."""
    return f"batch-{batch_id}"


def file_resource(file: StoredFile, base_url: str) -> dict[str, Any]:
    """The wire's view of an uploaded file."""
    name = f"files/{file.id}"
    created_at = _time(file.created_at)
    return _without_defaults(
        {
            "name": name,
            "displayName": file.filename,
            "mimeType": file.media_type,
            "sizeBytes": str(file.size),
            "createTime": created_at,
            "updateTime": created_at,
            "sha256Hash": base64.b64encode((file.sha256 or "").encode()).decode(),
            "uri": f"{base_url.rstrip('/')}/v1beta/{name}",
            "state": "ACTIVE",
            "source": "UPLOADED",
        }
    )


def error_body(status_code: int, message: str, code: str | None) -> dict[str, Any]:
    """Google's form of an error of a call. `code` is another status than that of the number, or
    the reason why a key is refused."""
    status = _STATUSES.get(status_code, "INTERNAL" if status_code >= 500 else "INVALID_ARGUMENT")
    error: dict[str, Any] = {"code": status_code, "message": message, "status": status}
    if code == BAD_KEY:
        error["details"] = [{"@type": _ERROR_INFO, "reason": BAD_KEY, "domain": "googleapis.com"}]
    elif code is not None:
        error["status"] = code
    return {"error": error}


def _without_defaults(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def _time(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}000Z"
