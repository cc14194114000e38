"""What a planned fault does with a request; see `proxy` for how it is planned."""

import json
import threading
from collections.abc import Callable

from extraction_pipeline_tests.faults.proxy import Exchange, Fault, Reply, rewritten


def drop_before(exchange: Exchange) -> None:
    """The server never hears of it."""
    exchange.drop()


def forward_then_drop(exchange: Exchange) -> None:
    """The server does it, and its answer is lost."""
    exchange.forward()
    exchange.drop()


def forward_then(status: int) -> Fault:
    """The server does it, and a gateway in between answers with this status."""

    def fault(exchange: Exchange) -> None:
        exchange.forward()
        exchange.answer(Reply(status, b"bad gateway"))

    return fault


def answer(status: int, body: object = None, **headers: str) -> Fault:
    """The server never hears of it; `retry_after="7"` is the header Retry-After."""
    reply = Reply(
        status,
        json.dumps(body if body is not None else {"error": {"code": f"code_{status}"}}).encode(),
        tuple((name.replace("_", "-"), value) for name, value in headers.items()),
    )
    return lambda exchange: exchange.answer(reply)


def page(status: int) -> Fault:
    """A gateway's page of HTML; the server never hears of it."""
    html = Reply(status, b"<html>Bad gateway</html>", (("Content-Type", "text/html"),))
    return lambda exchange: exchange.answer(html)


def meanwhile(action: Callable[[], object]) -> Fault:
    """The server does it, then something else happens, and only then its answer arrives."""

    def fault(exchange: Exchange) -> None:
        reply = exchange.forward()
        action()
        exchange.answer(reply)

    return fault


class Late:
    """The connection breaks, and the request arrives at the server only when told to: `arrive`
    gives the status that the server had for it."""

    def __init__(self) -> None:
        self._exchange: Exchange | None = None

    def __call__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        exchange.drop()

    def arrive(self) -> int:
        assert self._exchange is not None
        return self._exchange.forward().status


class Hold:
    """Says nothing until released or until the client is gone; `forward` says whether the server
    does it first. `reached` is set once the request is held. On release, the answer arrives."""

    def __init__(self, *, forward: bool) -> None:
        self.reached = threading.Event()
        self.release = threading.Event()
        self._forward = forward

    def __call__(self, exchange: Exchange) -> None:
        reply = exchange.forward() if self._forward else None
        self.reached.set()
        exchange.wait(self.release)
        if self.release.is_set():
            exchange.answer(reply or exchange.forward())
        else:
            exchange.drop()


def saying(**values: object) -> Fault:
    """The server's JSON answer with other values."""
    return rewritten(lambda body: json.dumps(json.loads(body) | values).encode())
