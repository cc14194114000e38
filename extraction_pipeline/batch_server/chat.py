"""Chat completions, the words in which every request is answered: what the wire formats share.

A request of any wire format becomes a chat completion body on its way in, and the completion, or
the error in its place, becomes that format's words again when results are read.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from extraction_pipeline.batch_server.schema_names import schema_name


def error_body(
    message: str,
    *,
    type: str = "invalid_request_error",
    code: str | None = None,
    param: str | None = None,
) -> dict[str, Any]:
    """OpenAI's form of an error, of a call and of one line."""
    return {"error": {"message": message, "type": type, "param": param, "code": code}}


def response_format(json_schema: Mapping[str, Any], name: str | None = None) -> dict[str, Any]:
    """The order for an answer by this JSON Schema, whose name is found if it got none."""
    return {
        "type": "json_schema",
        "json_schema": {
            "name": name or schema_name(json_schema),
            "strict": True,
            "schema": dict(json_schema),
        },
    }


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


class _Message(_Part):
    content: str | None = None
    refusal: str | None = None


class _Choice(_Part):
    finish_reason: str | None = None
    message: _Message


class _Usage(_Part):
    prompt_tokens: Annotated[int, Field(ge=0)] | None = None
    completion_tokens: Annotated[int, Field(ge=0)] | None = None


class Completion(_Part):
    """A chat completion, as far as other wire formats can say it."""

    model: str | None = None
    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: _Usage | None = None

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> "Completion | None":
        """What a body says; `None` if it is no completion, as a relayed model may answer."""
        try:
            return cls.model_validate(body)
        except ValidationError:
            return None

    @property
    def text(self) -> str:
        """What the model said; its refusal, if it said that."""
        message = self.choices[0].message
        return message.content or message.refusal or ""

    @property
    def refused(self) -> bool:
        """Whether the model would not answer."""
        return bool(self.choices[0].message.refusal)

    @property
    def finish_reason(self) -> str:
        """Why the model stopped, in OpenAI's words."""
        return self.choices[0].finish_reason or "stop"

    @property
    def input_tokens(self) -> int:
        """Tokens of the request, zero where the model does not say."""
        return (self.usage and self.usage.prompt_tokens) or 0

    @property
    def output_tokens(self) -> int:
        """Tokens of the answer, zero where the model does not say."""
        return (self.usage and self.usage.completion_tokens) or 0
