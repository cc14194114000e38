"""A TCP server that answers HTTP requests with exactly the bytes, or the silence, a test says."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

Script = Callable[[socket.socket], None]
"""What to do on a connection once a whole request has been read from it."""


def answer(status: int, body: bytes = b"{}", *headers: str, framed: bool = True) -> bytes:
    """The bytes of an HTTP answer; not `framed`: without a length."""
    lines = [f"HTTP/1.1 {status} Whatever", "Content-Type: application/json", *headers]
    if not any(header.startswith("Connection:") for header in headers):
        lines.append("Connection: close")
    if framed:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def send(data: bytes) -> Script:
    """Send these bytes."""
    return lambda connection: connection.sendall(data)


def drop(connection: socket.socket) -> None:
    """Say nothing and close."""


def silence(seconds: float) -> Script:
    """Say nothing, and close only later."""

    def wait(connection: socket.socket) -> None:
        connection.settimeout(seconds)
        try:
            connection.recv(1)
        except OSError:
            return

    return wait


def send_and_stay(data: bytes) -> Script:
    """Send these bytes and wait for the other side to close."""

    def stay(connection: socket.socket) -> None:
        connection.sendall(data)
        silence(5)(connection)

    return stay


class ScriptedServer:
    """Runs one script per connection; the last one goes on for ever. Keeps what it received."""

    def __init__(self, scripts: Sequence[Script], tls: ssl.SSLContext | None = None) -> None:
        self._scripts = list(scripts)
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.requests: list[bytes] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        # Closing alone does not wake a thread that is in accept().
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        try:
            connection = self._tls.wrap_socket(plain, server_side=True) if self._tls else plain
        except OSError:
            plain.close()
            return
        with connection:
            request = read_request(connection)
            if request:
                self.requests.append(request)
                number = min(len(self.requests), len(self._scripts)) - 1
                self._scripts[number](connection)


def read_request(connection: socket.socket) -> bytes:
    """One request with its body; empty when the client closes first."""
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = connection.recv(65536)
        if not chunk:
            return data
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for header in head.split(b"\r\n")[1:]:
        name, _, value = header.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    while len(body) < length:
        chunk = connection.recv(65536)
        if not chunk:
            break
        body += chunk
    return head + b"\r\n\r\n" + body


def forwarded(request: bytes, root_url: str) -> bytes:
    """What the server at this address answers to a request, byte for byte."""
    address = urlsplit(root_url)
    head, _, body = request.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
    with socket.create_connection((address.hostname, address.port or 80), timeout=10) as upstream:
        upstream.sendall(b"\r\n".join([*lines, b"Connection: close"]) + b"\r\n\r\n" + body)
        return b"".join(iter(lambda: upstream.recv(65536), b""))


@contextmanager
def scripted_server(
    *scripts: Script, tls: ssl.SSLContext | None = None
) -> Iterator[ScriptedServer]:
    """A scripted server that runs until the block ends."""
    server = ScriptedServer(scripts, tls)
    server.start()
    try:
        yield server
    finally:
        server.close()
