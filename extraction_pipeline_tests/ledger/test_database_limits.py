"""Limits that a database sets us: each is told with its own cause and remedy, and passes.

The statements run through the engine of this project, which lets nothing of a record out, and each
limit is the database's own."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, create_engine, make_url, text

from extraction_pipeline.errors import DatabaseUnavailable
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.ledger.unreachable import why_unreachable
from extraction_pipeline_tests.batch_server.process import wait_until

ROW = "INSERT INTO extraction.document_sources (collection, path, problem) VALUES ('n', 'p', 'u')"
UPDATE = "UPDATE extraction.document_sources SET byte_size = 1"
AGAIN = "what was under way is repeated safely."


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    opened = open_engine(database_url)
    yield opened
    opened.dispose()


def refused(engine: Engine, *statements: str) -> str:
    with pytest.raises(DatabaseUnavailable) as raised, engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (
            ["SET LOCAL statement_timeout = '20ms'", "SELECT pg_sleep(5)"],
            "The database ended a statement that took too long, or that somebody cancelled (57014)."
            f" Raise statement_timeout of its role; {AGAIN}",
        ),
        (
            ["SET TRANSACTION READ ONLY", ROW],
            "The database takes no writes: it is read-only (25006). Name the primary server in "
            f"EXTRACTION_DATABASE_URL; {AGAIN}",
        ),
        (
            ["DO $$ BEGIN RAISE 'Fictional Name' USING ERRCODE = '53100'; END $$"],
            f"The database's disk is full. Make room; {AGAIN}",
        ),
        (
            ["DO $$ BEGIN RAISE 'Fictional Name' USING ERRCODE = '53200'; END $$"],
            "The database has no memory left (53200). Give it more, or let fewer work at once; "
            f"{AGAIN}",
        ),
    ],
    ids=["statement time-out", "standby", "disk", "memory"],
)
def test_a_limit_of_the_server_is_told_with_its_remedy(
    engine: Engine, statements: list[str], said: str
) -> None:
    assert refused(engine, *statements) == said


def test_who_waits_for_another_writer_is_told_so(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text(ROW))
    with engine.begin() as first:
        first.execute(text(UPDATE))
        said = refused(engine, "SET LOCAL lock_timeout = '20ms'", UPDATE)
        assert said.startswith("The database did not give a lock in time (55P03).")
    with engine.connect().execution_options(isolation_level="SERIALIZABLE") as late:
        late.execute(text("SELECT count(*) FROM extraction.document_sources"))
        with engine.begin() as first:
            first.execute(text(UPDATE))
        with pytest.raises(DatabaseUnavailable, match=r"at the same moment \(40001\)"):
            late.execute(text(UPDATE))


def test_a_server_that_takes_no_more_connections_says_so(database_url: str) -> None:
    admin = create_engine(
        make_url(database_url).set(drivername="postgresql+psycopg2"), isolation_level="AUTOCOMMIT"
    )
    with admin.connect() as connection:
        connection.execute(text("CREATE ROLE few LOGIN CONNECTION LIMIT 1"))
        try:
            url = make_url(database_url).set(username="few").render_as_string(hide_password=False)
            engine = open_engine(url)
            with engine.connect(), pytest.raises(DatabaseUnavailable) as raised:
                engine.connect()
            engine.dispose()

            def passes() -> bool:  # as soon as the server has ended the other session
                try:
                    engine.connect().close()
                except DatabaseUnavailable:
                    return False
                return True

            wait_until(passes)
            engine.dispose()
        finally:
            connection.execute(text("DROP ROLE few"))
    admin.dispose()
    said = str(raised.value)
    assert " takes no more connections. Raise max_connections or the limit of its role" in said
    assert "few" not in said.replace("let fewer", "")


@pytest.mark.parametrize(
    ("sentence", "cause"),
    [
        ("FATAL:  sorry, too many clients already", "takes no more connections"),
        ("FATAL:  remaining connection slots are reserved for x", "takes no more connections"),
        ("FATAL:  too many connections for database", "takes no more connections"),
        ("FATAL:  the database system is starting up", "is starting or stopping"),
        ("FATAL:  the database system is shutting down", "is starting or stopping"),
        ("FATAL:  the database system is in recovery mode", "is starting or stopping"),
        ("server does not support SSL, but SSL was required", "do not agree on SSL"),
        ("SSL error: certificate verify failed", "do not agree on SSL"),
        ('certificate for "h" does not match host name "i"', "do not agree on SSL"),
        ('private key file "/home/k" has group or world access', "do not agree on SSL"),
        ('connection to server at "ssl" (::1), port 5432 failed: timeout expired', "10 seconds"),
        ('FATAL:  no pg_hba.conf entry for host "h", database "d", no encryption', "in this way"),
    ],
)
def test_what_a_server_says_of_its_own_state_is_told(sentence: str, cause: str) -> None:
    url = make_url("postgresql://somebody@host/name")
    assert why_unreachable(url, sentence).message.endswith(f"{cause}.")
