"""Every status in every provider's own error form, and what it means: one table for all adapters.

A create call says whether a job may exist, a reading only who may act next. The provider's code is
kept, its message never: it may quote the document.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from extraction_pipeline.providers.base import BatchProvider, FailureKind, Submission
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.errors import (
    CallFailed,
    CallRefused,
    OutcomeUnknown,
    ProviderError,
)
from extraction_pipeline.providers.registry import BUILDERS, ProviderName, build_api
from extraction_pipeline_tests.providers.sample_request import sample_request
from extraction_pipeline_tests.providers.scripted_server import (
    Script,
    ScriptedServer,
    answer,
    scripted_server,
    send,
)

SECRET = "Jane Doe, 5 mg"
ACCOUNT, REJECTED, TRANSPORT = FailureKind.ACCOUNT, FailureKind.REJECTED, FailureKind.TRANSPORT
JOB_IDS = {ProviderName.GEMINI: "batches/b1"}
GEMINI_FILE = send(answer(200, b'{"name": "files/f1", "state": "ACTIVE"}'))


class Said(NamedTuple):
    """An error: its status and code, and what it means to a create call and to a reading."""

    status: int
    code: str
    create: type[ProviderError]
    read: type[ProviderError]
    kind: FailureKind


def openai(said: Said) -> dict[str, Any]:
    return {"error": {"message": SECRET, "type": "t", "param": None, "code": said.code}}


def anthropic(said: Said) -> dict[str, Any]:
    error = {"type": said.code, "message": SECRET}
    return {"type": "error", "error": error, "request_id": "req_1"}


def gemini(said: Said) -> dict[str, Any]:
    return {"error": {"code": said.status, "message": SECRET, "status": said.code}}


def infrai(said: Said) -> dict[str, Any]:
    error = {"code": said.code, "message": SECRET, "hint": SECRET, "retryable": None}
    return {"ok": False, "data": None, "error": error, "metadata": {"request_id": "r-1"}}


BODIES: dict[ProviderName, Callable[[Said], dict[str, Any]]] = {
    ProviderName.LOCAL: openai,
    ProviderName.OPENAI: openai,
    ProviderName.ANTHROPIC: anthropic,
    ProviderName.GEMINI: gemini,
    ProviderName.INFRAI: infrai,
}
REFUSED = (CallRefused, CallRefused)
DOUBT = (OutcomeUnknown, CallFailed)
OPENAI = (
    Said(400, "invalid_value", *REFUSED, REJECTED),
    Said(401, "invalid_api_key", *REFUSED, ACCOUNT),
    Said(402, "billing_not_active", *REFUSED, ACCOUNT),
    Said(403, "unsupported_country", *REFUSED, ACCOUNT),
    Said(404, "not_found", *REFUSED, REJECTED),
    Said(409, "conflict", OutcomeUnknown, CallRefused, TRANSPORT),
    Said(413, "too_large", *REFUSED, REJECTED),
    Said(429, "rate_limit_exceeded", *REFUSED, TRANSPORT),
    Said(429, "insufficient_quota", *REFUSED, ACCOUNT),
    Said(500, "server_error", *DOUBT, TRANSPORT),
    Said(503, "overloaded", *DOUBT, TRANSPORT),
)
TABLES = {
    ProviderName.LOCAL: OPENAI,
    ProviderName.OPENAI: OPENAI,
    ProviderName.ANTHROPIC: (
        Said(400, "invalid_request_error", *REFUSED, REJECTED),
        Said(401, "authentication_error", *REFUSED, ACCOUNT),
        Said(402, "billing_error", *REFUSED, ACCOUNT),
        Said(403, "permission_error", *REFUSED, ACCOUNT),
        Said(404, "not_found_error", *REFUSED, REJECTED),
        Said(409, "conflict_error", OutcomeUnknown, CallRefused, TRANSPORT),
        Said(413, "request_too_large", *REFUSED, REJECTED),
        # Without a wish of when to come back, it is the month's limit that is used up.
        Said(429, "rate_limit_error", *REFUSED, ACCOUNT),
        Said(500, "api_error", *DOUBT, TRANSPORT),
        Said(503, "api_error", *DOUBT, TRANSPORT),
        Said(504, "timeout_error", *DOUBT, TRANSPORT),
        Said(529, "overloaded_error", *DOUBT, TRANSPORT),
    ),
    ProviderName.GEMINI: (
        Said(400, "INVALID_ARGUMENT", *REFUSED, REJECTED),
        Said(400, "FAILED_PRECONDITION", *REFUSED, ACCOUNT),
        Said(401, "UNAUTHENTICATED", *REFUSED, ACCOUNT),
        Said(402, "RESOURCE_EXHAUSTED", *REFUSED, ACCOUNT),
        Said(403, "PERMISSION_DENIED", *REFUSED, ACCOUNT),
        Said(404, "NOT_FOUND", *REFUSED, REJECTED),
        Said(409, "ABORTED", OutcomeUnknown, CallRefused, TRANSPORT),
        Said(413, "INVALID_ARGUMENT", *REFUSED, REJECTED),
        Said(429, "RESOURCE_EXHAUSTED", *REFUSED, TRANSPORT),
        Said(500, "INTERNAL", *DOUBT, TRANSPORT),
        Said(503, "UNAVAILABLE", *DOUBT, TRANSPORT),
    ),
    ProviderName.INFRAI: (
        Said(400, "VALIDATION_ERROR", *REFUSED, REJECTED),
        Said(401, "UNAUTHORIZED", *REFUSED, ACCOUNT),
        Said(402, "INSUFFICIENT_CREDIT", *REFUSED, ACCOUNT),
        Said(403, "FORBIDDEN", *REFUSED, ACCOUNT),
        Said(404, "NOT_FOUND", *REFUSED, REJECTED),
        Said(409, "IDEMPOTENCY_CONFLICT", OutcomeUnknown, CallRefused, TRANSPORT),
        Said(413, "PAYLOAD_TOO_LARGE", *REFUSED, REJECTED),
        Said(429, "RATE_LIMITED", *REFUSED, TRANSPORT),
        Said(500, "INTERNAL_ERROR", *DOUBT, TRANSPORT),
        Said(503, "INTERNAL_ERROR", *DOUBT, TRANSPORT),
    ),
}
EVERY_ERROR = pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param(name, said, id=f"{name}-{said.status}-{said.code}")
        for name, table in TABLES.items()
        for said in table
    ],
)


def script(name: ProviderName, said: Said, *headers: str) -> Script:
    return send(answer(said.status, json.dumps(BODIES[name](said)).encode(), *headers))


def provider_at(name: ProviderName, server: ScriptedServer) -> BatchProvider:
    endpoint = ProviderEndpoint(server.url.removesuffix("/v1"), api_key="k-1", read_timeout=5)
    return build_api(name, endpoint)


def test_every_provider_has_its_table() -> None:
    asked_for = {400, 401, 402, 403, 404, 409, 413, 429, 500, 503}
    for name in BUILDERS:
        assert asked_for <= {said.status for said in TABLES[name]}, name


@EVERY_ERROR
def test_a_create_call(name: ProviderName, said: Said, tmp_path: Path) -> None:
    before = [GEMINI_FILE] if name is ProviderName.GEMINI else []
    with scripted_server(*before, script(name, said)) as server:
        provider = provider_at(name, server)
        payload = tmp_path / "payload"
        payload.write_bytes(provider.encode_request(sample_request()) + b"\n")
        with pytest.raises(ProviderError) as caught:
            provider.submit(Submission("k.v1.0123456789abcdef", "m", "file-1", payload))
    assert type(caught.value) is said.create
    assert len(server.requests) == len(before) + 1
    if said.create is CallRefused:
        assert caught.value.kind is said.kind
    _tells(caught.value, said)


@EVERY_ERROR
def test_a_reading(name: ProviderName, said: Said) -> None:
    with scripted_server(script(name, said)) as server, pytest.raises(ProviderError) as caught:
        provider_at(name, server).status(JOB_IDS.get(name, "b1"))
    assert (type(caught.value), caught.value.kind) == (said.read, said.kind)
    _tells(caught.value, said)


def _tells(error: ProviderError, said: Said) -> None:
    assert (error.http_status, error.code) == (said.status, said.code)
    assert said.code in str(error) and str(said.status) in str(error)
    assert "Jane" not in f"{error} {error!r} {error.__cause__!r} {error.__context__!r}"


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_wish_to_be_asked_later_is_kept_in_either_form(name: ProviderName, form: str) -> None:
    limited = next(said for said in TABLES[name] if said.status == 429)
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    header = f"Retry-After: {'90' if form == 'seconds' else later}"
    with (
        scripted_server(script(name, limited, header)) as server,
        pytest.raises(CallRefused) as caught,
    ):
        provider_at(name, server).status(JOB_IDS.get(name, "b1"))
    assert caught.value.kind is TRANSPORT
    assert caught.value.retry_after is not None
    assert 80 <= caught.value.retry_after <= 90
