"""What goes over the wire to Infrai: one create call under a key, and its contract."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from extraction_pipeline.providers.base import (
    FailureKind,
    JobPhase,
    ResultKind,
    ResultReference,
    SearchVerdict,
    Sought,
    Submission,
)
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.errors import CallFailed, CallRefused, OutcomeUnknown
from extraction_pipeline.providers.infrai import InfraiBatchProvider
from extraction_pipeline.providers.infrai_discovery import read_contract
from extraction_pipeline_tests.providers.sample_request import sample_request
from extraction_pipeline_tests.providers.scripted_server import (
    Script,
    ScriptedServer,
    answer,
    drop,
    scripted_server,
    send,
)

KEY = "notes.v1.0123"


def provider_at(server: ScriptedServer, capability: str = "ai.chat") -> InfraiBatchProvider:
    endpoint = ProviderEndpoint(
        server.url.removesuffix("/v1"),
        api_key="k-1",
        read_timeout=5,
        infrai_capability=capability,
    )
    return InfraiBatchProvider("infrai", endpoint)


def enveloped(data: object = None, error: object = None) -> bytes:
    return json.dumps(
        {
            "ok": error is None,
            "data": data,
            "error": error,
            "metadata": {"request_id": "0192-r", "cost_usd": 0.1},
        }
    ).encode()


def done(data: object) -> Script:
    return send(answer(200, enveloped(data)))


def refusal(status: int, code: str, **fields: object) -> Script:
    return send(answer(status, enveloped(None, {"code": code, "message": "Jane"} | fields)))


def payload(folder: Path, provider: InfraiBatchProvider) -> Path:
    path = folder / "payload"
    lines = [provider.encode_request(sample_request(custom_id=f"job-{n}")) for n in range(2)]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


@pytest.mark.parametrize(
    ("data", "job_id"),
    [
        ({"batch_id": "b1", "state": "queued", "total_count": 2}, "b1"),
        ({"id": "b2", "status": "queued"}, "b2"),
    ],
)
def test_a_batch_is_created_under_its_key_as_canonical_json(tmp_path, data, job_id):
    with scripted_server(done(data)) as server:
        provider = provider_at(server, "ai.chat.v2")
        path = payload(tmp_path, provider)
        receipt = provider.submit(Submission(KEY, "some-model", payload=path))
    assert (receipt.job_id, receipt.provider_state) == (job_id, "queued")
    assert (receipt.call.http_status, receipt.call.request_id) == (200, "0192-r")
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/ai/batch/submit HTTP")
    assert b"\r\nIdempotency-Key: notes.v1.0123" in head
    assert b"\r\nAuthorization: Bearer k-1" in head
    value = json.loads(body)
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert body.decode() == canonical + "\n"
    assert value["idempotency_key"] == KEY
    assert value["metadata"] == {"extraction_job_key": KEY}
    assert [one["capability"] for one in value["requests"]] == ["ai.chat.v2"] * 2
    assert b",".join(path.read_bytes().splitlines()) in body


@pytest.mark.parametrize("status", [200, None])
@pytest.mark.parametrize(
    ("code", "http", "error", "kind"),
    [
        ("INSUFFICIENT_CREDIT", 402, CallRefused, FailureKind.ACCOUNT),
        ("UNAUTHORIZED", 401, CallRefused, FailureKind.ACCOUNT),
        ("VALIDATION_ERROR", 400, CallRefused, FailureKind.REJECTED),
        ("PAYLOAD_TOO_LARGE", 413, CallRefused, FailureKind.REJECTED),
        ("RATE_LIMITED", 429, CallRefused, FailureKind.TRANSPORT),
        ("IDEMPOTENCY_CONFLICT", 409, OutcomeUnknown, FailureKind.TRANSPORT),
        ("INTERNAL_ERROR", 500, OutcomeUnknown, FailureKind.TRANSPORT),
    ],
)
def test_a_refusal_is_one_under_its_own_status_and_under_200(
    tmp_path, status, code, http, error, kind
):
    with scripted_server(refusal(status or http, code)) as server:
        provider = provider_at(server)
        path = payload(tmp_path, provider)
        with pytest.raises(error) as caught:
            provider.submit(Submission(KEY, "some-model", payload=path))
    assert (caught.value.kind, caught.value.code) == (kind, code)
    assert (caught.value.http_status, caught.value.request_id) == (status or http, "0192-r")
    assert "Jane" not in str(caught.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("wish", "seconds"), [("1e9", 86400), ("1e300", 86400), ("1e999", 86400), ("NaN", None)]
)
def test_a_wish_to_wait_in_the_body_is_cut_to_a_day(tmp_path, wish, seconds):
    body = b'{"ok": false, "error": {"code": "RATE_LIMITED", "retry_after": %b}}' % wish.encode()
    with scripted_server(send(answer(429, body))) as server:
        provider = provider_at(server)
        with pytest.raises(CallRefused) as caught:
            provider.submit(Submission(KEY, "m", payload=payload(tmp_path, provider)))
    assert caught.value.retry_after == seconds


@pytest.mark.parametrize("script", [drop, done({"state": "queued"}), done(None), send(answer(502))])
def test_a_create_call_in_doubt_is_made_once(tmp_path, script):
    with scripted_server(script) as server:
        provider = provider_at(server)
        path = payload(tmp_path, provider)
        with pytest.raises(OutcomeUnknown):
            provider.submit(Submission(KEY, "some-model", payload=path))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("first_tried", "verdict"),
    [
        (timedelta(minutes=1), SearchVerdict.REPEATABLE),
        (timedelta(hours=22), SearchVerdict.REPEATABLE),
        (timedelta(hours=24), SearchVerdict.UNCERTAIN),
    ],
)
def test_repeating_is_the_search_as_long_as_the_key_is_remembered(first_tried, verdict):
    now = datetime.now(UTC)
    sought = Sought(KEY, now - first_tried, now, 2, "0123456789abcdef-")
    with scripted_server(drop) as server:
        search = provider_at(server).find(sought)
        assert (search.verdict, search.found) == (verdict, ())
        assert server.requests == []


def test_reading_a_batch():
    data = {"status": "processing", "total_count": 2, "completed_count": 1}
    with scripted_server(done(data)) as server:
        status = provider_at(server).status("b/1")
    assert (status.job_id, status.phase, status.counts.completed) == ("b/1", JobPhase.PENDING, 1)
    assert status.call.request_id == "0192-r"
    assert server.requests[0].startswith(b"GET /v1/ai/batch/status/b%2F1 ")


@pytest.mark.parametrize("status", [200, 404])
def test_a_batch_that_is_not_there(status):
    with (
        scripted_server(refusal(status, "NOT_FOUND")) as server,
        pytest.raises(CallRefused) as caught,
    ):
        provider_at(server).status("b1")
    assert caught.value.kind is FailureKind.REJECTED


REFERENCE = ResultReference(ResultKind.OUTPUT, "b1")


def test_items_come_as_lines():
    items = [{"custom_id": "a\u2028é", "n": 12345678901234567890123}, {"custom_id": "b"}, 7]
    with scripted_server(done({"items": items})) as server:
        provider = provider_at(server)
        with provider.download(REFERENCE) as chunks:
            content = b"".join(chunks)
    assert content.isascii() and content.endswith(b"\n")
    lines = [json.loads(line) for line in content.split(b"\n")[:-1]]
    assert (lines[0]["custom_id"], lines[1:]) == ("a\u2028é", items[1:])
    assert server.requests[0].startswith(b"GET /v1/ai/batch/results/b1 ")


@pytest.mark.parametrize(
    "script",
    [
        done({"items": [], "has_more": True}),
        done({}),
        refusal(200, "INTERNAL_ERROR"),
        send(answer(200, enveloped({"items": []}))[:-3]),
    ],
)
def test_results_that_are_not_whole_raise(script):
    with scripted_server(script) as server:
        provider = provider_at(server)
        with pytest.raises(CallFailed), provider.download(REFERENCE) as chunks:
            b"".join(chunks)


def test_cancelling():
    with scripted_server(done({}), done({"state": "cancelling"})) as server:
        assert provider_at(server).cancel("b1").phase is JobPhase.PENDING
    assert server.requests[0].startswith(b"POST /v1/ai/batch/cancel/b1 ")


def test_a_cancel_that_is_refused_is_told_or_gives_the_end():
    conflict = refusal(409, "CONFLICT")
    with scripted_server(conflict, done({"state": "completed"})) as server:
        assert provider_at(server).cancel("b1").phase is JobPhase.ENDED
    with scripted_server(refusal(404, "NOT_FOUND")) as server, pytest.raises(CallRefused):
        provider_at(server).cancel("b1")


DESCRIPTION: Mapping[str, Any] = {
    "id": "ai.batch.submit",
    "method": "POST",
    "path": "/v1/ai/batch/submit",
    "available": True,
    "params": [
        {"name": "requests", "type": "BatchRequestItem[]", "required": True},
        {"name": "metadata", "type": "object"},
    ],
    "errors": [{"code": "INSUFFICIENT_CREDIT", "retryable": False}, {"code": "X"}],
}


def test_a_contract_is_read_and_typed():
    with scripted_server(done(DESCRIPTION)) as server:
        contract = provider_at(server).described("ai.batch.submit")
    assert server.requests[0].startswith(b"GET /v1/discovery/ai.batch.submit ")
    assert (contract.capability, contract.method, contract.path, contract.available) == (
        "ai.batch.submit",
        "POST",
        "/v1/ai/batch/submit",
        True,
    )
    assert [(one.name, one.type, one.required) for one in contract.parameters] == [
        ("requests", "BatchRequestItem[]", True),
        ("metadata", "object", False),
    ]
    assert [(one.code, one.retryable) for one in contract.errors] == [
        ("INSUFFICIENT_CREDIT", False),
        ("X", None),
    ]
    assert contract.parameter_names() == {"requests", "metadata"}
    assert json.loads(contract.document) == DESCRIPTION


def test_a_description_of_another_capability_is_none():
    with (
        scripted_server(done(DESCRIPTION)) as server,
        pytest.raises(CallFailed, match="could not be read"),
    ):
        provider_at(server).described("ai.batch.status")


def contract_of(**changes: Any) -> Any:
    return read_contract(enveloped({**DESCRIPTION, **changes}))


def test_the_hash_of_a_contract_changes_with_what_it_says_and_nothing_else():
    same = contract_of()
    turned = json.dumps(dict(reversed(list(DESCRIPTION.items())))).encode()
    assert len(same.contract_hash) == 64
    assert read_contract(turned).contract_hash == same.contract_hash
    assert contract_of(generated_at="2026-03-01").contract_hash == same.contract_hash
    hashes = {
        same.contract_hash,
        contract_of(available=False).contract_hash,
        contract_of(params=DESCRIPTION["params"][:1]).contract_hash,
        contract_of(errors=[]).contract_hash,
        contract_of(something="new").contract_hash,
    }
    assert len(hashes) == 5


@pytest.mark.parametrize(
    "params",
    [
        {"requests": {"type": "BatchRequestItem[]", "required": True}, "metadata": "object"},
        {
            "type": "object",
            "properties": {
                "requests": {"type": "BatchRequestItem[]"},
                "metadata": {"type": "object"},
            },
            "required": ["requests"],
        },
    ],
)
def test_parameters_in_other_forms(params):
    contract = contract_of(params=params)
    assert contract.parameters == contract_of().parameters


def test_a_capability_that_is_not_available_says_so():
    assert contract_of(available=False).available is False
    assert contract_of(params=None, errors="odd").parameters == ()


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", enveloped([]), enveloped({"method": "GET"})])
def test_what_describes_no_capability_is_no_contract(body):
    with pytest.raises(ValueError, match=r"."):
        read_contract(body)
