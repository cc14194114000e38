"""Deliveries over HTTP: which are let in, what is kept of them, and what the sender hears."""

import json
import logging
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import pytest
import requests

from extraction_pipeline.settings import load_settings
from extraction_pipeline.webhooks import app, server
from extraction_pipeline.webhooks.senders import senders
from extraction_pipeline.webhooks.server import receiving
from extraction_pipeline_tests.webhooks.conftest import LOOPBACK, SECRETS, Desk
from extraction_pipeline_tests.webhooks.signing import (
    KEY,
    OLD_KEY,
    SHOWN,
    batch_event,
    fresh_id,
    headers,
    signature,
)


def test_a_delivery_makes_its_job_due_and_nothing_else(receiver: Desk) -> None:
    job_id, other = receiver.submitted(), receiver.submitted()
    assert receiver.announce(job_id) == 200
    assert receiver.outcomes(job_id) == [("made_due", 1)]
    assert receiver.is_due(job_id)
    assert not receiver.is_due(other)
    state = "SELECT state::text FROM extraction.batch_jobs WHERE job_id = :job_id"
    assert receiver.rows(state, job_id=job_id)[0][0] == "submitted"  # it is no evidence


@pytest.mark.parametrize("state", ["ended", "collected", "published", "held", "failed"])
def test_a_job_that_is_not_with_the_provider_is_left_alone(receiver: Desk, state: str) -> None:
    job_id = receiver.submitted(state=state)
    assert receiver.announce(job_id) == 200
    assert receiver.outcomes(job_id) == [("settled", 1)]
    assert not receiver.is_due(job_id)


def test_row_56_ten_threads_with_one_id_are_one_delivery(receiver: Desk) -> None:
    job_id, delivery_id = receiver.submitted(), fresh_id()
    with ThreadPoolExecutor(10) as threads:
        said = list(threads.map(lambda _: receiver.announce(job_id, delivery_id), range(10)))
    assert said == [200] * 10
    assert receiver.outcomes(job_id) == [("made_due", 10)]


