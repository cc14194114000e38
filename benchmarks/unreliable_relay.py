"""A relay before an HTTP server that passes bytes on, or answers in one of the worst ways."""

import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum

DRIP_SECONDS = 0.5
RECEIVE_BYTES = 65536


class Mood(Enum):
    """What the relay does with a request."""

    PASS = "passed on"
    HANG = "never answered"
    DRIP_HEADERS = "headers byte by byte, without end"
    DRIP_BODY = "a body byte by byte, without end"
    RESET = "connection reset"


HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class Relay:
    """See `unreliable_relay`."""

    def __init__(self, upstream: tuple[str, int]) -> None:
        self.mood = Mood.PASS
        self._upstream = upstream
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.over = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while not self.over.is_set():
            with suppress(OSError):
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection(self._upstream) as server:
            while not self.over.is_set():
                ready, _, _ = select.select([client, server], [], [], 1.0)
                for one in ready:
                    received = one.recv(RECEIVE_BYTES)
                    if not received:
                        return
                    if one is server:
                        client.sendall(received)
                    elif self.mood is Mood.PASS:
                        server.sendall(received)
                    else:
                        self._misbehave(client)
                        return

    def _misbehave(self, client: socket.socket) -> None:
        if self.mood is Mood.RESET:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            return
        if self.mood is Mood.DRIP_BODY:
            client.sendall(HEADERS + b"Content-Length: 100000\r\n\r\n")
        elif self.mood is Mood.DRIP_HEADERS:
            client.sendall(HEADERS + b"X-Long: ")
        while not self.over.wait(DRIP_SECONDS):
            if self.mood is not Mood.HANG:
                client.sendall(b" ")

    def close(self) -> None:
        """Take no more connections, and leave those that hang."""
        self.over.set()
        self._listener.close()
        time.sleep(DRIP_SECONDS)


@contextmanager
def unreliable_relay(host: str, port: int) -> Iterator[Relay]:
    """A relay before a server at this address, until the block ends."""
    relay = Relay((host, port))
    try:
        yield relay
    finally:
        relay.close()
