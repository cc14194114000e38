"""Between Infrai's batch items and the core's requests and results: pure functions.

An item has no id that the vendor documents. What its result repeats is kept, as JSON, in the place
of one: where it stood, and the `custom_id` and `metadata` that it carried.
"""

from typing import Any

import orjson

from extraction_pipeline.batch_server.core_lines import CoreRequest, Refusal, repeated
from extraction_pipeline.batch_server.infrai.wire import (
    CHAT_CAPABILITIES,
    BatchRequestItem,
    item_error,
)
from extraction_pipeline.batch_server.result_lines import ResultLine


def core_request(item: BatchRequestItem, index: int) -> tuple[CoreRequest, bool]:
    """A request in the core's words, and whether it has a mark that tells it from others.

    Raises `Unwritable`.
    """
    body = dict(item.body)
    marks = {"custom_id": item.custom_id, "metadata": body.pop("metadata", None)}
    echo = {"index": index, **{name: mark for name, mark in marks.items() if mark is not None}}
    custom_id = repeated(echo)
    if item.capability in CHAT_CAPABILITIES:
        return CoreRequest(custom_id, body), len(echo) > 1
    refusal = Refusal("This capability is not available in a batch.", "capability", 404)
    return CoreRequest(custom_id, refusal), len(echo) > 1


def item_of(result: ResultLine) -> dict[str, Any]:
    """An item of results."""
    echo = {"custom_id": None, "metadata": None, **orjson.loads(result.custom_id)}
    if result.completion is not None:
        return {**echo, "ok": True, "result": result.body, "error": None}
    error = item_error(result.status_code, result.code, result.message)
    return {**echo, "ok": False, "result": None, "error": error}
