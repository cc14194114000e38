"""Databases of a test's own on the embedded server."""

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
