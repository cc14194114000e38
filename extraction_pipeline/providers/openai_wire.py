"""OpenAI's Batch API as it travels: the objects this project reads, and nothing of what they mean.

Reading is lenient on purpose: compatible servers leave fields out or fill them oddly, and one odd
field must not cost an answer that is paid for. Only what identifies an object is required.

Sources: OpenAI's OpenAPI description (2026-08-21) and batch guide; for result lines also recorded
payloads, since the description has no schema for them.
"""

import json
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

T = TypeVar("T")


def _none_if_wrong(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    try:
        return handler(value)
    except ValidationError:
        return None


def _none_if_blank(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    return _none_if_wrong(value, handler) or None


Lenient = Annotated[T | None, WrapValidator(_none_if_wrong)]
OptionalId = Annotated[str | None, WrapValidator(_none_if_blank)]
"""An id that may be null, absent or, as was seen live, an empty string."""
Count = Annotated[int, Field(ge=0, lt=2**63)]
UnixTime = Annotated[int, Field(ge=0, lt=2**33)]


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)


class WireError(_Wire):
    """An error object, of an HTTP answer or of one line. `message` may quote the request."""

    code: Lenient[str] = None
    type: Lenient[str] = None
    message: Lenient[str] = Field(default=None, repr=False)


class ErrorBody(_Wire):
    """The body of a failed call."""

    error: WireError


class BatchErrors(_Wire):
    """Why a batch failed as a whole."""

    data: Lenient[list[WireError]] = None


class WireCounts(_Wire):
    """Progress of a batch; the numbers need not add up."""

    total: Lenient[Count] = None
    completed: Lenient[Count] = None
    failed: Lenient[Count] = None


class WireBatch(_Wire):
    """A batch object."""

    id: str = Field(min_length=1)
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
    metadata: Lenient[dict[str, Any]] = None


class WireFile(_Wire):
    """A file object."""

    id: str = Field(min_length=1)
    filename: Lenient[str] = None
    bytes: Lenient[Count] = None


class BatchPage(_Wire):
    """One page of batches. A page that does not say whether more follow proves no absence."""

    data: list[WireBatch]
    has_more: bool


class FilePage(_Wire):
    """One page of files."""

    data: list[WireFile]
    has_more: bool


class ContentPart(_Wire):
    """One part of a message that is given as a list."""

    type: Lenient[str] = None
    text: Lenient[str] = Field(default=None, repr=False)
    refusal: Lenient[str] = Field(default=None, repr=False)


class ChatMessage(_Wire):
    """The model's message."""

    content: Lenient[str | list[ContentPart]] = Field(default=None, repr=False)
    refusal: Lenient[str] = Field(default=None, repr=False)


class ChatChoice(_Wire):
    """One of the model's answers; this project asks for one."""

    message: Lenient[ChatMessage] = None
    finish_reason: Lenient[str] = None


class ChatUsage(_Wire):
    """Tokens of one request."""

    prompt_tokens: Lenient[Count] = None
    completion_tokens: Lenient[Count] = None


class ChatBody(_Wire):
    """The body of an answered line: a chat completion, or an error."""

    model: Lenient[str] = None
    choices: Lenient[list[ChatChoice]] = None
    usage: Lenient[ChatUsage] = None
    error: Lenient[WireError | str] = None


class ResponseEnvelope(_Wire):
    """The HTTP answer that one line of a batch would have got."""

    status_code: Lenient[int] = None
    request_id: Lenient[str] = None
    body: Lenient[ChatBody] = None


class ResultLine(_Wire):
    """One line of an output or error file."""

    custom_id: str = Field(min_length=1)
    response: Lenient[ResponseEnvelope] = None
    error: Lenient[WireError | str] = None


def parse_result_line(line: bytes) -> ResultLine:
    """Read one line. Raises `ValueError` where it names no request, and quotes nothing of it.

    Repeated names in an object: the last one holds, as usual, except for two different `custom_id`,
    which could put one patient's answer on another's document.
    """
    try:
        value = json.loads(line, object_pairs_hook=_object, parse_int=_bounded_int)
        return ResultLine.model_validate(value)
    except ValidationError:
        what = "it is not an object with a custom_id"
    except (ValueError, RecursionError) as error:
        what = _REPEATED if str(error) == _REPEATED else "it is not JSON"
    raise ValueError(f"A result line cannot be read: {what}.")


_REPEATED = "it holds two different custom_id"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs) and len({str(v) for name, v in pairs if name == "custom_id"}) > 1:
        raise ValueError(_REPEATED)
    return value


def _bounded_int(digits: str) -> int | float:
    """Integers of any length; Python itself refuses to read those over 4,300 digits."""
    return int(digits) if len(digits) < 20 else float(digits)
