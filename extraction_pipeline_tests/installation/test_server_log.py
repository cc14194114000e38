"""Records stay out of PostgreSQL's log: of the embedded server, and of a server of the user's."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest
from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.exc import DBAPIError

from extraction_pipeline.installation.embedded_postgres import embedded_postgres
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.ledger.server_log import QUIET
from extraction_pipeline_tests.batch_server.process import wait_until

MARK = "Fictional Name"
INSERT = text("INSERT INTO records VALUES (1, :value)")
WAITS = text("SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
LOUD = {
    "log_min_error_statement": "error",
    "log_error_verbosity": "default",
    "log_statement": "all",
    "log_min_duration_statement": "0",
}


@pytest.fixture
def home() -> Iterator[Path]:
    # As root the server runs as another user, to whom pytest's folders can be closed.
    with TemporaryDirectory(prefix="extraction-tests-") as folder:
        yield Path(folder)


def plain(url: str) -> Engine:
    """An engine that tells the server nothing about its log."""
    return create_engine(make_url(url).set(drivername="postgresql+psycopg2"))


def insert(engine: Engine) -> None:
    with suppress(DBAPIError), engine.begin() as connection:
        connection.execute(INSERT, {"value": MARK})


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["ended", "crashed"])
def test_a_session_that_ends_while_it_inserts_leaves_no_record_in_the_log(
    home: Path, how: signal.Signals
) -> None:
    log = home / "postgres.log"
    log.write_text("of an older version\n")
    log.chmod(0o644)
    with embedded_postgres(home / "postgres") as url:
        engine = plain(url)
        with suppress(DBAPIError), engine.connect() as holder:
            holder.execute(text("CREATE TABLE records (id int PRIMARY KEY, value text)"))
            holder.commit()
            insert(engine)
            insert(engine)  # refused, with the row in the server's DETAIL
            holder.execute(text("LOCK TABLE records"))
            victim = Thread(target=insert, args=(engine,))
            victim.start()
            with engine.connect() as looking:
                wait_until(lambda: looking.execute(WAITS).first() is not None)
                os.kill(looking.execute(WAITS).scalar_one(), how)
            victim.join(30)
        engine.dispose()
    said = log.read_text()
    assert "duplicate key value" in said
    assert "terminat" in said.split("duplicate key value")[1]
    assert MARK not in said
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.fixture
def loud(database_url: str) -> Iterator[Engine]:
    """A superuser's engine over a database whose sessions log everything."""
    engine = plain(database_url)
    with engine.begin() as connection:
        for name, value in LOUD.items():
            connection.execute(text(f"ALTER DATABASE {engine.url.database} SET {name} = '{value}'"))
        connection.execute(text("CREATE ROLE guest LOGIN"))
    yield engine
    with engine.begin() as connection:
        connection.execute(text("DROP OWNED BY guest"))
        connection.execute(text("DROP ROLE guest"))
    engine.dispose()


def logged(url: str) -> dict[str, str]:
    """What a session of ours has the server log."""
    engine = open_engine(url)
    with engine.connect() as connection:
        connection.rollback()
        found = {name: str(connection.execute(text(f"SHOW {name}")).scalar_one()) for name in QUIET}
    engine.dispose()
    return found


def test_our_sessions_log_no_statements_where_the_role_may_say_so(
    loud: Engine, database_url: str
) -> None:
    assert logged(database_url) == QUIET
    as_guest = make_url(database_url).set(username="guest").render_as_string(hide_password=False)
    assert logged(as_guest) == LOUD
    with loud.begin() as connection:
        connection.execute(text("GRANT SET ON PARAMETER log_min_error_statement TO guest"))
    assert logged(as_guest) == {**LOUD, "log_min_error_statement": "panic"}
