"""Public keys of a sender, read from its URL and kept for a while."""

import threading
import time
from json import JSONDecodeError, loads

import requests
from jwt import PyJWK, PyJWKSet
from jwt.exceptions import PyJWTError

from extraction_pipeline.webhooks.refusal import CannotTell

KEPT_SECONDS = 3600.0
PAUSE_SECONDS = 60.0
"""Between two readings: names of keys come from anybody who can reach us."""
CONNECT_SECONDS = 3.0
READ_SECONDS = 3.0
LONGEST_SECONDS = 6.0
LARGEST = 64 * 1024
"""Bytes."""


class KeySet:
    """The keys at a URL. Threads that need them at once wait for one reading."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._keys: dict[str, PyJWK] = {}
        self._read_at = self._tried_at = -KEPT_SECONDS - PAUSE_SECONDS

    def key(self, name: str) -> PyJWK | None:
        """The key of this name, or `None` if there is none. Raises `CannotTell` while no keys can
        be read."""
        with self._lock:
            now = time.monotonic()
            fresh = now - self._read_at < KEPT_SECONDS
            if not (fresh and name in self._keys) and now - self._tried_at >= PAUSE_SECONDS:
                self._tried_at = now
                self._keys, self._read_at = self._read(), now
                fresh = True
            if not fresh:
                raise CannotTell
            return self._keys.get(name)

    def _read(self) -> dict[str, PyJWK]:
        try:
            keys = PyJWKSet.from_dict(loads(self._fetch())).keys
        except (PyJWTError, JSONDecodeError, AttributeError, TypeError, ValueError) as error:
            raise CannotTell from error
        except (requests.RequestException, RecursionError) as error:
            raise CannotTell from error
        return {key.key_id: key for key in keys if key.key_id}

    def _fetch(self) -> bytes:
        until = time.monotonic() + LONGEST_SECONDS
        content = b""
        with requests.get(
            self._url,
            timeout=(CONNECT_SECONDS, READ_SECONDS),
            stream=True,
            allow_redirects=False,
            headers={"Accept": "application/json"},
        ) as answer:
            if answer.status_code != requests.codes.ok:
                raise CannotTell
            for chunk in answer.iter_content(4096):
                content += chunk
                if len(content) > LARGEST or time.monotonic() > until:
                    raise CannotTell
        return content
