"""The receiver as an ASGI application.

    POST /webhooks/{provider}    a delivery
    GET  /health                 whether the process lives; it asks nothing of the database

Whoever is refused is told nothing but that. The database is touched only for what is genuine.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import anyio.to_thread
from anyio import CapacityLimiter
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from extraction_pipeline.errors import LedgerError
from extraction_pipeline.ledger import deliveries
from extraction_pipeline.ledger.deliveries import Delivery, Kept
from extraction_pipeline.ledger.states import DeliveryOutcome
from extraction_pipeline.providers.names import ProviderName
from extraction_pipeline.webhooks.event import Unreadable, read_body, read_event
from extraction_pipeline.webhooks.refusal import CannotTell, RefusalLog, Refused
from extraction_pipeline.webhooks.senders import sender
from extraction_pipeline.webhooks.signature import LetIn, Signature

LARGEST_BODY = 64 * 1024
"""Bytes. What providers send is below one KB."""
BODY_SECONDS = 5.0
CONNECTIONS = 4
"""To the database."""
CHECKS = 4
"""Of one provider's signatures at once."""
AT_ONCE = 100
"""Deliveries that are looked at, or wait for a connection; more are asked to come again."""
RETRY_SECONDS = 5

log = logging.getLogger(__name__)


def create_app(senders: Mapping[ProviderName, Signature], engine: Engine) -> Starlette:
    """The application over an engine that has `CONNECTIONS` connections at most."""
    receiver = Receiver(senders, engine)

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        engine.dispose()

    app = Starlette(
        routes=[
            Route("/health", health),
            Route("/webhooks/{provider}", receiver.receive, methods=["POST"]),
        ],
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # a redirect is a failure to senders, and told to anybody
    return app


class Receiver:
    """Takes one delivery after the other, each as one short transaction."""

    def __init__(self, senders: Mapping[ProviderName, Signature], engine: Engine) -> None:
        self._senders = senders
        self._engine = engine
        # One for each: whoever makes us read keys keeps no other provider waiting.
        self._checking = {name: CapacityLimiter(CHECKS) for name in senders}
        self._keeping = CapacityLimiter(CONNECTIONS)
        self._refusals = RefusalLog()
        self._under_way = 0

    async def receive(self, request: Request) -> Response:
        """Take one, and tell its sender whether to try again."""
        if self._under_way >= AT_ONCE:
            return _again()
        self._under_way += 1
        try:
            return await self._take(request)
        except Refused as refused:
            self._refusals.note(_known(request), refused.why)
            return _answer(401, "refused")
        except CannotTell:
            log.warning("the keys of %s cannot be read now", _known(request))
            return _again()
        except (LedgerError, SQLAlchemyError) as error:
            log.warning("a delivery could not be kept: %s", type(error).__name__)
            return _again()
        except Exception as error:  # noqa: BLE001
            # A fault of this program. Its words could quote a body, so only its kind is told.
            log.error("a delivery could not be taken: %s", type(error).__name__)
            return _again()
        finally:
            self._under_way -= 1

    async def _take(self, request: Request) -> Response:
        provider, signature = sender(self._senders, request.path_params["provider"])
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _body(request)
        except TimeoutError:
            return _answer(408, "too slow")
        except ClientDisconnect:
            return _answer(400, "incomplete")
        if body is None:
            return _answer(413, "too large")
        let_in = await anyio.to_thread.run_sync(
            signature.check, request.headers, body, limiter=self._checking[provider]
        )
        delivery = read(provider, let_in, body)
        kept = await anyio.to_thread.run_sync(self._keep, delivery, limiter=self._keeping)
        if kept.first and kept.outcome is DeliveryOutcome.UNREADABLE:
            log.warning("a delivery of %s is not of a form that is known", provider.value)
        return JSONResponse({"received": True}, headers=_CLOSE)

    def _keep(self, delivery: Delivery) -> Kept:
        with self._engine.begin() as connection:
            return deliveries.keep(connection, delivery)


def read(provider: ProviderName, let_in: LetIn, body: bytes) -> Delivery:
    """What is kept of a genuine delivery. One that cannot be read never will be: it is kept as
    such, and its sender is not asked to try again."""
    try:
        content = read_body(body) if let_in.claims is None else let_in.claims
        event = read_event(provider, content)
    except Unreadable:
        return Delivery(provider.value, let_in.delivery_id, None, None, DeliveryOutcome.UNREADABLE)
    return Delivery(
        provider.value,
        let_in.delivery_id,
        event.kind,
        event.job_id,
        DeliveryOutcome.IGNORED if event.job_id is None else None,
        by_content=let_in.by_content,
    )


async def _body(request: Request) -> bytes | None:
    """The exact bytes, or `None` for too many."""
    announced = request.headers.get("content-length", "0")
    if not announced.isascii() or not announced.isdigit() or int(announced) > LARGEST_BODY:
        return None
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_BODY:
            return None
    return bytes(body)


_CLOSE = {"Connection": "close"}


def _answer(status: int, word: str) -> Response:
    return JSONResponse({"error": word}, status, headers=_CLOSE)


def _again() -> Response:
    return JSONResponse(
        {"error": "try again"}, 503, headers={**_CLOSE, "Retry-After": str(RETRY_SECONDS)}
    )


def _known(request: Request) -> str:
    """The provider, for the log; what else stands there was written by anybody."""
    name = request.path_params["provider"]
    return name if name in set(ProviderName) else "another"
