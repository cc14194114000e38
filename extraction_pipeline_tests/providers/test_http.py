"""The HTTP client against a server that misbehaves on purpose."""

import gzip
import json
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest

from extraction_pipeline.providers.base import FailureKind
from extraction_pipeline.providers.errors import (
    CallFailed,
    CallRefused,
    OutcomeUnknown,
    ProviderError,
)
from extraction_pipeline_tests.providers.http_client import KEY, client, error_answer
from extraction_pipeline_tests.providers.scripted_server import (
    answer,
    drop,
    read_request,
    scripted_server,
    send,
    silence,
)

BODY = b'{"secret": "what a document says"}'


def _nothing() -> None:
    pass


def create(url: str, **options: float):
    return client(url, **options).create("/batches", BODY, json.loads, last_look=_nothing)


def get(url: str, **options: float):
    return client(url, **options).get("/batches", json.loads, {"after": "cursor-secret"})


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


DOUBTFUL = {
    "dropped after the request": drop,
    "no answer in time": silence(3),
    "500": send(answer(500)),
    "502": send(answer(502, b"<html>bad gateway</html>")),
    "503": send(answer(503)),
    "408": send(answer(408)),
    "409": send(error_answer(409, "conflict")),
    "425": send(answer(425)),
    "a 4xx that nobody knows": send(answer(460)),
    "redirect": send(answer(307, b"", "Location: /v1/elsewhere")),
    "redirect to nowhere": send(answer(302, b"", "Location: http://[")),
    "unreadable 200": send(answer(200, b"<html>welcome</html>")),
    "200 cut short": send(answer(200, b'{"id": "batch_1"}')[:-4]),
    "200 cut short in chunks": send(
        answer(200, b'11\r\n{"id": "batch_1"}', "Transfer-Encoding: chunked", framed=False)
    ),
    "no HTTP at all": send(b"SSH-2.0-OpenSSH_9.2\r\n"),
}


@pytest.mark.parametrize("script", DOUBTFUL.values(), ids=DOUBTFUL.keys())
def test_a_create_call_in_doubt_is_an_unknown_outcome_and_is_sent_once(script):
    with scripted_server(script) as server, pytest.raises(OutcomeUnknown) as caught:
        create(server.url, read_timeout=0.5)
    assert len(server.requests) == 1
    assert server.requests[0].endswith(BODY)
    assert caught.value.kind is FailureKind.TRANSPORT


REFUSALS = [
    (400, None, FailureKind.REJECTED),
    (400, "billing_hard_limit_reached", FailureKind.ACCOUNT),
    (401, "invalid_api_key", FailureKind.ACCOUNT),
    (402, None, FailureKind.ACCOUNT),
    (403, None, FailureKind.ACCOUNT),
    (404, None, FailureKind.REJECTED),
    (413, None, FailureKind.REJECTED),
    (422, None, FailureKind.REJECTED),
    (429, "rate_limit_exceeded", FailureKind.TRANSPORT),
    (429, "insufficient_quota", FailureKind.ACCOUNT),
]


@pytest.mark.parametrize(("status", "code", "kind"), REFUSALS)
@pytest.mark.parametrize("call", [create, get])
def test_a_refusal_is_told_apart_by_status_and_code(status, code, kind, call):
    said = error_answer(status, code, "X-Request-Id: req_7")
    with scripted_server(send(said)) as server, pytest.raises(CallRefused) as caught:
        call(server.url)
    error = caught.value
    assert (error.kind, error.http_status, error.code) == (kind, status, code)
    assert error.request_id == "req_7"
    assert len(server.requests) == 1


def test_a_create_call_that_was_answered_gives_its_value_and_request_id():
    said = answer(200, b'{"id": "batch_1"}', "x-request-id: req_1")
    with scripted_server(send(said)) as server:
        reply = create(server.url)
    assert reply.value == {"id": "batch_1"}
    assert (reply.call.http_status, reply.call.request_id) == (200, "req_1")


def test_connection_refused_proves_that_nothing_was_sent():
    with pytest.raises(CallFailed, match="nothing was sent"):
        create(f"http://127.0.0.1:{free_port()}/v1")


