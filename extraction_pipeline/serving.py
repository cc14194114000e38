"""An HTTP server in this process: where it listens, how it says that it is ready, how it ends."""

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from extraction_pipeline.errors import ConfigurationError

READY_SECONDS = 30.0
LOOK_SECONDS = 0.01


def listen(what: str, host: str, port: int) -> socket.socket:
    """A socket that is bound, to port 0 at any free one. Raises `ConfigurationError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"{what} cannot listen on {host}:{port}: {error.strerror}.",
            remedy="Stop what uses the port, or name another with --port (0 for any free one).",
        ) from None
    return listener


def address(host: str, listener: socket.socket) -> str:
    """The URL of what listens there."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"


def serve(server: uvicorn.Server, listener: socket.socket) -> None:
    """Run a server until SIGTERM or SIGINT."""
    # uvicorn hands a signal on after its shutdown; without handlers of our own, that would end the
    # process as if it had crashed.
    previous = {name: signal.signal(name, _ended) for name in (signal.SIGTERM, signal.SIGINT)}
    try:
        server.run(sockets=[listener])
    finally:
        listener.close()
        for name, handler in previous.items():
            signal.signal(name, handler)


@contextmanager
def serving(server: uvicorn.Server, listener: socket.socket) -> Iterator[Callable[[], bool]]:
    """Run a server in a thread while the block lasts; yields whether it still runs.

    Raises `ConfigurationError` if it does not start.
    """
    thread = threading.Thread(target=server.run, args=([listener],), name="server", daemon=True)
    thread.start()
    looks = int(READY_SECONDS / LOOK_SECONDS)
    try:
        while not server.started and thread.is_alive() and (looks := looks - 1):
            thread.join(LOOK_SECONDS)
        if not server.started:
            raise ConfigurationError("A server of this command did not start.")
        yield thread.is_alive
    finally:
        server.should_exit = True
        thread.join(READY_SECONDS)
        listener.close()


class AnnouncingServer(uvicorn.Server):
    """Says where it listens once it does: on standard output, and its port in a file."""

    def __init__(self, config: uvicorn.Config, url: str, port_file: Path | None) -> None:
        super().__init__(config)
        self._url = url
        self._port_file = port_file

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then tell."""
        await super().startup(sockets)
        if self._port_file is not None:
            _write_port(self._port_file, int(self._url.rpartition(":")[2]))
        sys.stdout.write(f"listening on {self._url}\n")
        sys.stdout.flush()


def _ended(signal_number: int, frame: object) -> None:
    """The signal was heard already."""


def _write_port(path: Path, port: int) -> None:
    """In one step, so that who waits for the file never reads half of it."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(f"{port}\n")
    draft.replace(path)
