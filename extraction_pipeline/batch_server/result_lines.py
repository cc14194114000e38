"""The lines of output and error files, in OpenAI's form. Pure functions."""

import hashlib
import json
from typing import Any

import orjson

from extraction_pipeline.batch_server.answers import Answer, Answered
from extraction_pipeline.batch_server.records import BatchState, Tally

_UNSERVED = {
    BatchState.EXPIRED: (
        "batch_expired",
        "This request could not be executed before the completion window expired.",
    ),
    BatchState.CANCELLED: (
        "batch_cancelled",
        "This request was not executed because the batch was cancelled.",
    ),
}


def answer_line(batch_id: str, custom_id: str, answer: Answer) -> bytes:
    """The line of a request that was served, without its newline."""
    if isinstance(answer, Answered):
        response = {
            "status_code": answer.status_code,
            "request_id": f"req_{_hash(batch_id, custom_id, 'request')}",
            "body": answer.body,
        }
        return _line(batch_id, custom_id, response, None)
    return _line(batch_id, custom_id, None, {"code": answer.code, "message": answer.message})


def unserved_line(batch_id: str, custom_id: str, end: BatchState) -> bytes:
    """The line of a request that the batch's end came before."""
    code, message = _UNSERVED[end]
    return _line(batch_id, custom_id, None, {"code": code, "message": message})


def tokens_of(answer: Answer) -> Tally:
    """The tokens that an answer tells of, none where it does not."""
    usage = answer.body.get("usage") if isinstance(answer, Answered) else None
    if not isinstance(usage, dict):
        return Tally()
    counts = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    asked, said = (n if isinstance(n, int) and 0 <= n < 2**40 else 0 for n in counts)
    return Tally(input_tokens=asked, output_tokens=said)


def _line(
    batch_id: str, custom_id: str, response: dict[str, Any] | None, error: dict[str, str] | None
) -> bytes:
    line = {
        "id": f"batch_req_{_hash(batch_id, custom_id, 'line')}",
        "custom_id": custom_id,
        "response": response,
        "error": error,
    }
    try:
        return orjson.dumps(line)
    except TypeError:
        # A relayed answer may hold what orjson does not write: huge numbers, lone surrogates.
        return json.dumps(line).encode()


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
