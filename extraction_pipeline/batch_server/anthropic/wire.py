"""The bodies of Anthropic's message batches, as this server sends and takes them.

Shapes after Anthropic's API description. Fields without a value are null there, not left out.
"""

from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from extraction_pipeline.batch_server.records import Batch, BatchState

PATH = "/v1/messages/batches"

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_STATUSES: dict[BatchState, Literal["in_progress", "canceling", "ended"]] = {
    BatchState.VALIDATING: "in_progress",
    BatchState.IN_PROGRESS: "in_progress",
    BatchState.FINALIZING: "in_progress",
    BatchState.CANCELLING: "canceling",
}


class _Wire(BaseModel):
    model_config = ConfigDict(hide_input_in_errors=True)


class RequestCounts(_Wire):
    """Requests by how they ended. All are `processing` until the whole batch is at its end."""

    processing: int = 0
    succeeded: int = 0
    errored: int = 0
    canceled: int = 0
    expired: int = 0

    @classmethod
    def of(cls, batch: Batch) -> "RequestCounts":
        """The counts of a batch."""
        if not batch.state.is_end:
            return cls(processing=batch.total or 0)
        is_expired = batch.state is BatchState.EXPIRED
        return cls(
            succeeded=batch.tally.completed,
            errored=batch.tally.failed,
            canceled=0 if is_expired else batch.unserved,
            expired=batch.unserved if is_expired else 0,
        )


class MessageBatch(_Wire):
    """A batch."""

    id: str
    type: Literal["message_batch"] = "message_batch"
    processing_status: Literal["in_progress", "canceling", "ended"]
    request_counts: RequestCounts
    ended_at: str | None
    created_at: str
    expires_at: str
    archived_at: None = None
    cancel_initiated_at: str | None
    results_url: str | None

    @classmethod
    def of(cls, batch: Batch, base_url: str) -> "MessageBatch":
        """The wire's view of a batch, for a client that reaches the server at `base_url`."""
        cancelling_at = batch.reached.get(BatchState.CANCELLING)
        ended_at = batch.ended_at
        return cls(
            id=batch.id,
            processing_status=_STATUSES.get(batch.state, "ended"),
            request_counts=RequestCounts.of(batch),
            ended_at=None if ended_at is None else _time(ended_at),
            created_at=_time(batch.created_at),
            expires_at=_time(batch.expires_at),
            cancel_initiated_at=None if cancelling_at is None else _time(cancelling_at),
            results_url=f"{base_url.rstrip('/')}{PATH}/{batch.id}/results"
            if batch.state.is_end
            else None,
        )


class BatchPage(_Wire):
    """One page of batches."""

    data: list[MessageBatch]
    has_more: bool
    first_id: str | None
    last_id: str | None

    @classmethod
    def of(cls, data: list[MessageBatch], has_more: bool) -> "BatchPage":
        """A page of these."""
        return cls(
            data=data,
            has_more=has_more,
            first_id=data[0].id if data else None,
            last_id=data[-1].id if data else None,
        )


class DeletedBatch(_Wire):
    """The answer to a deletion."""

    id: str
    type: Literal["message_batch_deleted"] = "message_batch_deleted"


def error_body(status_code: int, message: str, request_id: str | None) -> dict[str, Any]:
    """Anthropic's form of an error, of a call and of one request."""
    default = "api_error" if status_code >= 500 else "invalid_request_error"
    kind = _ERROR_TYPES.get(status_code, default)
    return {
        "type": "error",
        "error": {"type": kind, "message": message},
        "request_id": request_id,
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
