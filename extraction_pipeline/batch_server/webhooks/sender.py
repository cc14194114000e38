"""Sending announcements, again and again with growing pauses until they are taken.

What waits is kept in memory: a server that is started again does not send it, and its clients find
out by polling, as they must anyway.
"""

import heapq
import logging
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import requests

from extraction_pipeline.batch_server.config import is_loopback
from extraction_pipeline.batch_server.webhooks.events import Announcement, headers
from extraction_pipeline.batch_server.webhooks.targets import Target, read_targets
from extraction_pipeline.errors import ConfigurationError

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 300.0
ATTEMPTS = 12
"""Over about twenty minutes."""
TIMEOUT = (3.0, 10.0)
MOST_WAITING = 10_000

logger = logging.getLogger(__name__)


@dataclass(order=True)
class _Waiting:
    due: float
    number: int
    said: Announcement = field(compare=False)
    attempt: int = field(compare=False)


class Sender:
    """One thread that sends. The file of targets is read for each attempt: without it, or a target
    in it, what is to be sent is dropped."""

    def __init__(self, targets: Path) -> None:
        self._targets = targets
        self._changed = threading.Condition()
        self._waiting: list[_Waiting] = []
        self._number = 0
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="webhooks", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """Send nothing more; what is being sent is left."""
        with self._changed:
            self._stopping = True
            self._changed.notify()

    def put(self, *said: Announcement) -> None:
        """Send these soon, in this order."""
        for one in said:
            self._add(one, time.monotonic(), attempt=1)

    def _add(self, said: Announcement, due: float, *, attempt: int) -> None:
        with self._changed:
            if len(self._waiting) >= MOST_WAITING:
                logger.warning("webhook %s: too many wait, it is dropped", said.delivery_id)
                return
            self._number += 1
            heapq.heappush(self._waiting, _Waiting(due, self._number, said, attempt))
            self._changed.notify()

    def _run(self) -> None:
        while (waiting := self._next()) is not None:
            said = waiting.said
            if self._is_taken(said):
                continue
            if waiting.attempt >= ATTEMPTS:
                logger.warning("webhook %s: given up", said.delivery_id)
                continue
            pause = min(FIRST_PAUSE * 2 ** (waiting.attempt - 1), LONGEST_PAUSE)
            self._add(said, time.monotonic() + pause, attempt=waiting.attempt + 1)

    def _next(self) -> _Waiting | None:
        """What is due, once something is; `None` at the end."""
        with self._changed:
            while not self._stopping:
                wait = self._waiting[0].due - time.monotonic() if self._waiting else None
                if wait is not None and wait <= 0:
                    return heapq.heappop(self._waiting)
                self._changed.wait(wait)
        return None

    def _is_taken(self, said: Announcement) -> bool:
        """Whether nothing is left to do for it."""
        try:
            target = read_targets(self._targets).get(said.dialect)
            if target is None:
                return True
            status = _post(said, target)
        except ConfigurationError as error:
            logger.warning("webhook %s: %s", said.delivery_id, error)
            return False
        except requests.RequestException as error:
            logger.info("webhook %s: %s", said.delivery_id, type(error).__name__)
            return False
        if not 200 <= status < 300:  # a redirect is no receipt
            logger.info("webhook %s: answered with %s", said.delivery_id, status)
            return False
        return True


def _post(said: Announcement, target: Target) -> int:
    with requests.Session() as session:
        session.trust_env = not is_loopback(urlsplit(target.url).hostname or "")
        with session.post(
            target.url,
            data=said.body,
            headers=headers(said, target, time.time()),
            timeout=TIMEOUT,
            allow_redirects=False,
            stream=True,
        ) as answer:
            return answer.status_code
