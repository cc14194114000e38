"""Connections of a process to Dagster's tables: few, kept, and shared by all its instances.

Dagster opens a connection for every statement, because a process may make many instances and each
has three storages. Here they have one pool.
"""

import os
from functools import lru_cache
from typing import Any

from dagster_postgres.utils import create_pg_engine
from sqlalchemy import Engine, event
from sqlalchemy.engine import make_url

from extraction_pipeline.dagster_storage.refusals import refusals
from extraction_pipeline.ledger.dead_peers import CLIENT, end_with_client

CONNECTIONS_KEPT = 2
CONNECTIONS_AT_MOST = 20
"""Of one process, for a moment. A thread needs two at most; a daemon has about ten of them."""
RECYCLE_SECONDS = 600
DATABASES_AT_ONCE = 4


def engine_of(url: str, token_provider: Any = None) -> Engine:
    """The engine of this process for a database; with a token provider one of its own."""
    if token_provider is not None:
        return _engine(url, token_provider)
    return _shared(url)


@lru_cache(maxsize=DATABASES_AT_ONCE)
def _shared(url: str) -> Engine:
    engine = _engine(url, None)
    # A connection that two processes write to would mix their statements.
    os.register_at_fork(after_in_child=lambda: engine.dispose(close=False))
    return engine


def _engine(url: str, token_provider: Any) -> Engine:
    engine: Engine = create_pg_engine(
        url,
        token_provider,
        isolation_level="AUTOCOMMIT",
        pool_size=CONNECTIONS_KEPT,
        max_overflow=CONNECTIONS_AT_MOST - CONNECTIONS_KEPT,
        pool_recycle=RECYCLE_SECONDS,
        # The server may have been started anew since.
        pool_pre_ping=True,
        hide_parameters=True,
        connect_args={
            "application_name": "extraction-pipeline-dagster",
            **{name: value for name, value in CLIENT.items() if name not in make_url(url).query},
        },
    )
    # Else the rows that a host was writing when it was cut off would be locked for hours.
    event.listen(engine, "connect", end_with_client)
    event.listen(engine, "handle_error", refusals.note)
    return engine
