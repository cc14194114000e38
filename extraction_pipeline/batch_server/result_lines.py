"""The lines of results as they are stored, in OpenAI's form; other forms are made of them when
results are read. Pure functions."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from extraction_pipeline.batch_server.answers import Answer, Answered
from extraction_pipeline.batch_server.chat import Completion
from extraction_pipeline.batch_server.records import BatchState, LinePlace, Tally

EXPIRED_CODE = "batch_expired"
CANCELLED_CODE = "batch_cancelled"
_UNSERVED = {
    BatchState.EXPIRED: (
        EXPIRED_CODE,
        "This request could not be executed before the completion window expired.",
    ),
    BatchState.CANCELLED: (
        CANCELLED_CODE,
        "This request was not executed because the batch was cancelled.",
    ),
}


def answer_line(batch_id: str, place: LinePlace, answer: Answer) -> bytes:
    """The line of a request that was served, without its newline."""
    if isinstance(answer, Answered):
        response = {
            "status_code": answer.status_code,
            "request_id": f"req_{_hash(batch_id, place, 'request')}",
            "body": answer.body,
        }
        return _line(batch_id, place, response, None)
    return _line(batch_id, place, None, {"code": answer.code, "message": answer.message})


def unserved_line(batch_id: str, place: LinePlace, end: BatchState) -> bytes:
    """The line of a request that the batch's end came before."""
    code, message = _UNSERVED[end]
    return _line(batch_id, place, None, {"code": code, "message": message})


def tokens_of(answer: Answer) -> Tally:
    """The tokens that an answer tells of, none where it does not."""
    usage = answer.body.get("usage") if isinstance(answer, Answered) else None
    if not isinstance(usage, dict):
        return Tally()
    counts = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    asked, said = (n if isinstance(n, int) and 0 <= n < 2**40 else 0 for n in counts)
    return Tally(input_tokens=asked, output_tokens=said)


@dataclass(frozen=True)
class ResultLine:
    """A stored line, read again: `completion` is the model's answer, or there is none and `code`
    and `message` say why. `status_code` is `None` where no answer came about at all."""

    token: str
    """What is its own alone: for ids that other wire formats have and OpenAI's has not."""
    custom_id: str
    request_id: str | None
    status_code: int | None
    completion: Completion | None = field(repr=False)
    body: Mapping[str, Any] = field(repr=False)
    code: str | None
    message: str = field(repr=False)

    @classmethod
    def read(cls, line: bytes) -> "ResultLine":
        """What `answer_line` or `unserved_line` wrote."""
        try:
            content = orjson.loads(line)
        except orjson.JSONDecodeError:
            content = json.loads(line)  # see `write_json`
        response = content["response"] or {}
        status = response.get("status_code")
        body = response.get("body") or {}
        error = content["error"] or body.get("error")
        code, message = _said(error, "code"), _said(error, "message")
        completion = None
        if status is not None and 200 <= status < 300:
            completion = Completion.read(body)
            if completion is None:
                status, message = 502, "The model's answer is no chat completion."
        return cls(
            token=content["id"].removeprefix(_ID_PREFIX),
            custom_id=content["custom_id"],
            request_id=response.get("request_id"),
            status_code=status,
            completion=completion,
            body=body,
            code=code,
            message=message or "The request failed.",
        )


def _said(error: object, name: str) -> str | None:
    """A text of an error; a relayed endpoint may have put anything there."""
    value = error.get(name) if isinstance(error, dict) else None
    return value if isinstance(value, str) else None


def write_json(content: Mapping[str, Any]) -> bytes:
    """One line of JSON, without its newline."""
    try:
        return orjson.dumps(content)
    except TypeError:
        # A relayed answer may hold what orjson does not write: huge numbers, lone surrogates.
        return json.dumps(content).encode()


_ID_PREFIX = "batch_req_"


def _line(
    batch_id: str, place: LinePlace, response: dict[str, Any] | None, error: dict[str, str] | None
) -> bytes:
    return write_json(
        {
            "id": f"{_ID_PREFIX}{_hash(batch_id, place, 'line')}",
            "custom_id": place.custom_id,
            "response": response,
            "error": error,
        }
    )


def _hash(batch_id: str, place: LinePlace, kind: str) -> str:
    text = "\0".join((batch_id, str(place.position), kind))
    return hashlib.sha256(text.encode()).hexdigest()[:24]
