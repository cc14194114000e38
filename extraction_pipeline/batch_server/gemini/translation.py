"""Between Gemini's contents and chat completions: pure functions.

What this server cannot serve (tools, pictures, several candidates) is refused request by request.
A request has no id of its own: what its result has to repeat is kept, as JSON, in its place.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, ValidationError

from extraction_pipeline.batch_server.chat import Completion, response_format
from extraction_pipeline.batch_server.core_lines import CoreRequest, Refusal, repeated
from extraction_pipeline.batch_server.gemini.openapi_schema import json_schema
from extraction_pipeline.batch_server.gemini.wire import FileLine, InlineRequest, Taken
from extraction_pipeline.batch_server.result_lines import CANCELLED_CODE, ResultLine

JSON_TYPE = "application/json"
_CANCELLED, _INVALID_ARGUMENT, _DEADLINE_EXCEEDED, _INTERNAL = 1, 3, 4, 13
_RPC_CODES = {
    400: _INVALID_ARGUMENT,
    401: 16,
    402: 9,
    403: 7,
    404: 5,
    409: 10,
    429: 8,
    500: _INTERNAL,
    501: 12,
    503: 14,
    504: _DEADLINE_EXCEEDED,
}
_NOT_ANSWERED = {"relay_timeout": _DEADLINE_EXCEEDED}
_FINISH_REASONS = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}


class _Part(Taken):
    text: str


class _Content(Taken):
    parts: Annotated[list[_Part], Field(min_length=1)]
    role: Literal["user", "model", "system"] | None = None

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts)


class _ThinkingConfig(Taken):
    thinking_budget: int | None = None
    thinking_level: str | None = None
    include_thoughts: Literal[False] | None = None


class _GenerationConfig(Taken):
    temperature: float | None = None
    top_p: float | None = None
    top_k: float | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    stop_sequences: list[str] | None = None
    candidate_count: Literal[1] | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    response_mime_type: str | None = None
    response_schema: dict[str, Any] | None = None
    response_json_schema: dict[str, Any] | None = None
    thinking_config: _ThinkingConfig | None = None


class _GenerateContent(Taken):
    """A request. `model`, `safety_settings` and `thinking_config` are passed over: the batch's
    path names the model, and the answerer has no filters and no budget to set."""

    contents: Annotated[list[_Content], Field(min_length=1)]
    system_instruction: _Content | None = None
    generation_config: _GenerationConfig = _GenerationConfig()
    safety_settings: list[dict[str, Any]] | None = None
    model: str | None = None


def inline_request(item: object, model: str) -> tuple[CoreRequest, bool]:
    """An inline request in the core's words, and whether it has a mark that tells it from others.

    Raises `ValidationError` for what is not even an inline request.
    """
    inline = InlineRequest.model_validate(item)
    echo = {} if inline.metadata is None else {"metadata": inline.metadata}
    return _core_request(echo, inline.request, model), bool(inline.metadata)


def file_request(line: bytes, model: str) -> tuple[CoreRequest, bool]:
    """The same for a line of a file. Raises `ValidationError`."""
    given = FileLine.model_validate_json(line)
    echo = {} if given.key is None else {"key": given.key}
    return _core_request(echo, given.request, model), given.key is not None


def response_of(result: ResultLine) -> dict[str, Any]:
    """An item of inline responses, or a line of a result file."""
    echo = orjson.loads(result.custom_id)
    if result.completion is not None:
        return {**echo, "response": _response(result.token, result.completion)}
    return {**echo, "error": _error(result)}


def _core_request(echo: Mapping[str, Any], request: Mapping[str, Any], model: str) -> CoreRequest:
    custom_id = repeated(echo)
    try:
        asked = _GenerateContent.model_validate(request)
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        param = ".".join(str(part) for part in fault["loc"])
        return CoreRequest(custom_id, Refusal(f"{param}: {fault['msg']}", param))
    return CoreRequest(custom_id, _chat_body(asked, model))


def _chat_body(asked: _GenerateContent, model: str) -> dict[str, Any]:
    config = asked.generation_config
    messages = [
        {"role": "assistant" if content.role == "model" else "user", "content": content.text}
        for content in asked.contents
    ]
    if asked.system_instruction is not None:
        messages.insert(0, {"role": "system", "content": asked.system_instruction.text})
    optional = {
        "max_completion_tokens": config.max_output_tokens,
        "temperature": config.temperature,
        "top_p": config.top_p,
        "top_k": None if config.top_k is None else int(config.top_k),
        "stop": config.stop_sequences,
        "seed": config.seed,
        "presence_penalty": config.presence_penalty,
        "frequency_penalty": config.frequency_penalty,
        "response_format": _response_format(config),
    }
    return {
        "model": model,
        "messages": messages,
        **{name: value for name, value in optional.items() if value is not None},
    }


def _response_format(config: _GenerationConfig) -> dict[str, Any] | None:
    if config.response_json_schema is not None:
        return response_format(config.response_json_schema)
    if config.response_schema is not None:
        return response_format(json_schema(config.response_schema))
    return {"type": "json_object"} if config.response_mime_type == JSON_TYPE else None


def _response(token: str, completion: Completion) -> dict[str, Any]:
    content: dict[str, Any] = {"role": "model"}
    if completion.text:
        content["parts"] = [{"text": completion.text}]
    usage = {
        "promptTokenCount": completion.input_tokens,
        "candidatesTokenCount": completion.output_tokens,
        "totalTokenCount": completion.input_tokens + completion.output_tokens,
    }
    return {
        "candidates": [
            {
                "content": content,
                "finishReason": _FINISH_REASONS.get(completion.finish_reason, "STOP"),
            }
        ],
        "usageMetadata": {name: count for name, count in usage.items() if count},
        "modelVersion": completion.model or "",
        "responseId": token,
    }


def _error(result: ResultLine) -> dict[str, Any]:
    """As recorded of the real service, a request that a cancellation came before has no message."""
    if result.status_code is None and result.code == CANCELLED_CODE:
        return {"code": _CANCELLED}
    if result.status_code is None:
        code = _NOT_ANSWERED.get(result.code or "", _INTERNAL)
    else:
        code = _RPC_CODES.get(
            result.status_code, _INVALID_ARGUMENT if result.status_code < 500 else _INTERNAL
        )
    return {"code": code, "message": result.message}
