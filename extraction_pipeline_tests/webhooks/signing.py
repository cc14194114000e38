"""What a sender does, written without the package that the receiver uses."""

import base64
import hashlib
import hmac
import json
import time
from itertools import count

KEY = bytes(range(24))
SECRET = "whsec_" + base64.b64encode(KEY).decode()
OLD_KEY = bytes(range(100, 124))
OLD_SECRET = "whsec_" + base64.b64encode(OLD_KEY).decode()
SHOWN = "a-shared-secret-of-some-length"

_numbers = count(1)


def fresh_id(prefix: str = "wh_") -> str:
    """An id that no other delivery or job has."""
    return f"{prefix}{next(_numbers):06}"


def signature(key: bytes, delivery_id: str, at: str, body: bytes) -> str:
    signed = b".".join([delivery_id.encode(), at.encode(), body])
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def headers(
    body: bytes, *, delivery_id: str | None = None, key: bytes = KEY, age: float = 0.0
) -> dict[str, str]:
    """The headers of a delivery that was signed so many seconds ago."""
    delivery_id = delivery_id or fresh_id()
    at = str(int(time.time() - age))
    return {
        "webhook-id": delivery_id,
        "webhook-timestamp": at,
        "webhook-signature": signature(key, delivery_id, at, body),
    }


def batch_event(job_id: str, kind: str = "batch.completed") -> bytes:
    """OpenAI's event about a batch."""
    return json.dumps(
        {
            "id": fresh_id("evt_"),
            "object": "event",
            "type": kind,
            "created_at": int(time.time()),
            "data": {"id": job_id},
        }
    ).encode()
