"""Answers by a model: every request goes to an OpenAI-compatible chat endpoint.

This is what gives a model on a hospital's own machine (Ollama, llama.cpp, vLLM) a batch API. Asking
a second time costs computing time and no money, so here, unlike at a provider's, a failed call is
repeated, with growing pauses.
"""

import random
import threading
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from typing import Any
from urllib.parse import urlsplit

import orjson
import requests

from extraction_pipeline.batch_server.answers import Answer, Answered, Interrupted, NotAnswered
from extraction_pipeline.batch_server.chat import error_body
from extraction_pipeline.batch_server.config import RelayConfig, is_loopback

CONNECT_TIMEOUT = 10.0
LONGEST_PAUSE = 30.0
_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class RelayAnswerer:
    """Relays requests. `stopping` ends its pauses when the server stops."""

    def __init__(self, config: RelayConfig, stopping: threading.Event) -> None:
        self._config = config
        self._stopping = stopping
        self._sessions = threading.local()

    @property
    def concurrency(self) -> int:
        """How many requests the endpoint gets at once."""
        return self._config.concurrency

    def answer(self, body: Mapping[str, Any]) -> Answer:
        """Ask until there is an answer that counts, or the attempts are used up.

        Raises `Interrupted` when the server stops before that.
        """
        payload = orjson.dumps(self._translate(body))
        for attempt in range(1, self._config.attempts + 1):
            answer = self._ask(payload)
            if isinstance(answer, Answered) and answer.status_code not in _AGAIN:
                return answer
            if attempt < self._config.attempts and self._stopping.wait(self._pause(attempt)):
                raise Interrupted
        return answer

    def _translate(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body for the endpoint. Local servers know the older name of the token limit."""
        translated = dict(body)
        limit = translated.pop("max_completion_tokens", None)
        if limit is not None:
            translated.setdefault("max_tokens", limit)
        if self._config.model is not None:
            translated["model"] = self._config.model
        return translated

    def _ask(self, payload: bytes) -> Answer:
        try:
            response = self._session().post(
                self._config.chat_url,
                data=payload,
                timeout=(CONNECT_TIMEOUT, self._config.timeout),
                allow_redirects=False,
            )
        except requests.Timeout:
            return NotAnswered("relay_timeout", "The relayed endpoint gave no answer in time.")
        except requests.RequestException as error:
            # The exception's own text holds the URL; its kind says enough.
            return NotAnswered("relay_failed", f"The relayed call failed: {type(error).__name__}.")
        try:
            body = response.json()
        except ValueError:
            body = None
        if 200 <= response.status_code < 300:
            if isinstance(body, dict) and isinstance(body.get("choices"), list):
                return Answered(response.status_code, body)
            message = "The relayed endpoint did not answer with a chat completion."
            return Answered(502, error_body(message, type="server_error", code="relay_bad_answer"))
        if isinstance(body, dict) and isinstance(body.get("error"), dict):
            return Answered(response.status_code, body)
        message = f"The relayed endpoint answered with HTTP {response.status_code}."
        status = response.status_code if response.status_code >= 400 else 502
        return Answered(status, error_body(message, type="server_error", code="relay_error"))

    def _pause(self, attempt: int) -> float:
        """Seconds after the attempt of this number; up to a quarter more or less."""
        pause = min(self._config.first_pause * 2.0 ** (attempt - 1), LONGEST_PAUSE)
        return pause * random.uniform(0.75, 1.25)

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._sessions, "session", None)
        if session is None:
            session = requests.Session()
            session.trust_env = not is_loopback(urlsplit(self._config.chat_url).hostname or "")
            session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
            session.headers["Content-Type"] = "application/json"
            session.auth = self._authorize
            self._sessions.session = session
        return session

    def _authorize(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """The key, if there is one; without `auth` set, a .netrc could put another in its place."""
        if self._config.api_key:
            request.headers["Authorization"] = f"Bearer {self._config.api_key}"
        return request