def test_row_56_ten_ids_at_three_replicas_are_ten_hints(
    receiver: Desk, receivers_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    known, job_id = senders(load_settings()), receiver.submitted()
    with ExitStack() as stack:
        more = [
            stack.enter_context(receiving(known, receivers_url, LOOPBACK, 0)).url for _ in range(2)
        ]
        desks = [receiver, *(Desk(url, receiver.engine) for url in more)]
        ids = [fresh_id() for _ in range(10)]
        with ThreadPoolExecutor(10) as threads:
            said = list(
                threads.map(
                    lambda n: desks[n % 3].announce(job_id, ids[n % 10]),
                    range(30),
                )
            )
    assert said == [200] * 30
    assert receiver.outcomes(job_id) == [("made_due", 3)] * 10
    assert receiver.is_due(job_id)


def test_a_repeated_delivery_does_not_make_the_job_due_again(receiver: Desk) -> None:
    job_id, delivery_id = receiver.submitted(), fresh_id()
    receiver.announce(job_id, delivery_id)
    receiver.rows(
        "UPDATE extraction.batch_jobs SET due_at = '2100-01-01', poll_count = 1"
        " WHERE job_id = :job_id RETURNING id",
        job_id=job_id,
    )
    assert receiver.announce(job_id, delivery_id) == 200
    assert not receiver.is_due(job_id)
    assert receiver.announce(job_id) == 200  # the next one does
    assert receiver.is_due(job_id)


def test_what_comes_without_an_id_makes_its_job_due_again_once_that_was_read(
    receiver: Desk,
) -> None:
    """The first came too early, and the next says the same words."""
    job_id = receiver.submitted("infrai")
    body = json.dumps({"batch_id": job_id}).encode()

    def announced(_: int = 0) -> int:
        return receiver.post("infrai", body, {"X-Webhook-Secret": SHOWN}).status_code

    assert announced() == 200
    waiting = _due_at(receiver, job_id)
    assert announced() == 200
    assert _due_at(receiver, job_id) == waiting, "it was not read since, and keeps its turn"
    read = "UPDATE extraction.batch_jobs SET {} WHERE job_id = :job_id RETURNING id"
    receiver.rows(read.format("due_at = '2100-01-01', poll_count = 9"), job_id=job_id)
    with ThreadPoolExecutor(10) as threads:
        assert list(threads.map(announced, range(10))) == [200] * 10
    assert receiver.is_due(job_id)
    assert receiver.outcomes(job_id) == [("made_due", 12)]
    receiver.rows(read.format("due_at = '2100-01-01', state = 'ended'"), job_id=job_id)
    assert announced() == 200
    assert not receiver.is_due(job_id), "it is read no more"


def _due_at(receiver: Desk, job_id: str) -> object:
    asked = "SELECT due_at FROM extraction.batch_jobs WHERE job_id = :job_id"
    return receiver.rows(asked, job_id=job_id)[0][0]


BODY = batch_event("batch_refused")


def _without(name: str) -> dict[str, str]:
    return {key: value for key, value in headers(BODY).items() if key != name}


REFUSED: dict[str, tuple[str, bytes, Callable[[], dict[str, str]]]] = {
    "another key": ("openai", BODY, lambda: headers(BODY, key=b"x" * 24)),
    "another body": ("openai", BODY.replace(b":", b": ", 1), lambda: headers(BODY)),
    "another id": ("openai", BODY, lambda: {**headers(BODY), "webhook-id": "wh_other"}),
    "too old": ("openai", BODY, lambda: headers(BODY, age=301)),
    "a day late": ("openai", BODY, lambda: headers(BODY, age=86400)),
    "of the future": ("openai", BODY, lambda: headers(BODY, age=-302)),
    "no id": ("openai", BODY, lambda: _without("webhook-id")),
    "no time": ("openai", BODY, lambda: _without("webhook-timestamp")),
    "no signature": ("openai", BODY, lambda: _without("webhook-signature")),
    "no headers": ("openai", BODY, dict),
    "a time that is none": (
        "openai",
        BODY,
        lambda: {**headers(BODY), "webhook-timestamp": "nan"},
    ),
    "a signature that is none": (
        "openai",
        BODY,
        lambda: {**headers(BODY), "webhook-signature": "v1"},
    ),
    "base64 that is none": (
        "openai",
        BODY,
        lambda: {**headers(BODY), "webhook-signature": "v1,!!!"},
    ),
    "a signature of another scheme": (
        "openai",
        BODY,
        lambda: {**headers(BODY), "webhook-signature": "v1a," + "A" * 86 + "=="},
    ),
    "no UTF-8": ("openai", b"\xff\xfe", lambda: headers(b"\xff\xfe")),
    "an empty body": ("openai", b"", lambda: headers(BODY)),
    "a provider without a secret": ("anthropic", BODY, lambda: headers(BODY)),
    "a provider that is none": ("nobody", BODY, lambda: headers(BODY)),
    "the batch server without a secret": ("local", BODY, lambda: headers(BODY)),
    "a token where none is taken": (
        "gemini",
        BODY,
        lambda: {**headers(BODY), "webhook-signature": "e30.e30.c2ln"},
    ),
    "no shared secret": ("infrai", BODY, lambda: headers(BODY)),
    "another shared secret": ("infrai", BODY, lambda: {"X-Webhook-Secret": SHOWN + "x"}),
    "half a shared secret": ("infrai", BODY, lambda: {"X-Webhook-Secret": SHOWN[:-1]}),
    "a scheme that is none": ("infrai", BODY, lambda: {"Authorization": f"Digest {SHOWN}"}),
    "no base64": ("infrai", BODY, lambda: {"Authorization": "Basic !!!"}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_genuine_is_refused_in_the_same_words(receiver: Desk, case: str) -> None:
    provider, body, sent = REFUSED[case]
    before = receiver.kept()
    answer = receiver.post(provider, body, sent())
    assert (answer.status_code, answer.json()) == (401, {"error": "refused"})
    assert set(answer.headers) == {"date", "content-length", "content-type", "connection"}
    assert receiver.kept() == before


def test_two_of_a_header_are_refused(receiver: Desk) -> None:
    sent = headers(BODY)
    lines = [f"{name}: {value}" for name, value in [*sent.items(), *sent.items()]]
    assert _raw(receiver, lines, BODY).startswith(b"HTTP/1.1 401")


def test_secrets_may_be_rotated(receiver: Desk) -> None:
    old, both = batch_event("batch_r1"), batch_event("batch_r2")
    assert receiver.post("openai", old, headers(old, key=OLD_KEY)).status_code == 200
    sent = headers(both, key=b"y" * 24)
    ours = signature(KEY, sent["webhook-id"], sent["webhook-timestamp"], both)
    sent["webhook-signature"] += f" v1a,asymmetric {ours}"
    assert receiver.post("openai", both, sent).status_code == 200


@pytest.mark.parametrize("given", ["batch-7", "batches/batch-7"])
def test_gemini_names_its_job_with_or_without_what_it_begins_with(
    receiver: Desk, given: str
) -> None:
    job_id = receiver.submitted("gemini")
    named = given.replace("batch-7", job_id.removeprefix("batches/"))
    body = json.dumps(
        {
            "type": "batch.succeeded",
            "version": "v1",
            "timestamp": "2026-01-22T12:00:00Z",
            "data": {"id": named, "output_file_uri": "files/x"},
        }
    ).encode()
    assert receiver.post("gemini", body, headers(body)).status_code == 200
    assert receiver.outcomes(job_id) == [("made_due", 1)]


@pytest.mark.parametrize(
    "shown",
    [
        {"X-Webhook-Secret": SHOWN},
        {"Authorization": f"Bearer {SHOWN}"},
        {"Authorization": requests.auth._basic_auth_str("any", SHOWN)},
    ],
    ids=["header", "bearer", "basic"],
)
@pytest.mark.parametrize(
    "content", [{"data": {"batch_id": "ID"}}, {"batch_id": "ID"}, {"job_id": "ID", "event": "x"}]
)
def test_a_secret_is_shown_where_nothing_is_signed(
    receiver: Desk, shown: dict[str, str], content: dict[str, object]
) -> None:
    job_id = receiver.submitted("infrai")
    body = json.dumps(content).replace("ID", job_id).encode()
    for _ in range(2):  # without an id, the same bytes are the same delivery
        assert receiver.post("infrai", body, shown).status_code == 200
    assert receiver.outcomes(job_id) == [("made_due", 2)]
    assert receiver.post("infrai", body, {**shown, "webhook-id": fresh_id()}).status_code == 200
    assert receiver.outcomes(job_id) == [("made_due", 2), ("made_due", 1)]


UNREADABLE = {
    "no JSON": b"batch.completed",
    "no object": b"[1]",
    "a name twice": b'{"type": "batch.completed", "data": {"id": "a"}, "data": {"id": "b"}}',
    "a name twice within": b'{"type": "batch.completed", "data": {"id": "a", "id": "b"}}',
    "no kind": b'{"data": {"id": "a"}}',
    "no id": b'{"type": "batch.completed", "data": {}}',
    "an id that is none": b'{"type": "batch.completed", "data": {"id": ["a"]}}',
    "an id with a NUL": rb'{"type": "batch.completed", "data": {"id": "a\u0000"}}',
    "an id that is a text": b'{"type": "batch.completed", "data": {"id": "Mrs Doe, 81 years"}}',
    "a long id": b'{"type": "batch.completed", "data": {"id": "' + b"a" * 300 + b'"}}',
    "too deep": b"[" * 60_000,
    "a huge number": b'{"type": "batch.completed", "data": {"id": ' + b"9" * 5000 + b"}}",
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_is_genuine_and_cannot_be_read_is_kept_as_such(receiver: Desk, case: str) -> None:
    body, delivery_id = UNREADABLE[case], fresh_id()
    answer = receiver.post("openai", body, headers(body, delivery_id=delivery_id))
    assert answer.status_code == 200  # it would be no better the next time
    assert receiver.outcome_of(delivery_id) == "unreadable"


def test_other_events_of_the_account_are_counted_and_ignored(receiver: Desk) -> None:
    delivery_id = fresh_id()
    body = batch_event("resp_1", "response.completed")
    assert receiver.post("openai", body, headers(body, delivery_id=delivery_id)).ok
    assert receiver.outcome_of(delivery_id) == "ignored"


@pytest.mark.parametrize("kind", ["text/plain", "application/json; charset=utf-16", "x", None])
def test_the_content_type_does_not_matter(receiver: Desk, kind: str | None) -> None:
    body = batch_event("batch_typed")
    sent = headers(body) | ({} if kind is None else {"Content-Type": kind})
    assert receiver.post("openai", body, sent).status_code == 200


def test_a_body_in_chunks_is_taken_as_it_is(receiver: Desk) -> None:
    body = batch_event(receiver.submitted())
    pieces = iter([body[:10], body[10:]])
    assert receiver.post("openai", pieces, headers(body)).status_code == 200


def test_a_body_that_is_too_large_is_not_read(receiver: Desk) -> None:
    body = b" " * (app.LARGEST_BODY + 1)
    announced = [f"{name}: {value}" for name, value in headers(body).items()]
    assert _raw(receiver, announced, b"", length=10**9).startswith(b"HTTP/1.1 413")
    assert _raw(receiver, announced, b"", length=10**30).startswith(b"HTTP/1.1 400")
    chunk = b"%x\r\n%s\r\n" % (len(body), body)
    said = _raw(receiver, [*announced, "Transfer-Encoding: chunked"], chunk, length=None)
    assert said.startswith(b"HTTP/1.1 413")


def test_who_is_slow_holds_no_place(receiver: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "BODY_SECONDS", 0.2)
    monkeypatch.setattr(server, "CONNECTION_SECONDS", 0.5)
    sent = [f"{name}: {value}" for name, value in headers(BODY).items()]
    assert _raw(receiver, sent, BODY[:5], length=len(BODY)).startswith(b"HTTP/1.1 408")
    start = time.monotonic()
    host = urlsplit(receiver.url)
    with socket.create_connection((host.hostname, host.port), timeout=10) as silent:
        silent.sendall(b"POST /webhooks/openai HTTP/1.1\r\n")
        with suppress(ConnectionResetError):
            assert silent.recv(1) == b""  # it was closed
    assert time.monotonic() - start < 5
    assert receiver.announce("batch_after") == 200


def test_other_ways_lead_nowhere(receiver: Desk) -> None:
    assert requests.get(f"{receiver.url}/health", timeout=5).json() == {"status": "ok"}
    assert requests.get(f"{receiver.url}/webhooks/openai", timeout=5).status_code == 405
    assert requests.post(f"{receiver.url}/webhooks", timeout=5).status_code == 404
    assert requests.post(f"{receiver.url}/webhooks/openai/x", timeout=5).status_code == 404
    slash = requests.post(f"{receiver.url}/webhooks/openai/", timeout=5, allow_redirects=False)
    assert slash.status_code == 404
    assert requests.get(f"{receiver.url}/docs", timeout=5).status_code == 404


def test_nothing_of_a_delivery_is_logged(receiver: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret_words = b'{"type": "batch.completed", "data": "Mrs Doe"}'
    receiver.post("openai", secret_words, headers(secret_words))
    receiver.post("openai", secret_words, headers(secret_words, key=b"z" * 24))
    receiver.post("Mrs-Doe", secret_words, headers(secret_words))
    receiver.post("infrai", secret_words, {"X-Webhook-Secret": "Doe" * 9})
    assert _raw(receiver, ["Mrs Doe"], b"").startswith(b"HTTP/1.1 400")
    ours = [one.getMessage() for one in caplog.records if one.name.startswith("extraction")]
    assert any("not of a form that is known" in line for line in ours)
    assert not [one for one in caplog.records if one.name.startswith("uvicorn")]
    assert "Doe" not in "".join(
        one.getMessage() for one in caplog.records if not one.name.startswith("urllib3")
    )


def _raw(receiver: Desk, sent: list[str], body: bytes, length: int | None = -1) -> bytes:
    """What comes back for a request as it is written here."""
    at = urlsplit(receiver.url)
    if length is not None:
        sent = [*sent, f"Content-Length: {len(body) if length < 0 else length}"]
    head = "\r\n".join(["POST /webhooks/openai HTTP/1.1", "Host: x", *sent, "", ""])
    with socket.create_connection((at.hostname, at.port), timeout=10) as connection:
        connection.sendall(head.encode() + body)
        return connection.recv(200)
