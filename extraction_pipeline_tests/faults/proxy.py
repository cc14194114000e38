"""A proxy in front of the batch server that fails on demand.

Everything is real: sockets, HTTP, what the server takes and what it answers. A test plans a fault
for a route, and the proxy passes on all else unchanged and counts what it got:

    proxy.plan(CREATE, forward_then_drop)              # the next create is taken, no answer comes
    proxy.plan(POLL, answer(502), every=3, times=None) # every third reading fails
    proxy.plan_results(without(2))                     # result files lack their third row
    assert proxy.count(CREATE) == 1
"""

import http.client
import json
import re
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import urlsplit


class Route(NamedTuple):
    """A method, and a pattern for the whole path without its query."""

    method: str
    path: str

    def takes(self, method: str, path: str) -> bool:
        return method == self.method and re.fullmatch(self.path, path) is not None


UPLOAD = Route("POST", r"/v1/files")
CREATE = Route("POST", r"/v1/batches")
POLL = Route("GET", r"/v1/batches/[^/]+")
CANCEL = Route("POST", r"/v1/batches/[^/]+/cancel")
LIST = Route("GET", r"/v1/batches")
FILE = Route("GET", r"/v1/files/[^/]+")
DELETE_FILE = Route("DELETE", r"/v1/files/[^/]+")
CONTENT = Route("GET", r"/v1/files/[^/]+/content")


@dataclass(frozen=True)
class Reply:
    """An answer of the server's, or one made up."""

    status: int
    body: bytes = b"{}"
    headers: tuple[tuple[str, str], ...] = ()


class Exchange:
    """One request that the proxy got, for a fault to deal with."""

    def __init__(self, handler: "_Handler", path: str, body: bytes) -> None:
        self.method = handler.command
        self.path = path
        self.body = body
        self._handler = handler

    def forward(self) -> Reply:
        """Let the server do it; its answer."""
        return self.fetch(self.method, self._handler.path, self.body)

    def fetch(self, method: str, path: str, body: bytes = b"") -> Reply:
        """Any call to the server."""
        upstream = http.client.HTTPConnection(self._handler.proxy.upstream, timeout=30)
        passed = {
            name: value
            for name, value in self._handler.headers.items()
            if name.lower() not in ("host", "connection", "content-length", "transfer-encoding")
        }
        try:
            upstream.request(method, path, body or None, passed)
            answer = upstream.getresponse()
            return Reply(answer.status, answer.read(), tuple(answer.getheaders()))
        finally:
            upstream.close()

    def answer(self, reply: Reply) -> None:
        """Send an answer; that the client is gone is its own affair."""
        try:
            self._handler.send_response(reply.status)
            for name, value in reply.headers:
                if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                    self._handler.send_header(name, value)
            self._handler.send_header("Content-Length", str(len(reply.body)))
            self._handler.end_headers()
            self._handler.wfile.write(reply.body)
        except OSError:
            self._handler.close_connection = True

    def drop(self) -> None:
        """Close the connection without an answer."""
        self._handler.close_connection = True
        try:
            self._handler.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # the client was faster

    def wait(self, released: threading.Event) -> None:
        """Say nothing until `released`, or until the client or the proxy is gone."""
        connection = self._handler.connection
        while not released.wait(0.02) and not self._handler.proxy.closing.is_set():
            readable, _, _ = select.select([connection], [], [], 0)
            if readable and not connection.recv(1, socket.MSG_PEEK):
                return


Fault = Callable[[Exchange], None]


def rewritten(change: Callable[[bytes], bytes]) -> Fault:
    """The server's answer with another body, correctly framed; its errors stay as they are."""

    def fault(exchange: Exchange) -> None:
        reply = exchange.forward()
        good = reply.status == 200
        exchange.answer(replace(reply, body=change(reply.body)) if good else reply)

    return fault


@dataclass
class _Plan:
    route: Route
    fault: Fault
    left: int | None
    every: int
    seen: int = 0

    def due(self, method: str, path: str) -> bool:
        if self.left == 0 or not self.route.takes(method, path):
            return False
        self.seen += 1
        if self.seen % self.every:
            return False
        if self.left is not None:
            self.left -= 1
        return True


class Proxy:
    """See `running_proxy`. Faults that were planned first are used first."""

    def __init__(self, server_url: str) -> None:
        self.upstream = urlsplit(server_url).netloc
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._plans: list[_Plan] = []
        self._requests: list[tuple[str, str]] = []
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.proxy = self
        self.base_url = f"http://127.0.0.1:{self._http.server_port}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def plan(self, route: Route, fault: Fault, *, times: int | None = 1, every: int = 1) -> None:
        """Use this fault for the next `times` requests of the route (`None`: for all), or only for
        every second, third ... of them."""
        with self._lock:
            self._plans.append(_Plan(route, fault, times, every))

    def plan_results(self, change: Callable[[bytes], bytes], *, times: int | None = None) -> None:
        """Rewrite result files, and the size in their records to match."""

        def resize(exchange: Exchange) -> None:
            reply = exchange.forward()
            content = exchange.fetch("GET", f"{exchange.path}/content").body
            record = json.loads(reply.body) | {"bytes": len(change(content))}
            exchange.answer(replace(reply, body=json.dumps(record).encode()))

        self.plan(FILE, resize, times=times)
        self.plan(CONTENT, rewritten(change), times=times)

    def forget_plans(self, route: Route | None = None) -> None:
        """From here on everything is passed on, or everything on this route."""
        with self._lock:
            self._plans = [
                plan for plan in self._plans if route is not None and plan.route != route
            ]

    def count(self, route: Route) -> int:
        """How many requests of this route came in, whatever became of them."""
        with self._lock:
            return sum(route.takes(method, path) for method, path in self._requests)

    def handle(self, exchange: Exchange) -> None:
        with self._lock:
            self._requests.append((exchange.method, exchange.path))
            plan = next((p for p in self._plans if p.due(exchange.method, exchange.path)), None)
        if plan is None:
            exchange.answer(exchange.forward())
        else:
            plan.fault(exchange)

    def close(self) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    proxy: Proxy


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    @property
    def proxy(self) -> Proxy:
        return self.server.proxy

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.proxy.handle(Exchange(self, self.path.partition("?")[0], body))

    do_GET = do_POST = do_DELETE = _serve

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a test that fails shows its own story."""


@contextmanager
def running_proxy(server_url: str) -> Iterator[Proxy]:
    """A proxy in front of the server at this URL, until the block ends."""
    proxy = Proxy(server_url)
    try:
        yield proxy
    finally:
        proxy.close()
