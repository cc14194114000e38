"""OpenAI's Batch API as it travels: the objects this project reads, and nothing of what they mean.

Sources: OpenAI's OpenAPI description (2026-08-21) and batch guide; for result lines also recorded
payloads, since the description has no schema for them.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from extraction_pipeline.providers.wire import Count, Id, Lenient, OptionalId, Wire, parse_json


def _from_text(value: Any) -> Any:
    return parse_json(value.encode()) if isinstance(value, str) else value


Metadata = Annotated[dict[str, Any], BeforeValidator(_from_text)]
"""What a batch was made with; some servers give it back as JSON in a string."""
UnixTime = Annotated[int, Field(ge=0, lt=2**33)]


class WireError(Wire):
    """An error object, of an HTTP answer or of one line. `message` may quote the request."""

    code: Lenient[str] = None
    type: Lenient[str] = None
    message: Lenient[str] = Field(default=None, repr=False)


class ErrorBody(Wire):
    """The body of a failed call."""

    error: WireError


class BatchErrors(Wire):
    """Why a batch failed as a whole."""

    data: Lenient[list[WireError]] = None


class WireCounts(Wire):
    """Progress of a batch; the numbers need not add up."""

    total: Lenient[Count] = None
    completed: Lenient[Count] = None
    failed: Lenient[Count] = None


class WireBatch(Wire):
    """A batch object."""

    id: Id
    status: str = Field(min_length=1)
    input_file_id: OptionalId = None
    output_file_id: OptionalId = None
    error_file_id: OptionalId = None
    errors: Lenient[BatchErrors] = None
    request_counts: Lenient[WireCounts] = None
    created_at: Lenient[UnixTime] = None
    expires_at: Lenient[UnixTime] = None
    completed_at: Lenient[UnixTime] = None
    failed_at: Lenient[UnixTime] = None
    expired_at: Lenient[UnixTime] = None
    cancelled_at: Lenient[UnixTime] = None
    metadata: Lenient[Metadata] = None


class WireFile(Wire):
    """A file object."""

    id: Id
    filename: Lenient[str] = None
    bytes: Lenient[Count] = None


class BatchPage(Wire):
    """One page of batches. A page that does not say whether more follow proves no absence."""

    data: list[WireBatch]
    has_more: bool


class FilePage(Wire):
    """One page of files."""

    data: list[WireFile]
    has_more: bool


class ContentPart(Wire):
    """One part of a message that is given as a list."""

    type: Lenient[str] = None
    text: Lenient[str] = Field(default=None, repr=False)
    refusal: Lenient[str] = Field(default=None, repr=False)


class ChatMessage(Wire):
    """The model's message."""

    content: Lenient[str | list[ContentPart]] = Field(default=None, repr=False)
    refusal: Lenient[str] = Field(default=None, repr=False)


class ChatChoice(Wire):
    """One of the model's answers; this project asks for one."""

    message: Lenient[ChatMessage] = None
    finish_reason: Lenient[str] = None


class ChatUsage(Wire):
    """Tokens of one request."""

    prompt_tokens: Lenient[Count] = None
    completion_tokens: Lenient[Count] = None


class ChatBody(Wire):
    """The body of an answered line: a chat completion, or an error."""

    model: Lenient[str] = None
    choices: Lenient[list[ChatChoice]] = None
    usage: Lenient[ChatUsage] = None
    error: Lenient[WireError | str] = None


class ResponseEnvelope(Wire):
    """The HTTP answer that one line of a batch would have got."""

    status_code: Lenient[int] = None
    request_id: Lenient[str] = None
    body: Lenient[ChatBody] = None


class ResultLine(Wire):
    """One line of an output or error file."""

    custom_id: str = Field(min_length=1)
    response: Lenient[ResponseEnvelope] = None
    error: Lenient[WireError | str] = None
