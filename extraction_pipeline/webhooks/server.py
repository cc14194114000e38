"""The receiver as a server: strangers reach it, so no connection lasts and few are open."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from extraction_pipeline import serving
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.providers.names import ProviderName
from extraction_pipeline.webhooks.app import CONNECTIONS, create_app
from extraction_pipeline.webhooks.signature import Signature

NAME = "The receiver of webhooks"
CONNECTION_SECONDS = 20.0
"""From its first byte to its last, whatever is sent on it or not."""
OPEN_AT_ONCE = 256
DATABASE_SECONDS = 3.0
"""For a connection, and for a statement; senders wait for a few seconds."""
STOP_SECONDS = 5
LARGEST_HEAD = 16 * 1024
"""Bytes of a request's headers."""


@dataclass(frozen=True)
class Receiving:
    """A receiver that was started: its address, and whether it still runs."""

    url: str
    runs: Callable[[], bool]


class BriefConnection(H11Protocol):
    """A connection with an end: who sends slowly, or nothing at all, holds no place for long."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin the count."""
        super().connection_made(transport)
        self.access_log = False  # however logging is set up: a path is a stranger's words
        self._end = self.loop.call_later(CONNECTION_SECONDS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """End it."""
        self._end.cancel()
        super().connection_lost(exc)


def serve(
    senders: Mapping[ProviderName, Signature],
    database_url: str,
    host: str,
    port: int,
    port_file: Path | None = None,
) -> None:
    """Receive until SIGTERM or SIGINT; prints one line with the address when it is ready.

    The database need not be there yet. Raises `ConfigurationError`.
    """
    config = _config(senders, database_url)
    listener = serving.listen(NAME, host, port)
    url = serving.address(host, listener)
    serving.serve(serving.AnnouncingServer(config, url, port_file), listener)


@contextmanager
def receiving(
    senders: Mapping[ProviderName, Signature], database_url: str, host: str, port: int
) -> Iterator[Receiving]:
    """Receive in a thread while the block lasts. Raises `ConfigurationError`."""
    config = _config(senders, database_url)
    listener = serving.listen(NAME, host, port)
    with serving.serving(uvicorn.Server(config), listener) as runs:
        yield Receiving(serving.address(host, listener), runs)


def _config(senders: Mapping[ProviderName, Signature], database_url: str) -> uvicorn.Config:
    engine = open_engine(database_url, pool_size=CONNECTIONS, patience=DATABASE_SECONDS)
    return uvicorn.Config(
        create_app(senders, engine),
        http=BriefConnection,
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="error",  # its warnings are a line for each odd request of a stranger
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=OPEN_AT_ONCE,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
