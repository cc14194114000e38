"""A database that went away, told from errors of engines that are not ours."""

from collections.abc import Iterator

import pytest
from dagster_postgres.utils import DagsterPostgresException, retry_pg_connection_fn
from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.exc import DBAPIError

from extraction_pipeline.errors import DatabaseUnavailable
from extraction_pipeline.ledger.lost_database import lost_database

NOWHERE = "postgresql+psycopg2://somebody:secret@127.0.0.1:1/nothing"
FULL = "DO $$ BEGIN RAISE 'no space for Fictional Name' USING ERRCODE = '53100'; END $$"


@pytest.fixture
def plain(database_url: str) -> Iterator[Engine]:
    engine = create_engine(make_url(database_url).set(drivername="postgresql+psycopg2"))
    yield engine
    engine.dispose()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (FULL, "The database's disk is full. Make room; what was under way is repeated safely."),
        (
            "SELECT pg_terminate_backend(pg_backend_pid())",
            "The connection to the database broke off (no code). Check the server; what was under "
            "way is repeated safely.",
        ),
    ],
    ids=["full", "ended"],
)
def test_a_loss_is_told_in_a_line_of_its_own(plain: Engine, statement: str, said: str) -> None:
    with pytest.raises(DBAPIError) as raised, plain.begin() as connection:
        connection.execute(text(statement))
    assert str(lost_database(raised.value)) == said


def test_it_is_found_below_what_became_of_it() -> None:
    with pytest.raises(DagsterPostgresException) as raised:
        retry_pg_connection_fn(create_engine(NOWHERE).connect, retry_limit=0)
    try:
        try:
            raise raised.value
        finally:
            raise RuntimeError("while it cleaned up")
    except RuntimeError as error:
        lost = lost_database(error)
    assert isinstance(lost, DatabaseUnavailable)
    assert "secret" not in str(lost)


def test_a_wrong_statement_is_no_loss(plain: Engine) -> None:
    with pytest.raises(DBAPIError) as raised, plain.begin() as connection:
        connection.execute(text("SELECT 1 / 0"))
    assert lost_database(raised.value) is None
    assert lost_database(ZeroDivisionError()) is None
