"""Answers by rules: the baseline's extraction as a complete chat completion."""

import time
import uuid
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from extraction_pipeline.batch_server.answers import RULES_MODEL_PREFIX, Answer, Answered
from extraction_pipeline.batch_server.baseline import empty_instance, extract
from extraction_pipeline.batch_server.chat import error_body
from extraction_pipeline.batch_server.schema_names import schema_name

CHARACTERS_PER_TOKEN = 4
"""A usual estimate; rules count no tokens."""


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


class _Message(_Lenient):
    role: str
    content: str


class _NamedSchema(_Lenient):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    json_schema: Annotated[dict[str, Any], Field(alias="schema")]


class _ResponseFormat(_Lenient):
    type: Literal["json_schema"]
    json_schema: _NamedSchema


class _ChatRequest(_Lenient):
    model: str
    messages: Annotated[list[_Message], Field(min_length=1)]
    response_format: _ResponseFormat
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None


class RulesAnswerer:
    """Extraction by headings and patterns. Deterministic but for the answer's id and time."""

    concurrency = 1

    def answer(self, body: Mapping[str, Any]) -> Answer:
        """Answer one request, or say what is wrong with it."""
        try:
            request = _ChatRequest.model_validate(body)
        except ValidationError as error:
            fault = error.errors(include_input=False, include_url=False)[0]
            param = ".".join(str(part) for part in fault["loc"])
            return Answered(400, error_body(f"{param}: {fault['msg']}.", param=param))
        if not request.model.startswith(RULES_MODEL_PREFIX):
            message = (
                f"This server has no model but {RULES_MODEL_PREFIX}; start it with a relay "
                "for others."
            )
            return Answered(404, error_body(message, code="model_not_found", param="model"))
        documents = [message.content for message in request.messages if message.role == "user"]
        if not documents:
            return Answered(400, error_body("There is no user message.", param="messages"))
        asked = request.response_format.json_schema
        try:
            value = _value(asked, documents[-1])
        except ValueError:
            message = "The JSON Schema is not of the strict kind."
            return Answered(400, error_body(message, param="response_format"))
        return Answered(200, _completion(request, orjson.dumps(value).decode()))


def _value(asked: _NamedSchema, document: str) -> object:
    """What the rules find; for what there are no rules, the honest answer that states nothing.

    A client may name every schema alike: then its title or its properties tell which one it is.
    A property that the rules do not know is filled in like that too, so that one with a single
    permitted value (a client's mark on its request) comes back with it.
    """
    found = extract(asked.name, document)
    if found is None:
        found = extract(schema_name(asked.json_schema), document)
    if found is None:
        return empty_instance(asked.json_schema)
    properties = asked.json_schema.get("properties")
    unknown = {
        name: inner
        for name, inner in (properties.items() if isinstance(properties, dict) else ())
        if name not in found
    }
    rest = empty_instance(asked.json_schema | {"properties": unknown})
    return found | rest if isinstance(rest, dict) else found


def _completion(request: _ChatRequest, text: str) -> dict[str, Any]:
    limit = request.max_completion_tokens or request.max_tokens
    room = len(text) if limit is None else limit * CHARACTERS_PER_TOKEN
    said = text[:room]
    prompt_tokens = sum(_tokens(message.content) for message in request.messages)
    completion_tokens = _tokens(said)
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request.model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": said, "refusal": None},
                "logprobs": None,
                "finish_reason": "stop" if len(said) == len(text) else "length",
            }
        ],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }


def _tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)
