"""Tables that grew in bulk are counted anew, for plans that fit them, and only those."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text

from extraction_pipeline.ledger.counted import count_anew
from extraction_pipeline.ledger.database import open_engine


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = open_engine(database_url)
    yield engine
    engine.dispose()


def grow(engine: Engine, first: int, rows: int) -> None:
    with engine.begin() as connection:
        connection.execute(
            text("""
                INSERT INTO extraction.document_sources (collection, path, problem)
                SELECT 'notes', n::text, 'unread' FROM generate_series(:first, :last) n
            """),
            {"first": first, "last": first + rows - 1},
        )


def counted(engine: Engine) -> dict[str, float]:
    with engine.connect() as connection:
        return {
            row.relname: row.reltuples
            for row in connection.execute(
                text("""
                    SELECT relname, reltuples FROM pg_class
                    WHERE relnamespace = 'extraction'::regnamespace AND relkind = 'r'
                """)
            )
        }


def test_a_table_is_counted_when_it_has_doubled(engine: Engine) -> None:
    grow(engine, 0, 3000)
    count_anew(engine)
    assert counted(engine)["document_sources"] == 3000
    assert counted(engine)["webhook_deliveries"] == -1  # never, for it has no rows
    grow(engine, 3000, 500)
    count_anew(engine)
    assert counted(engine)["document_sources"] == 3000
    grow(engine, 3500, 4500)
    count_anew(engine)
    assert counted(engine)["document_sources"] == 8000


def test_one_that_is_being_cleaned_is_left_alone(engine: Engine) -> None:
    grow(engine, 0, 3000)
    with engine.begin() as busy:
        busy.execute(text("LOCK TABLE extraction.document_sources IN SHARE UPDATE EXCLUSIVE MODE"))
        count_anew(engine)
        assert counted(engine)["document_sources"] == -1