def test_a_name_that_does_not_resolve_proves_that_nothing_was_sent(monkeypatch):
    def no_such_name(*arguments, **options):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_such_name)
    with pytest.raises(CallFailed, match="does not resolve; nothing was sent"):
        create("http://provider.invalid/v1")


@contextmanager
def full_server() -> Iterator[str]:
    """The URL of a server whose kernel leaves every connection without an answer."""
    with closing(socket.socket()) as full, ExitStack() as fillers:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        for _ in range(4):
            filler = fillers.enter_context(closing(socket.socket()))
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        yield f"http://127.0.0.1:{port}/v1"


def test_a_connect_time_out_proves_that_nothing_was_sent():
    with (
        full_server() as url,
        pytest.raises(CallFailed, match="no connection within the time-out; nothing"),
    ):
        create(url, connect_timeout=0.3)


def test_a_small_reading_waits_no_longer_for_its_connection_than_for_its_answer():
    """The time of a tick is made for that."""
    begun = time.monotonic()
    with (
        full_server() as url,
        pytest.raises(CallFailed, match="no connection within the time-out"),
    ):
        get(url, connect_timeout=5.0, read_timeout=0.3)
    assert time.monotonic() - begun < 2


def test_a_certificate_that_is_not_accepted_proves_that_nothing_was_sent(tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = subprocess.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost "
        f"-keyout {key} -out {certificate}".split(),
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("openssl makes no certificate here")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with scripted_server(send(answer(200)), tls=context) as server:
        with pytest.raises(CallFailed, match="TLS connection failed; nothing was sent"):
            create(server.url.replace("http://", "https://"))
        assert server.requests == []


def test_a_proxy_that_cannot_be_reached_proves_that_nothing_was_sent(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{free_port()}")
    with pytest.raises(CallFailed, match="proxy could not be used; nothing was sent"):
        create("https://provider.invalid/v1")


def test_a_proxy_is_used_for_real_hosts_and_not_for_this_machine(monkeypatch):
    with scripted_server(send(answer(200))) as proxy, scripted_server(send(answer(200))) as own:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        get(own.url)
        assert (len(own.requests), len(proxy.requests)) == (1, 0)
        get("http://provider.invalid/v1")
    assert proxy.requests[0].startswith(b"GET http://provider.invalid/v1/batches")


def test_a_netrc_file_does_not_replace_the_key(tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine provider.invalid login someone password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with scripted_server(send(answer(200))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        get("http://provider.invalid/v1")
    assert f"Authorization: Bearer {KEY}".encode() in proxy.requests[0]


def test_create_calls_use_a_connection_of_their_own():
    def close_at_the_second_request(connection: socket.socket) -> None:
        connection.sendall(answer(200, b"{}", "Connection: keep-alive"))
        read_request(connection)

    created = send(answer(200, b'{"id": "batch_1"}'))
    with scripted_server(close_at_the_second_request, created) as server:
        shared = client(server.url)
        shared.get("/batches", json.loads)
        reply = shared.create("/batches", BODY, json.loads, last_look=_nothing)
        assert reply.value == {"id": "batch_1"}
    assert len(server.requests) == 2
    assert b"Connection: close" in server.requests[1]


@pytest.mark.parametrize(
    "script",
    [
        drop,
        silence(3),
        send(answer(500)),
        send(answer(503)),
        send(answer(200, b"<html>")),
        send(answer(302, b"", "Location: /")),
        send(answer(200, b'{"data": []}')[:-3]),
    ],
    ids=["dropped", "silent", "500", "503", "unreadable", "redirect", "cut"],
)
def test_a_read_without_a_usable_answer_failed_and_is_not_repeated(script):
    with scripted_server(script) as server, pytest.raises(CallFailed) as caught:
        get(server.url, read_timeout=0.5)
    assert caught.value.kind is FailureKind.TRANSPORT
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [200, 302])
def test_an_answer_that_drips_for_ever_is_given_up(status):
    def drip(connection: socket.socket) -> None:
        headers = ("Content-Length: 1000000", "Location: /v1/elsewhere")
        connection.sendall(answer(status, b"", *headers, framed=False))
        try:
            for _ in range(100):
                connection.sendall(b" ")
                silence(0.05)(connection)
        except OSError:
            return

    with scripted_server(drip) as server, pytest.raises(CallFailed, match="too long"):
        get(server.url, read_timeout=0.25)


@pytest.mark.parametrize(("call", "error"), [(get, CallFailed), (create, OutcomeUnknown)])
@pytest.mark.parametrize("begun", [b"HTTP/1.1 2", b"HTTP/1.1 200 OK\r\nx-long: "])
def test_a_head_that_drips_for_ever_is_given_up(call, error, begun):
    def drip(connection: socket.socket) -> None:
        connection.sendall(begun)
        try:
            for _ in range(40):
                connection.sendall(b"0")
                silence(0.05)(connection)
        except OSError:
            return

    with (
        scripted_server(drip) as server,
        pytest.raises(error, match="no answer within the time-out"),
    ):
        call(server.url, read_timeout=0.25)


@pytest.mark.parametrize("call", [create, get])
@pytest.mark.parametrize("script", [*DOUBTFUL.values(), send(error_answer(401, "bad"))])
def test_errors_tell_nothing_that_is_secret(call, script):
    with scripted_server(script) as server, pytest.raises(ProviderError) as caught:
        call(server.url, read_timeout=0.3)
    error: BaseException | None = caught.value
    while error is not None:
        for secret in (KEY, "document", "cursor-secret", "Jane Doe", "after=", "html"):
            assert secret not in f"{error!s} {error!r} {error.args}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert "/batches" in str(caught.value)


def test_free_text_in_the_place_of_codes_and_ids_is_not_taken_over():
    said = error_answer(400, "the patient Jane Doe", "x-request-id: two words")
    with scripted_server(send(said)) as server, pytest.raises(CallRefused) as caught:
        get(server.url)
    assert (caught.value.code, caught.value.request_id) == (None, None)


def test_retry_after_reaches_the_error():
    said = error_answer(429, "rate_limit_exceeded", "Retry-After: 17")
    with scripted_server(send(said)) as server, pytest.raises(CallRefused) as caught:
        create(server.url)
    assert caught.value.retry_after == 17.0


def test_cookies_are_not_kept():
    with scripted_server(send(answer(200, b"{}", "Set-Cookie: a=b; Path=/"))) as server:
        shared = client(server.url)
        shared.get("/batches", json.loads)
        shared.get("/batches", json.loads)
    assert b"cookie" not in server.requests[1].lower()


def test_a_compressed_answer_is_read_although_none_was_asked_for():
    said = answer(200, gzip.compress(b'{"id": 1}'), "Content-Encoding: gzip")
    with scripted_server(send(said)) as server:
        assert get(server.url).value == {"id": 1}
    assert b"Accept-Encoding: identity" in server.requests[0]


BROKEN_HEADERS = {
    "a date beyond all time": b"Retry-After: Mon, 01 Jan 2026 00:00:00 +99999999999999",
    "a day of many digits": b"Retry-After: Mon, 99999999999999999999 Jan 2026 00:00:00 GMT",
    "an address that is none": b"Location: http://[",
    "an address in Latin-1": b"Location: http://x/\xe9",
}


@pytest.mark.parametrize("header", BROKEN_HEADERS.values(), ids=BROKEN_HEADERS.keys())
@pytest.mark.parametrize("status", [200, 302, 429])
def test_headers_that_cannot_be_read_change_nothing(status, header):
    said = answer(status, b'{"id": "batch_1"}').replace(b"\r\n", b"\r\n" + header + b"\r\n", 1)
    with scripted_server(send(said)) as server:
        if status == 200:
            assert create(server.url).value == {"id": "batch_1"}
            return
        with pytest.raises(OutcomeUnknown if status == 302 else CallRefused) as caught:
            create(server.url)
    assert (caught.value.http_status, caught.value.retry_after) == (status, None)
