"""Connections whose answers begin within their time-out: status line and headers, all together.

A time-out of a socket counts from one byte to the next, and a server that drips headers would hold
a call, and with it a tick of the sensor, for as long as it likes.
"""

import http.client
import socket
import threading
from collections.abc import Mapping
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool


class BoundedHeadAdapter(HTTPAdapter):
    """An adapter for `requests` over such connections, through a proxy too."""

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        """Make the pools of direct connections."""
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = POOLS

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        """Make the pools of connections through a proxy."""
        manager = super().proxy_manager_for(proxy, **options)
        manager.pool_classes_by_scheme = POOLS
        return manager


class _Connection(HTTPConnection):
    def getresponse(self) -> Any:
        with _Bound(self.sock, self.timeout):
            return super().getresponse()


class _SecureConnection(HTTPSConnection):
    def getresponse(self) -> Any:
        with _Bound(self.sock, self.timeout):
            return super().getresponse()


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


POOLS: Mapping[str, type[HTTPConnectionPool]] = {"http": _Pool, "https": _SecurePool}


class _Bound:
    """Ends a socket after so many seconds, and says so with `TimeoutError`."""

    def __init__(self, sock: socket.socket | None, seconds: object) -> None:
        self._sock = sock
        self._late = threading.Event()
        self._timer = (
            threading.Timer(seconds, self._end) if isinstance(seconds, int | float) else None
        )

    def _end(self) -> None:
        self._late.set()
        try:
            if self._sock is not None:
                # Of the plain socket: a secured one would first be made plain for who reads it.
                socket.socket.shutdown(self._sock, socket.SHUT_RDWR)
        except OSError:
            return  # it has ended by itself

    def __enter__(self) -> None:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        broken = kind is None or issubclass(kind, OSError | http.client.HTTPException)
        if self._late.is_set() and broken:
            raise TimeoutError("timed out") from None
