"""Events in the words of each provider. Pure.

OpenAI's and Gemini's are those of their documents. Of Infrai none is known: its event is this
server's own choice.
"""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from standardwebhooks.webhooks import Webhook

from extraction_pipeline.batch_server.dialects import Dialect
from extraction_pipeline.batch_server.records import Batch, BatchState
from extraction_pipeline.batch_server.webhooks.targets import Target


@dataclass(frozen=True)
class Announcement:
    """One delivery. `age` is how many seconds before it is sent it claims to have been signed."""

    dialect: Dialect
    delivery_id: str
    body: bytes
    age: float = 0.0

    def renumbered(self) -> "Announcement":
        """The same event under another id."""
        return replace(self, delivery_id=_fresh("wh_"))


def announce(
    batch: Batch, end: BatchState, now: float, *, about: str | None = None
) -> Announcement:
    """The event that a batch has come to this end; with `about`, that another one has."""
    make = {
        Dialect.OPENAI: _openai,
        Dialect.GEMINI: _gemini,
        Dialect.INFRAI: _infrai,
    }[batch.asked.dialect]
    content = make(batch, about or batch.id, end, now)
    return Announcement(batch.asked.dialect, _fresh("wh_"), json.dumps(content).encode())


def headers(said: Announcement, target: Target, now: float) -> dict[str, str]:
    """The headers of one delivery, signed now or, where it is said to be late, as if before."""
    common = {"Content-Type": "application/json", "webhook-id": said.delivery_id}
    if said.dialect is Dialect.INFRAI:
        return common | {"X-Webhook-Secret": target.secret.get_secret_value()}
    at = datetime.fromtimestamp(int(now - said.age), UTC)
    return common | {
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(target.key).sign(said.delivery_id, at, said.body.decode()),
    }


def foreign_id(batch: Batch) -> str:
    """The id of a batch that nobody here has."""
    return f"{batch.id[:8]}{uuid.uuid4().hex}"


def _openai(batch: Batch, batch_id: str, end: BatchState, now: float) -> Mapping[str, Any]:
    return {
        "id": _fresh("evt_"),
        "object": "event",
        "type": f"batch.{end.value}",
        "created_at": int(now),
        "data": {"id": batch_id},
    }


def _gemini(batch: Batch, batch_id: str, end: BatchState, now: float) -> Mapping[str, Any]:
    word = "succeeded" if end is BatchState.COMPLETED else end.value
    failed = {"error_code": batch.faults[0].code} if batch.faults else {}
    return {
        "type": f"batch.{word}",
        "version": "v1",
        "timestamp": datetime.fromtimestamp(int(now), UTC).isoformat().replace("+00:00", "Z"),
        "data": {"id": batch_id, **failed},
    }


def _infrai(batch: Batch, batch_id: str, end: BatchState, now: float) -> Mapping[str, Any]:
    return {"event": f"batch.{end.value}", "data": {"batch_id": batch_id, "state": end.value}}


def _fresh(prefix: str) -> str:
    return f"{prefix}{uuid.uuid4().hex}"
