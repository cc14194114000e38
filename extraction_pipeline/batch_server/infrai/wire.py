"""The bodies of Infrai's batches, as this server sends and takes them.

Documented by the vendor are the envelope, the path and parameters of `submit`, what it gives, that
`status` gives a status, a progress and counts, and the shape of discovery. Everything else is a
choice of this server, and all choices are in this module:

- the words for states (`BATCH_STATES`), and that `status` calls them `status` as `submit` does
  `state`;
- the items of results: where a request stood in the batch, the `custom_id` and `metadata` that it
  carried, if any, and a chat completion, or an error;
- error codes, and that an error has its own HTTP status, with `ok` false in the envelope;
- what is remembered of an idempotency key, and for how long (`IDEMPOTENCY_SECONDS`); without a key
  every call makes a batch of its own, which is the worst that can happen to a client.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, field_validator

from extraction_pipeline.batch_server.calls import Call
from extraction_pipeline.batch_server.records import Batch, BatchState
from extraction_pipeline.batch_server.result_lines import CANCELLED_CODE, EXPIRED_CODE

SUBMIT_PATH = "/v1/ai/batch/submit"
STATUS_PATH = "/v1/ai/batch/status/{id}"
RESULTS_PATH = "/v1/ai/batch/results/{id}"
CANCEL_PATH = "/v1/ai/batch/cancel/{id}"
CHAT_CAPABILITIES = frozenset({"ai.chat", "ai.chat.completions"})
"""What an item of a batch may ask for."""
IDEMPOTENCY_HEADER = "idempotency-key"
IDEMPOTENCY_SECONDS = 24 * 3600.0
VENDOR = "local"

BATCH_STATES = {
    BatchState.VALIDATING: "queued",
    BatchState.IN_PROGRESS: "processing",
    BatchState.FINALIZING: "processing",
    BatchState.CANCELLING: "cancelling",
    BatchState.COMPLETED: "completed",
    BatchState.FAILED: "failed",
    BatchState.EXPIRED: "expired",
    BatchState.CANCELLED: "cancelled",
}

CONFLICT = "IDEMPOTENCY_CONFLICT"
NOT_FINISHED = "BATCH_NOT_FINISHED"
ENDED = "BATCH_ENDED"
_CODES = {
    400: "VALIDATION_ERROR",
    401: "UNAUTHORIZED",
    402: "INSUFFICIENT_CREDIT",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    409: "CONFLICT",
    413: "PAYLOAD_TOO_LARGE",
    429: "RATE_LIMITED",
}
_UNSERVED = {EXPIRED_CODE: "EXPIRED", CANCELLED_CODE: "CANCELLED"}
_HINTS = {
    CONFLICT: "Use a new key for another batch.",
    NOT_FINISHED: "Ask for the status until it is an end.",
    "UNAUTHORIZED": "Send the key as Authorization: Bearer.",
    "PAYLOAD_TOO_LARGE": "Send it as several batches.",
}
_RETRYABLE = frozenset({NOT_FINISHED})


class _Taken(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class BatchRequestItem(_Taken):
    """One request. `custom_id` is not documented by the vendor; it is taken, and given back."""

    capability: str
    body: dict[str, Any] = Field(repr=False)
    custom_id: Annotated[str, Field(max_length=512)] | None = None


class SubmitOptions(_Taken):
    """What stands beside the requests in the body of `submit`."""

    batch_timeout: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,5}[smhd]$")] | None = None
    metadata: dict[str, Any] | None = None
    idempotency_key: Annotated[str, Field(min_length=1, max_length=255)] | None = None

    @field_validator("metadata")
    @classmethod
    def _can_be_given_back(cls, metadata: dict[str, Any] | None) -> dict[str, Any] | None:
        try:
            orjson.dumps(metadata)
        except TypeError:
            raise ValueError("it holds what JSON in UTF-8 cannot") from None
        return metadata


_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def timeout_seconds(text: str) -> float:
    """The seconds that a `batch_timeout` such as `24h` stands for."""
    return int(text[:-1]) * _SECONDS[text[-1]]


def envelope(call: Call, data: Mapping[str, Any] | None) -> dict[str, Any]:
    """The form of every answer. Nothing costs anything here."""
    return {"ok": True, "data": data, "error": None, "metadata": _metadata(call)}


def error_body(call: Call, status_code: int, message: str, code: str | None) -> dict[str, Any]:
    """The form of an error of a call. `code` is one of this module's, or none."""
    own = code if code in (CONFLICT, NOT_FINISHED, ENDED) else code_of(status_code)
    return {
        "ok": False,
        "data": None,
        "error": error_of(own, message, status_code),
        "metadata": _metadata(call),
    }


def error_of(code: str, message: str, status_code: int) -> dict[str, Any]:
    """The error of a call or of one request."""
    retryable = code in _RETRYABLE or status_code == 429 or status_code >= 500
    return {"code": code, "message": message, "hint": _HINTS.get(code), "retryable": retryable}


def item_error(status_code: int | None, code: str | None, message: str) -> dict[str, Any]:
    """The error of one request: without a status no answer came about, and `code` says why."""
    if status_code is None:
        return error_of(_UNSERVED.get(code or "", "INTERNAL_ERROR"), message, 500)
    return error_of(code_of(status_code), message, status_code)


def submitted(batch: Batch) -> dict[str, Any]:
    """The data of `submit`."""
    return {
        "batch_id": batch.id,
        "state": BATCH_STATES[batch.state],
        "total_count": batch.total,
        "estimated_eta": None,
        "estimated_cost_usd": 0.0,
    }


def status(batch: Batch) -> dict[str, Any]:
    """The data of `status` and `cancel`. Requests without an answer at the end count as failed."""
    total = batch.total or 0
    unserved = batch.unserved if batch.state.is_end else 0
    done = batch.tally.answered + unserved
    ended_at = batch.ended_at
    return {
        "batch_id": batch.id,
        "status": BATCH_STATES[batch.state],
        "progress": done / total if total else 0.0,
        "total_count": total,
        "completed_count": batch.tally.completed,
        "failed_count": batch.tally.failed + unserved,
        "created_at": _time(batch.created_at),
        "expires_at": _time(batch.expires_at),
        "ended_at": None if ended_at is None else _time(ended_at),
        "metadata": batch.asked.metadata,
    }


def code_of(status_code: int) -> str:
    """The code of errors of this HTTP status, where there is no more exact one."""
    return _CODES.get(status_code, "INTERNAL_ERROR" if status_code >= 500 else "VALIDATION_ERROR")


def _metadata(call: Call) -> dict[str, Any]:
    return {
        "cost_usd": 0.0,
        "latency_ms": call.milliseconds,
        "vendor": VENDOR,
        "cache_hit": False,
        "request_id": call.request_id,
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
