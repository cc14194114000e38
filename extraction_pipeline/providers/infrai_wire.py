"""Infrai's batch API as it travels: the objects that are read, not what they mean.

Little of it is documented: the envelope, the parameters of a submission, and its answer
(`batch_id`, `state`, `total_count`). Sources disagree on the rest, so each name is read in every
spelling that was seen, in this one place. The public discovery document of a capability
(`infrai_discovery`) settles what holds.

Sources: Infrai's pages on conventions, discovery and the AI runtime (2026), read in part.
"""

from typing import Any, TypeVar

from pydantic import AliasChoices, Field, ValidationError

from extraction_pipeline.providers.wire import Count, Id, Lenient, OptionalId, Wire, parse_json

Form = TypeVar("Form", bound=Wire)


class WireError(Wire):
    """What went wrong. `message` may quote the request."""

    code: OptionalId = Field(default=None, validation_alias=AliasChoices("code", "type"))
    message: Lenient[str] = Field(default=None, repr=False)
    retryable: Lenient[bool] = None
    retry_after: Lenient[float] = Field(
        default=None, validation_alias=AliasChoices("retry_after", "retry_after_seconds")
    )


class EnvelopeMetadata(Wire):
    """What a call says of itself."""

    request_id: OptionalId = None


class Envelope(Wire):
    """What every answer is wrapped in. `ok: false` comes under any status, 200 among them."""

    ok: Lenient[bool] = None
    data: Lenient[Any] = Field(default=None, repr=False)
    error: Lenient[WireError] = None
    metadata: Lenient[EnvelopeMetadata] = None


class NewJob(Wire):
    """A batch, as submitting gives it."""

    id: Id = Field(validation_alias=AliasChoices("batch_id", "id", "job_id"))
    state: str = Field(min_length=1, validation_alias=AliasChoices("state", "status"))


class WireJob(Wire):
    """A batch, as reading it gives it; it need not repeat its id."""

    id: OptionalId = Field(default=None, validation_alias=AliasChoices("batch_id", "id", "job_id"))
    state: str = Field(min_length=1, validation_alias=AliasChoices("state", "status"))
    total: Lenient[Count] = Field(
        default=None, validation_alias=AliasChoices("total_count", "total")
    )
    completed: Lenient[Count] = Field(
        default=None,
        validation_alias=AliasChoices("completed_count", "completed", "succeeded_count"),
    )
    failed: Lenient[Count] = Field(
        default=None, validation_alias=AliasChoices("failed_count", "failed")
    )
    error: Lenient[WireError] = None


class ItemMetadata(Wire):
    """Where an item may carry what it was sent with."""

    custom_id: OptionalId = None


class Message(Wire):
    """The model's message, in a completion as OpenAI has it."""

    content: Lenient[str] = Field(default=None, repr=False)
    refusal: Lenient[str] = Field(default=None, repr=False)


class Choice(Wire):
    """One of the model's answers."""

    message: Lenient[Message] = None
    finish_reason: Lenient[str] = None


class WireUsage(Wire):
    """Tokens of one request, under either pair of names."""

    input_tokens: Lenient[Count] = Field(
        default=None, validation_alias=AliasChoices("prompt_tokens", "input_tokens")
    )
    output_tokens: Lenient[Count] = Field(
        default=None, validation_alias=AliasChoices("completion_tokens", "output_tokens")
    )


class Answer(Wire):
    """What a chat answers: Infrai's own flat form, or a completion as OpenAI has it."""

    content: Lenient[str] = Field(default=None, repr=False)
    finish_reason: Lenient[str] = None
    choices: Lenient[list[Choice]] = None
    usage: Lenient[WireUsage] = None
    model: Lenient[str] = None
    id: OptionalId = None
    metadata: Lenient[ItemMetadata] = None


class RequestEcho(Wire):
    """The request, where an item repeats it."""

    custom_id: OptionalId = None
    metadata: Lenient[ItemMetadata] = None


class ResultItem(Wire):
    """One item of the results, with all the places in which its id may be."""

    custom_id: OptionalId = None
    metadata: Lenient[ItemMetadata] = None
    body: Lenient[RequestEcho] = None
    request: Lenient[RequestEcho] = None
    ok: Lenient[bool] = None
    state: OptionalId = Field(default=None, validation_alias=AliasChoices("state", "status"))
    status_code: Lenient[Count] = None
    request_id: OptionalId = None
    error: Lenient[WireError] = None
    result: Lenient[Any] = Field(
        default=None,
        repr=False,
        validation_alias=AliasChoices("result", "response", "data", "output", "body"),
    )


def read_envelope(body: bytes) -> Envelope:
    """The envelope of an answer; a body without one counts as its `data`. Raises `ValueError`."""
    value = parse_json(body)
    if isinstance(value, dict) and ("ok" in value or "data" in value):
        return Envelope.model_validate(value)
    return Envelope(data=value)


def read_data(body: bytes, form: type[Form]) -> Form:
    """What an answer's envelope holds. Raises `ValueError`."""
    return form.model_validate(read_envelope(body).data)


def read_items(body: bytes) -> list[Any]:
    """The items of a results answer, each as it is.

    Raises `ValueError` where there are none to read, or more than this answer holds: no way to the
    next page is documented, and taking the first for all would ask again for what is paid for.
    """
    data = read_envelope(body).data
    if isinstance(data, list):
        return data
    if not isinstance(data, dict):
        raise ValueError("the answer holds no results")
    if any(data.get(name) for name in ("has_more", "next_cursor", "next_page_token", "next")):
        raise ValueError("the results come in pages")
    for name in ("items", "results", "responses"):
        if isinstance(data.get(name), list):
            items: list[Any] = data[name]
            return items
    raise ValueError("the answer holds no results")


def read_answer(result: Any) -> Answer:
    """The answer in an item: its result, or the envelope or HTTP answer around it."""
    for _ in range(3):
        if not isinstance(result, dict):
            break
        inner = next((result[name] for name in ("body", "data", "result") if name in result), None)
        if inner is None or "content" in result or "choices" in result:
            break
        result = inner
    if isinstance(result, str):
        return Answer(content=result)
    try:
        return Answer.model_validate(result)
    except ValidationError:
        return Answer()
