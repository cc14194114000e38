"""Google's Gemini Batch API as it travels: the objects that are read, not what they mean.

Names come in camel case and, in some places, in snake case; both are read. Counts are strings, and
what is zero or false is left out.

Sources: Google's batch and files guides (2026-07), the names of its public discovery document, and
recorded payloads.
"""

from datetime import datetime
from typing import Any

from pydantic import AwareDatetime, ConfigDict, Field
from pydantic.alias_generators import to_camel

from extraction_pipeline.providers.wire import Count, Id, Lenient, OptionalId, Wire


class GeminiWire(Wire):
    """Base of what Gemini sends."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class ErrorDetail(GeminiWire):
    """One of an error's details; `reason` and `retry_delay` are those of two kinds of them."""

    reason: Lenient[str] = None
    retry_delay: Lenient[str] = None


class WireError(GeminiWire):
    """An error of a call, a job or one request. `message` may quote the request.

    `code` is an HTTP status in the error of a call, and one of google.rpc's codes elsewhere.
    """

    code: Lenient[int] = None
    status: Lenient[str] = None
    message: Lenient[str] = Field(default=None, repr=False)
    details: Lenient[list[ErrorDetail]] = Field(default=None, repr=False)


class ErrorBody(GeminiWire):
    """The body of a failed call."""

    error: WireError


class WireStats(GeminiWire):
    """Progress of a batch."""

    request_count: Lenient[Count] = None
    pending_request_count: Lenient[Count] = None
    successful_request_count: Lenient[Count] = None
    failed_request_count: Lenient[Count] = None


class InlinedResponses(GeminiWire):
    """The inner one of two nested lists. Its items are kept as they are."""

    inlined_responses: Lenient[list[Any]] = Field(default=None, repr=False)


class WireOutput(GeminiWire):
    """Where the results are: in a file, or in the answer itself."""

    responses_file: OptionalId = None
    inlined_responses: Lenient[InlinedResponses] = None


class InputConfig(GeminiWire):
    """Where a batch has its requests from; `None` for requests that were sent inline."""

    file_name: OptionalId = None


class WireMetadata(GeminiWire):
    """What an operation tells of its batch."""

    model: Lenient[str] = None
    display_name: OptionalId = None
    input_config: Lenient[InputConfig] = None
    state: Lenient[str] = None
    create_time: Lenient[AwareDatetime] = None
    end_time: Lenient[AwareDatetime] = None
    batch_stats: Lenient[WireStats] = None
    output: Lenient[WireOutput] = None


class WireOperation(GeminiWire):
    """A batch as a long-running operation. `done` is absent until it is true; `state` was seen here
    as well as in the metadata."""

    name: Id
    done: Lenient[bool] = None
    state: Lenient[str] = None
    metadata: Lenient[WireMetadata] = None
    response: Lenient[WireOutput] = None
    error: Lenient[WireError] = None


class OperationPage(GeminiWire):
    """One page of batches. An empty list is `{}`, so a page that holds anything unknown is no page:
    it would prove an absence that nobody told."""

    model_config = ConfigDict(extra="forbid")

    operations: list[WireOperation] = Field(default_factory=list)
    next_page_token: str | None = None
    unreachable: list[str] = Field(default_factory=list, max_length=0)


class WireFile(GeminiWire):
    """A file object."""

    name: Id
    state: Lenient[str] = None
    size_bytes: Lenient[Count] = None
    expiration_time: Lenient[datetime] = None


class FileBody(GeminiWire):
    """The answer to an upload."""

    file: WireFile


class Part(GeminiWire):
    """One part of an answer; a thought is not part of it."""

    text: Lenient[str] = Field(default=None, repr=False)
    thought: Lenient[bool] = None


class Content(GeminiWire):
    """The content of a candidate."""

    parts: Lenient[list[Part]] = Field(default=None, repr=False)


class Candidate(GeminiWire):
    """One of the model's answers; this project asks for one."""

    content: Lenient[Content] = None
    finish_reason: Lenient[str] = None


class PromptFeedback(GeminiWire):
    """Why there is no candidate."""

    block_reason: Lenient[str] = None


class WireUsage(GeminiWire):
    """Tokens of one request."""

    prompt_token_count: Lenient[Count] = None
    candidates_token_count: Lenient[Count] = None
    thoughts_token_count: Lenient[Count] = None


class WireResponse(GeminiWire):
    """The model's answer to one request."""

    candidates: Lenient[list[Candidate]] = None
    prompt_feedback: Lenient[PromptFeedback] = None
    usage_metadata: Lenient[WireUsage] = None
    model_version: Lenient[str] = None
    response_id: OptionalId = None


class LineMetadata(GeminiWire):
    """Where an inline result carries its key."""

    key: OptionalId = None


class ResultLine(GeminiWire):
    """One result, of a file or inline."""

    key: OptionalId = None
    metadata: Lenient[LineMetadata] = None
    response: Lenient[WireResponse] = None
    error: Lenient[WireError] = None
