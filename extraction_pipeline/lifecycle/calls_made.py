"""The calls that led to an audit event, as part of its details: each one's status and request id,
by which a provider's support finds it."""

from dataclasses import asdict
from typing import Any

from extraction_pipeline.providers.call_log import taken_calls


def with_calls(details: dict[str, Any] | None = None) -> dict[str, Any]:
    """These details, and the calls that were made since the last event of this piece of work."""
    calls = [asdict(call) for call in taken_calls()]
    return {**(details or {}), **({"calls": calls} if calls else {})}
