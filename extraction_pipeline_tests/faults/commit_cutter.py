"""A proxy in front of PostgreSQL that passes a COMMIT on and cuts the connection before its answer:
the commit is made, and who asked for it does not learn so."""

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import cast

from sqlalchemy import make_url

COMMIT = b"Q\x00\x00\x00\x0bCOMMIT\x00"
"""The message of a client that commits."""
READY = b"Z\x00\x00\x00\x05I"
"""The end of an answer of a session that is in no transaction."""
PIECE = 65536


class CommitCutter(ThreadingTCPServer):
    """Cuts at most one connection at a time: the one of the commit that was asked for."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, database_url: str) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        url = make_url(database_url)
        folder = str(url.query["host"])
        self.upstream = f"{folder}/.s.PGSQL.{url.port or 5432}"
        port = int(self.server_address[1])
        passed_on = {"sslmode": "disable", "gssencmode": "disable"}
        self.url = url.set(host="127.0.0.1", port=port, query=passed_on).render_as_string(
            hide_password=False
        )
        self._lock = threading.Lock()
        self._left: int | None = None

    def cut(self, number: int) -> None:
        """Cut behind the commit with this number, from now on."""
        with self._lock:
            self._left = number

    @property
    def has_cut(self) -> bool:
        """Whether that commit was made, and cut."""
        with self._lock:
            return self._left == 0

    def cuts_now(self) -> bool:
        """Count a commit; whether it is the one."""
        with self._lock:
            if not self._left:
                return False
            self._left -= 1
            return self._left == 0


class _Session(BaseRequestHandler):
    def handle(self) -> None:
        cutter, client = cast(CommitCutter, self.server), cast(socket.socket, self.request)
        with socket.socket(socket.AF_UNIX) as upstream:
            upstream.connect(cutter.upstream)
            while True:
                for source in select.select([client, upstream], [], [])[0]:
                    data = source.recv(PIECE)
                    if not data:
                        return
                    if source is upstream:
                        client.sendall(data)
                        continue
                    upstream.sendall(data)
                    if data == COMMIT and cutter.cuts_now():
                        _hear_out(upstream)
                        return


def _hear_out(upstream: socket.socket) -> None:
    """Wait until the server has done it."""
    heard = b""
    while not heard.endswith(READY):
        more = upstream.recv(PIECE)
        assert more, "the server gave no answer to a commit"
        heard += more


@contextmanager
def commit_cutter(database_url: str) -> Iterator[CommitCutter]:
    """A running proxy; who connects to its `url` goes through it."""
    with CommitCutter(database_url) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.05,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()
