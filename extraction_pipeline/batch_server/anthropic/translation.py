"""Between Anthropic's messages and chat completions: pure functions.

An answer in the form of a schema can be asked for in both ways: by an output format, or by a tool
that has to be called. What this server cannot serve (a choice of tools, images, extended thinking)
is refused request by request, as Anthropic does with parameters it does not take: only the batch's
results say so.
"""

import json
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from extraction_pipeline.batch_server.anthropic.wire import error_body
from extraction_pipeline.batch_server.chat import Completion, response_format
from extraction_pipeline.batch_server.core_lines import CoreRequest, Refusal, repeated
from extraction_pipeline.batch_server.result_lines import (
    CANCELLED_CODE,
    EXPIRED_CODE,
    ResultLine,
)

CustomId = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
_UNSERVED = {CANCELLED_CODE: "canceled", EXPIRED_CODE: "expired"}
_STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
_RELAY_TIMEOUT = "relay_timeout"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, strict=True)


class BatchRequest(_Strict):
    """One request of a batch; its `params` are looked at when it is worked on."""

    custom_id: CustomId
    params: dict[str, Any] = Field(repr=False)


class _CacheControl(_Strict):
    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class _Text(_Strict):
    type: Literal["text"]
    text: str
    cache_control: _CacheControl | None = None


_Content = str | list[_Text]


class _Message(_Strict):
    role: Literal["user", "assistant"]
    content: _Content


class _Format(_Strict):
    type: Literal["json_schema"]
    json_schema: Annotated[dict[str, Any], Field(alias="schema")]


class _OutputConfig(_Strict):
    format: _Format | None = None
    effort: Literal["low", "medium", "high", "max"] | None = None


class _Metadata(_Strict):
    user_id: str | None = None


class _NoThinking(_Strict):
    type: Literal["disabled"]


class _Tool(_Strict):
    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    input_schema: dict[str, Any]
    description: str | None = None
    strict: bool | None = None
    type: Literal["custom"] | None = None
    cache_control: _CacheControl | None = None


class _ThisTool(_Strict):
    type: Literal["tool"]
    name: str
    disable_parallel_tool_use: bool | None = None


class _Params(_Strict):
    """The body of a message. `cache_control`, `metadata` and `service_tier` change no answer and
    are passed over."""

    model: Annotated[str, Field(min_length=1)]
    max_tokens: Annotated[int, Field(ge=1)]
    messages: Annotated[list[_Message], Field(min_length=1)]
    system: _Content | None = None
    temperature: Annotated[float, Field(ge=0, le=1, strict=False)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1, strict=False)] | None = None
    top_k: Annotated[int, Field(ge=0)] | None = None
    stop_sequences: list[str] | None = None
    output_config: _OutputConfig | None = None
    tools: Annotated[list[_Tool], Field(max_length=1)] | None = None
    tool_choice: _ThisTool | None = None
    thinking: _NoThinking | None = None
    stream: Literal[False] | None = None
    cache_control: _CacheControl | None = None
    metadata: _Metadata | None = None
    service_tier: Literal["auto", "standard_only"] | None = None


def core_request(request: BatchRequest) -> CoreRequest:
    """A request in the core's words. Raises `Unwritable`."""
    try:
        params = _Params.model_validate(request.params)
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        param = ".".join(str(part) for part in fault["loc"])
        return _of(request, Refusal(f"{param}: {fault['msg']}", param))
    tools = [tool.name for tool in params.tools or ()]
    chosen = [params.tool_choice.name] if params.tool_choice else []
    if tools != chosen:
        message = "This server takes one tool at most, and it has to be the one to call."
        return _of(request, Refusal(f"tool_choice: {message}", "tool_choice"))
    return _of(request, _chat_body(params), *chosen)


def individual_response(result: ResultLine) -> dict[str, Any]:
    """A line of results."""
    echo = orjson.loads(result.custom_id)
    return {"custom_id": echo["custom_id"], "result": _result(result, echo.get("tool"))}


def _of(
    request: BatchRequest, asked: dict[str, Any] | Refusal, tool: str | None = None
) -> CoreRequest:
    """The request with what its result needs: its id, and the tool that is to be called."""
    echo = {"custom_id": request.custom_id}
    return CoreRequest(repeated(echo if tool is None else {**echo, "tool": tool}), asked)


def _result(result: ResultLine, tool: str | None) -> dict[str, Any]:
    if result.completion is not None:
        return {"type": "succeeded", "message": _message(result.token, result.completion, tool)}
    if result.status_code is None and result.code in _UNSERVED:
        return {"type": _UNSERVED[result.code]}
    status = result.status_code or (504 if result.code == _RELAY_TIMEOUT else 500)
    error = error_body(status, result.message, result.request_id)
    return {"type": "errored", "error": error}


def _chat_body(params: _Params) -> dict[str, Any]:
    messages = [
        {"role": message.role, "content": _joined(message.content)} for message in params.messages
    ]
    if params.system is not None:
        messages.insert(0, {"role": "system", "content": _joined(params.system)})
    output = params.output_config or _OutputConfig()
    optional = {
        "temperature": params.temperature,
        "top_p": params.top_p,
        "top_k": params.top_k,
        "stop": params.stop_sequences,
        "reasoning_effort": output.effort,
        "response_format": _response_format(params, output),
    }
    return {
        "model": params.model,
        "messages": messages,
        "max_completion_tokens": params.max_tokens,
        **{name: value for name, value in optional.items() if value is not None},
    }


def _response_format(params: _Params, output: _OutputConfig) -> dict[str, Any] | None:
    if params.tools:
        return response_format(params.tools[0].input_schema, params.tools[0].name)
    return response_format(output.format.json_schema) if output.format else None


def _joined(content: _Content) -> str:
    return content if isinstance(content, str) else "\n".join(block.text for block in content)


def _message(token: str, completion: Completion, tool: str | None) -> dict[str, Any]:
    reason = "refusal" if completion.refused else _STOP_REASONS.get(completion.finish_reason)
    details = {"type": "refusal", "category": None, "explanation": None}
    content = _content(token, completion, None if completion.refused else tool)
    if reason == "end_turn" and any(block["type"] == "tool_use" for block in content):
        reason = "tool_use"
    return {
        "id": f"msg_{token}",
        "type": "message",
        "role": "assistant",
        "model": completion.model or "",
        "content": content,
        "stop_reason": reason or "end_turn",
        "stop_sequence": None,
        "stop_details": details if reason == "refusal" else None,
        "usage": {
            "input_tokens": completion.input_tokens,
            "output_tokens": completion.output_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
            "server_tool_use": None,
            "service_tier": "batch",
            "inference_geo": None,
        },
        "container": None,
    }


def _content(token: str, completion: Completion, tool: str | None) -> list[dict[str, Any]]:
    """The answer as text, or as the call of a tool with what can be read of its arguments: those of
    an answer that was cut short are no JSON any more."""
    text = completion.text
    if tool is None:
        return [{"type": "text", "text": text, "citations": None}] if text else []
    try:
        arguments = json.loads(text)
    except ValueError:
        arguments = None
    call = {
        "type": "tool_use",
        "id": f"toolu_{token}",
        "name": tool,
        "input": arguments if isinstance(arguments, dict) else {},
        "caller": {"type": "direct"},
    }
    return [call]
