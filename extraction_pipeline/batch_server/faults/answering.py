"""A model's answers and result rows that are wrong: pure functions over the core's own words."""

import copy
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from extraction_pipeline.batch_server.answers import Answer, Answered
from extraction_pipeline.batch_server.chat import error_body
from extraction_pipeline.batch_server.dialects import Dialect
from extraction_pipeline.batch_server.faults.plan import Rows, Says

SOMEBODY_ELSES = "somebody-elses"
NO_CREDIT: Mapping[Dialect, tuple[int, str | None]] = {
    Dialect.OPENAI: (429, "insufficient_quota"),
    Dialect.ANTHROPIC: (402, None),
    Dialect.GEMINI: (402, None),
    Dialect.INFRAI: (402, None),
}
"""Status and code of a refusal for lack of credit."""
_MARKS = frozenset({"custom_id", "key", "metadata"})


def said(answer: Answer, fault: Says, dialect: Dialect) -> Answer:
    """What the model says in place of a good answer; others stay as they are."""
    if not isinstance(answer, Answered) or not answer.succeeded:
        return answer
    if fault.what in ("error", "no_credit"):
        refused = (fault.status, None) if fault.what == "error" else NO_CREDIT[dialect]
        return Answered(refused[0], error_body("A fault that was asked for.", code=refused[1]))
    body = copy.deepcopy(dict(answer.body))
    choice = body["choices"][0]
    message = choice["message"]
    text = message.get("content") or ""
    match fault.what:
        case "bad_json":
            message["content"] = "Here is what you asked for: it is in the note."
        case "half_json":
            message["content"] = text[: len(text) // 2]
        case "empty":
            message["content"] = ""
        case "refusal":
            message |= {"content": None, "refusal": "This cannot be answered."}
        case "truncated":
            message["content"] = text[: len(text) // 2]
            choice["finish_reason"] = "length"
    return Answered(answer.status_code, body)


def spoiled(lines: Iterable[bytes], faults: Sequence[Rows], seed: str) -> Iterator[bytes]:
    """Result lines as the faults leave them."""
    if not faults:
        yield from lines
        return
    content = list(lines)
    for fault in faults:
        chosen = [content[row] for row in fault.rows if row < len(content)]
        match fault.what:
            case "shuffled":
                random.Random(f"{seed}/{fault.seed}").shuffle(content)
            case "missing":
                content = [line for row, line in enumerate(content) if row not in fault.rows]
            case "repeated":
                content += chosen
            case "foreign":
                content += [_foreign(line) for line in chosen]
    yield from content


def _foreign(line: bytes) -> bytes:
    """The line with an id that is nobody's: a text of the client's, or JSON that the wire formats
    without ids of their own keep in its place."""
    content: dict[str, Any] = orjson.loads(line)
    try:
        echo = orjson.loads(content["custom_id"])
    except orjson.JSONDecodeError:
        echo = None
    if isinstance(echo, dict):
        for name in _MARKS & echo.keys():
            echo[name] = _renamed(echo[name])
        content["custom_id"] = orjson.dumps(echo).decode()
    else:
        content["custom_id"] = SOMEBODY_ELSES
    return orjson.dumps(content)


def _renamed(mark: object) -> object:
    if isinstance(mark, dict):
        return {name: _renamed(value) for name, value in mark.items()}
    return SOMEBODY_ELSES if isinstance(mark, str) else mark
