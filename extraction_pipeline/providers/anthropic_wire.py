"""Anthropic's Message Batches API as it travels: the objects that are read, not what they mean.

Sources: Anthropic's published API description (a mirror of 2026-05-06) and batch guide, and
recorded payloads.
"""

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from extraction_pipeline.providers.wire import Count, Id, Lenient, OptionalId, Wire


def _in_utc(value: datetime) -> datetime:
    return value if value.tzinfo else value.replace(tzinfo=UTC)


Moment = Annotated[datetime, AfterValidator(_in_utc)]
"""RFC 3339, seen with `Z` and with `+00:00`."""


class WireError(Wire):
    """What went wrong. `message` may quote the request."""

    type: Lenient[str] = None
    message: Lenient[str] = Field(default=None, repr=False)


class ErrorBody(Wire):
    """The body of a failed call, and the error of one request, which nests in the same way."""

    error: Lenient[WireError] = None
    request_id: OptionalId = None
    type: Lenient[str] = None
    message: Lenient[str] = Field(default=None, repr=False)


class WireCounts(Wire):
    """Requests by their end. All but `processing` stay zero until the whole batch has ended."""

    processing: Lenient[Count] = None
    succeeded: Lenient[Count] = None
    errored: Lenient[Count] = None
    canceled: Lenient[Count] = None
    expired: Lenient[Count] = None


class WireBatch(Wire):
    """A message batch."""

    id: Id
    processing_status: str = Field(min_length=1)
    request_counts: Lenient[WireCounts] = None
    created_at: Lenient[Moment] = None
    ended_at: Lenient[Moment] = None
    expires_at: Lenient[Moment] = None
    archived_at: Lenient[Moment] = None
    results_url: OptionalId = None


class BatchPage(Wire):
    """One page of batches, the newest first. One that does not say whether more follow proves no
    absence."""

    data: list[WireBatch]
    has_more: bool


class ContentBlock(Wire):
    """One block of an answer: text, thinking, or the arguments of a tool."""

    type: Lenient[str] = None
    text: Lenient[str] = Field(default=None, repr=False)
    input: Lenient[dict[str, Any]] = Field(default=None, repr=False)


class WireUsage(Wire):
    """Tokens of one request; what was read from or written to a cache is counted apart."""

    input_tokens: Lenient[Count] = None
    cache_creation_input_tokens: Lenient[Count] = None
    cache_read_input_tokens: Lenient[Count] = None
    output_tokens: Lenient[Count] = None


class StopDetails(Wire):
    """More on why the answer ended, for refusals."""

    explanation: Lenient[str] = Field(default=None, repr=False)


class WireMessage(Wire):
    """The model's answer."""

    id: OptionalId = None
    model: Lenient[str] = None
    content: Lenient[list[ContentBlock]] = Field(default=None, repr=False)
    stop_reason: Lenient[str] = None
    stop_details: Lenient[StopDetails] = None
    usage: Lenient[WireUsage] = None


class WireResult(Wire):
    """How one request ended."""

    type: Lenient[str] = None
    message: Lenient[WireMessage] = None
    error: Lenient[ErrorBody] = None


class ResultLine(Wire):
    """One line of results."""

    custom_id: str = Field(min_length=1)
    result: Lenient[WireResult] = None
