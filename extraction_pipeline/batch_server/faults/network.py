"""Faults of calls: ASGI middleware in front of the gate."""

import asyncio
import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from extraction_pipeline.batch_server.api_errors import ApiError, error_answer
from extraction_pipeline.batch_server.calls import given_key, use_google_path
from extraction_pipeline.batch_server.faults.answering import NO_CREDIT
from extraction_pipeline.batch_server.faults.called import Called
from extraction_pipeline.batch_server.faults.in_force import FaultsInForce
from extraction_pipeline.batch_server.faults.plan import (
    AnswerWith,
    CallFault,
    CountsSaid,
    Cut,
    Drop,
    Garbled,
    Hang,
    KeyRotated,
    ListLags,
    NoCredit,
    ResultsPlace,
    Slow,
    StateSaid,
)
from extraction_pipeline.batch_server.faults.rewriting import Rewrite, cut_at, garbled, rewritten
from extraction_pipeline.batch_server.gate import wrong_key
from extraction_pipeline.batch_server.store import Store

PIECES = 8
"""How many pieces a slow body comes in."""


@dataclass
class _Answer:
    """What the application answered, whole."""

    start: Message = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)

    async def take(self, message: Message) -> None:
        """In the place of ASGI's `send`."""
        if message["type"] == "http.response.start":
            self.start = message
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")

    @property
    def is_good(self) -> bool:
        """Whether there is something to change in it; errors stay as they are."""
        return bool(self.start["status"] == 200)

    async def send(self, send: Send, body: bytes | None = None) -> None:
        """Hand it on, with another body if one is given."""
        content = bytes(self.body) if body is None else body
        MutableHeaders(scope=self.start)["content-length"] = str(len(content))
        await send(self.start)
        await send({"type": "http.response.body", "body": content})


class FaultyNetwork:
    """Applies the faults of calls that are due."""

    def __init__(self, app: ASGIApp, faults: FaultsInForce, store: Store) -> None:
        self._app = app
        self._faults = faults
        self._store = store

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a call through, or spoil it."""
        if scope["type"] != "http" or not self._faults.of_calls:
            await self._app(scope, receive, send)
            return
        use_google_path(scope)
        called = Called.of(scope)
        if called is None:
            await self._app(scope, receive, send)
            return
        key = given_key(scope)
        digest = None if key is None else hashlib.sha256(key.encode()).hexdigest()
        fault = await run_in_threadpool(self._faults.of_call, called, digest)
        if fault is None:
            await self._app(scope, receive, send)
        else:
            await _Spoiled(self._app, self._store, scope, receive, send, called).apply(fault)


@dataclass(frozen=True)
class _Spoiled:
    """One call that goes wrong."""

    app: ASGIApp
    store: Store
    scope: Scope
    receive: Receive
    send: Send
    called: Called

    async def apply(self, fault: CallFault) -> None:
        match fault:
            case Drop():
                if fault.accepted:
                    await self._served()
                await self._hang_up()
            case AnswerWith():
                await (self._served() if fault.accepted else self._heard())
                await self._answer(_error(self.scope, fault))
            case Hang():
                await self._hang(fault)
            case NoCredit():
                await self._heard()
                status, code = NO_CREDIT[self.called.dialect]
                error = ApiError(status, "The account is out of credit.", code=code)
                await self._answer(error_answer(self.scope, error))
            case KeyRotated():
                await self._heard()
                refusal = wrong_key(self.called.dialect, given=True)
                await self._answer(error_answer(self.scope, refusal))
            case Slow():
                await self._trickle(await self._served(), fault.seconds)
            case Cut():
                await self._cut(await self._served(), fault)
            case Garbled() | ListLags() | StateSaid() | CountsSaid() | ResultsPlace():
                answer = await self._served()
                await answer.send(self.send, await self._changed(answer, fault))

    async def _served(self) -> _Answer:
        answer = _Answer()
        await self.app(self.scope, self.receive, answer.take)
        return answer

    async def _heard(self) -> bytes:
        """The body, to its end: who is still sending would not see the answer."""
        body = bytearray()
        while True:
            message = await self.receive()
            body += message.get("body", b"")
            if message["type"] != "http.request" or not message.get("more_body"):
                return bytes(body)

    async def _answer(self, response: Response) -> None:
        await response(self.scope, self.receive, self.send)

    async def _hang_up(self) -> None:
        """Close the connection under the server, which has no word for that in ASGI."""
        for connection in list(getattr(self.scope["app"].state, "connections", ())):
            if (connection.client, connection.server) == (
                self.scope["client"],
                self.scope["server"],
            ):
                connection.transport.close()
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def _hang(self, fault: Hang) -> None:
        answer = await self._served() if fault.accepted else None
        # Unread, a request's end cannot be told from the client's.
        body = b"" if fault.accepted else await self._heard()
        if await self._is_gone_within(fault.seconds):
            return
        if answer is not None:
            await answer.send(self.send)
            return
        parts = iter([body])

        async def again() -> Message:
            part = next(parts, None)
            return (
                {"type": "http.request", "body": part} if part is not None else await self.receive()
            )

        await self.app(self.scope, again, self.send)

    async def _is_gone_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                while (await self.receive())["type"] != "http.disconnect":
                    pass
        except TimeoutError:
            return False
        return True

    async def _trickle(self, answer: _Answer, seconds: float) -> None:
        await self.send(answer.start)
        step = max(1, -(-len(answer.body) // PIECES))
        for at in range(0, len(answer.body), step):
            if await self._is_gone_within(seconds / PIECES):
                return
            piece = bytes(answer.body[at : at + step])
            await self.send({"type": "http.response.body", "body": piece, "more_body": True})
        await self.send({"type": "http.response.body"})

    async def _cut(self, answer: _Answer, fault: Cut) -> None:
        body = bytes(answer.body)
        if not answer.is_good:
            await answer.send(self.send)
        elif not fault.announced:
            await answer.send(self.send, cut_at(body, fault.at))
        else:
            MutableHeaders(scope=answer.start)["content-length"] = str(len(body))
            await self.send(answer.start)
            piece = cut_at(body, fault.at)
            await self.send({"type": "http.response.body", "body": piece, "more_body": True})
            await self._hang_up()

    async def _changed(self, answer: _Answer, fault: Garbled | Rewrite) -> bytes:
        body = bytes(answer.body)
        if not answer.is_good:
            return body
        if isinstance(fault, Garbled):
            return garbled(body, fault.line)
        if isinstance(fault, ListLags):
            young = await run_in_threadpool(self.store.young, fault.seconds)
            return rewritten(body, self.called.dialect, fault, young)
        return rewritten(body, self.called.dialect, fault, frozenset())


def _error(scope: Scope, fault: AnswerWith) -> Response:
    if fault.page:
        answer: Response = HTMLResponse("<html><title>Bad gateway</title></html>", fault.status)
    else:
        error = ApiError(fault.status, "A fault that was asked for.", code=fault.code)
        answer = error_answer(scope, error)
    if fault.retry_after is not None:
        answer.headers["retry-after"] = _retry_after(fault.retry_after, fault.retry_after_as)
    return answer


def _retry_after(seconds: float, form: str) -> str:
    if form == "seconds":
        return f"{seconds:g}"
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)
