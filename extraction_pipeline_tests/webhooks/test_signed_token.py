"""Gemini's hooks of one job: tokens by the keys of a set, over real HTTP."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from extraction_pipeline.settings import load_settings
from extraction_pipeline.webhooks import key_set
from extraction_pipeline.webhooks.senders import senders
from extraction_pipeline.webhooks.server import receiving
from extraction_pipeline_tests.webhooks.conftest import LOOPBACK, Desk
from extraction_pipeline_tests.webhooks.signing import batch_event, fresh_id

AUDIENCE = "https://extraction.example/webhooks/gemini"
ISSUER = "https://generativelanguage.googleapis.com"


class Keys:
    """Google's side: its keys at a URL, and tokens by them."""

    def __init__(self) -> None:
        self.private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.reads = 0
        self.status = 200
        self.content = self.published("one")
        keys = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                keys.reads += 1
                self.send_response(keys.status)
                self.send_header("Location", "/elsewhere")
                self.end_headers()
                self.wfile.write(keys.content)

            def log_message(self, *_: object) -> None:
                """Not to the test's output."""

        self._server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        self.url = f"http://{LOOPBACK}:{self._server.server_port}/keys"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def published(self, *names: str) -> bytes:
        public = RSAAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        return json.dumps({"keys": [{**public, "kid": name} for name in names]}).encode()

    def token(
        self, key: Any = None, name: str | None = "one", algorithm: str = "RS256", **claims: Any
    ) -> str:
        now = int(time.time())
        said = {"iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 600, **claims}
        return jwt.encode(
            {claim: value for claim, value in said.items() if value is not None},
            self.private if key is None else key,
            algorithm,
            headers={} if name is None else {"kid": name},
        )


@pytest.fixture(scope="module")
def shared_keys() -> Iterator[Keys]:
    keys = Keys()
    yield keys
    keys.close()


@pytest.fixture
def keys(shared_keys: Keys) -> Keys:
    shared_keys.reads, shared_keys.status = 0, 200
    shared_keys.content = shared_keys.published("one")
    return shared_keys


@pytest.fixture
def desk(
    keys: Keys, receiver: Desk, receivers_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Desk]:
    """A receiver that takes tokens, and has read no keys yet."""
    monkeypatch.setenv("EXTRACTION_GEMINI_WEBHOOK_AUDIENCE", AUDIENCE)
    monkeypatch.setenv("EXTRACTION_GEMINI_WEBHOOK_ISSUER", ISSUER)
    monkeypatch.setenv("EXTRACTION_GEMINI_WEBHOOK_KEYS_URL", keys.url)
    with receiving(senders(load_settings()), receivers_url, LOOPBACK, 0) as running:
        yield Desk(running.url, receiver.engine)


def given(desk: Desk, token: str, body: bytes = b"{}") -> int:
    sent = {"webhook-signature": token, "webhook-id": fresh_id(), "webhook-timestamp": "1"}
    return desk.post("gemini", body, sent).status_code


def test_a_token_makes_the_job_due_that_its_body_or_its_claims_name(desk: Desk, keys: Keys) -> None:
    in_body, in_claims = desk.submitted("gemini"), desk.submitted("gemini")
    assert given(desk, keys.token(), batch_event(in_body, "batch.succeeded")) == 200
    claims: dict[str, Any] = {
        "type": "batch.succeeded",
        "data": {"id": in_claims.removeprefix("batches/")},
    }
    # What is signed is what counts.
    assert given(desk, keys.token(**claims), batch_event("batches/forged")) == 200
    assert desk.is_due(in_body) and desk.is_due(in_claims)
    assert desk.outcomes("batches/forged") == []
    assert keys.reads == 1  # they are kept


def test_the_same_token_is_the_same_delivery_whatever_stands_beside_it(
    desk: Desk, keys: Keys
) -> None:
    job_id = desk.submitted("gemini")
    token, named = keys.token(), keys.token(jti=fresh_id("jti_"))
    body = batch_event(job_id, "batch.failed")
    assert [given(desk, one, body) for one in (token, token, named, named)] == [200] * 4
    assert desk.outcomes(job_id) == [("made_due", 2)] * 2
    other = desk.submitted("gemini")
    assert given(desk, token, batch_event(other, "batch.failed")) == 200
    assert desk.is_due(other)  # two jobs that ended in one second


def test_what_is_no_token_for_us_is_refused(desk: Desk, keys: Keys) -> None:
    now = int(time.time())
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = b"a public key that everybody has, and more of it"
    tokens = {
        "another key": keys.token(other),
        "for somebody else": keys.token(aud="https://elsewhere.example"),
        "for nobody": keys.token(aud=None),
        "by another issuer": keys.token(iss="https://elsewhere.example"),
        "too old": keys.token(exp=now - 301, iat=now - 900),
        "without an end, and old": keys.token(exp=None, iat=now - 301),
        "without any time": keys.token(exp=None, iat=None),
        "of the future": keys.token(iat=now + 900),
        "not before later": keys.token(nbf=now + 900),
        "unsigned": jwt.encode({"aud": AUDIENCE}, "", "none", headers={"kid": "one"}) + "c2ln",
        "by a shared secret": keys.token(public, algorithm="HS256"),
        "with another algorithm": keys.token(algorithm="PS256"),
        "by no key": keys.token(name=None),
        "by an unknown key": keys.token(name="two"),
        "cut": keys.token()[:-5],
        "nonsense": "e30.e30.c2ln",
        "huge": f"e30.{'a' * 9000}.c2ln",
    }
    before = desk.kept()
    assert {name: given(desk, token) for name, token in tokens.items()} == dict.fromkeys(
        tokens, 401
    )
    assert desk.kept() == before


def test_a_new_key_is_found_and_strangers_do_not_make_us_read_again_and_again(
    desk: Desk, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert given(desk, keys.token()) == 200
    keys.content = keys.published("two")
    assert [given(desk, keys.token(name="two")) for _ in range(5)] == [401] * 5
    assert keys.reads == 1
    monkeypatch.setattr(key_set, "PAUSE_SECONDS", 0.0)
    assert given(desk, keys.token(name="two")) == 200
    assert keys.reads == 2
    assert given(desk, keys.token()) == 401  # withdrawn


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (500, b""),
        (302, b""),
        (200, b"<html>"),
        (200, b"[]"),
        (200, b'{"keys": []}'),
        (200, b'{"keys": [7]}'),
        (200, b"[" * 50_000),
        (200, b" " * (key_set.LARGEST + 1)),
    ],
)
def test_while_the_keys_cannot_be_read_senders_are_asked_to_try_again(
    desk: Desk, keys: Keys, status: int, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys.status, keys.content = status, content
    assert [given(desk, keys.token()) for _ in range(3)] == [503] * 3
    assert keys.reads == 1
    keys.status, keys.content = 200, keys.published("one")
    monkeypatch.setattr(key_set, "PAUSE_SECONDS", 0.0)
    assert given(desk, keys.token()) == 200
