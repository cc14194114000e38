"""Databases of a test's own on the embedded server, and a way to use one for many tests."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import create_engine, make_url, text


@contextmanager
def database(server_url: str, template: str = "template0") -> Iterator[str]:
    """The URL of a copy of `template` that is gone when the block ends."""
    name = f"own_{uuid.uuid4().hex[:12]}"
    admin = create_engine(
        make_url(server_url).set(drivername="postgresql+psycopg2"), isolation_level="AUTOCOMMIT"
    )
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {template}"))
    try:
        yield make_url(server_url).set(database=name).render_as_string(hide_password=False)
    finally:
        with admin.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        admin.dispose()


TABLES = (
    "webhook_deliveries",
    "extractions",
    "raw_responses",
    "request_costs",
    "result_files",
    "audit_events",
    "batch_items",
    "batch_jobs",
    "account_pauses",
    "extraction_versions",
    "document_revisions",
    "document_sources",
    "documents",
)
"""All tables of the ledger, so that none refers to one after it."""

STOP = "extraction.stop()"
"""The trigger function that a test may have left."""

LOCK_HOLDERS_END = """
    SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    WHERE l.locktype = 'advisory' AND d.datname = current_database() AND l.pid <> pg_backend_pid()
"""
"""Ends the connections that hold our locks in this database, as a network that is cut off does."""


def emptied(url: str) -> None:
    """Delete all rows of the ledger: much cheaper than a database for each test."""
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg2"))
    with engine.begin() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
        connection.execute(text(f"DROP FUNCTION IF EXISTS {STOP} CASCADE"))
        for table in TABLES:
            connection.execute(text(f"DELETE FROM extraction.{table}"))
    engine.dispose()
