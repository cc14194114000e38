"""The server as an ASGI application, and the process around it.

`create_app` takes further Starlette middleware; it runs before everything of the server's own, so
that it can delay, cut or replace any answer after the server has done its part.
"""

import logging
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from extraction_pipeline import serving
from extraction_pipeline.batch_server.answers import AnswererByModel
from extraction_pipeline.batch_server.anthropic.routes import AnthropicRoutes
from extraction_pipeline.batch_server.api_errors import EXCEPTION_HANDLERS
from extraction_pipeline.batch_server.config import ServerConfig
from extraction_pipeline.batch_server.faults.in_force import FaultsInForce
from extraction_pipeline.batch_server.faults.network import FaultyNetwork
from extraction_pipeline.batch_server.faults.routes import FaultRoutes
from extraction_pipeline.batch_server.gate import Gate
from extraction_pipeline.batch_server.gemini.routes import GeminiRoutes
from extraction_pipeline.batch_server.infrai.routes import InfraiRoutes
from extraction_pipeline.batch_server.openai.routes import OpenAIRoutes
from extraction_pipeline.batch_server.processor import Processor
from extraction_pipeline.batch_server.relay import RelayAnswerer
from extraction_pipeline.batch_server.rules import RulesAnswerer
from extraction_pipeline.batch_server.state_folder import StateFolder
from extraction_pipeline.batch_server.store import Store
from extraction_pipeline.batch_server.webhooks.announcing import Announcements
from extraction_pipeline.batch_server.webhooks.sender import Sender

STOP_SECONDS = 1
"""How long open calls, and then the processor, get to end."""

logger = logging.getLogger(__name__)


def create_app(config: ServerConfig, middleware: Sequence[Middleware] = ()) -> Starlette:
    """The application. It holds the state folder from here on, and lets go of it at its shutdown.

    Raises `ConfigurationError` if the folder cannot be used or another server uses it.
    """
    folder = StateFolder(config.state)
    store = Store(folder)
    folder.sweep(
        known_file=store.knows_file,
        open_batches=[batch.id for batch in store.open_batches()],
    )
    stopping = threading.Event()
    answerer = AnswererByModel(
        rules=RulesAnswerer(),
        relay=RelayAnswerer(config.relay, stopping) if config.relay else None,
    )
    faults = FaultsInForce(store, config.faults)
    sender = None if config.webhooks is None else Sender(config.webhooks)
    announcements = Announcements(sender, faults)
    processor = Processor(config, folder, store, answerer, stopping, faults, announcements)

    def health(request: Request) -> Response:
        return JSONResponse({"status": "ok", "instance": folder.instance})

    def statistics(request: Request) -> Response:
        return JSONResponse(asdict(store.statistics()))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        processor.start()
        if sender is not None:
            sender.start()
        yield
        if sender is not None:
            sender.stop()
        processor.stop(STOP_SECONDS)
        store.close()
        folder.close()

    own = [
        Middleware(FaultyNetwork, faults=faults, store=store),
        Middleware(Gate, api_key=config.api_key),
    ]
    if config.is_loopback:
        # A page in a browser of this machine could otherwise reach it under a name of its own.
        own.insert(0, Middleware(TrustedHostMiddleware, allowed_hosts=_LOOPBACK_NAMES))
    return Starlette(
        routes=[
            Route("/health", health),
            Route("/statistics", statistics),
            *FaultRoutes(faults, processor.wake).routes(),
            *(
                route
                for wire_format in (OpenAIRoutes, AnthropicRoutes, GeminiRoutes, InfraiRoutes)
                for route in wire_format(config, folder, store, processor.wake).routes()
            ),
        ],
        middleware=[*middleware, *own],
        exception_handlers=EXCEPTION_HANDLERS,
        lifespan=lifespan,
    )


def serve(config: ServerConfig) -> None:
    """Run a server until SIGTERM or SIGINT; prints one line with its address when it is ready.

    Raises `ConfigurationError` where it cannot start.
    """
    app = create_app(config)
    listener = serving.listen("The batch server", config.host, config.port)
    server = serving.AnnouncingServer(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=STOP_SECONDS,
        ),
        serving.address(config.host, listener),
        config.port_file,
    )
    show_connections(app, server)
    serving.serve(server, listener)


def show_connections(app: Starlette, server: uvicorn.Server) -> None:
    """Let an application see the open connections, for faults that break them."""
    app.state.connections = server.server_state.connections


_LOOPBACK_NAMES = ["localhost", "127.0.0.1", "[::1]", "::1"]
