"""The migration makes the tables that the code knows, once, whoever runs it and how often."""

from collections.abc import Iterator
from importlib.resources import files

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, text

from extraction_pipeline.errors import LedgerError
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.ledger.migrate import migrate, require_current
from extraction_pipeline.ledger.states import (
    DeliveryOutcome,
    DocumentState,
    ItemState,
    JobState,
)
from extraction_pipeline.ledger.tables import SCHEMA, metadata
from extraction_pipeline_tests.faults.worker import working
from extraction_pipeline_tests.ledger.databases import database
from extraction_pipeline_tests.ledger.rows import HASH, insert


@pytest.fixture
def empty_url(postgres_url: str) -> Iterator[str]:
    """A database without any table."""
    with database(postgres_url) as url:
        yield url


@pytest.fixture
def empty(empty_url: str) -> Iterator[Engine]:
    opened = open_engine(empty_url)
    yield opened
    opened.dispose()


CATALOG = {
    "columns": """
        SELECT table_name, column_name, udt_name, is_nullable, column_default, is_identity
        FROM information_schema.columns WHERE table_schema = 'extraction'
    """,
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(c.oid)
        FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace
        WHERE n.nspname = 'extraction'
    """,
    "indexes": """
        SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'extraction'
    """,
    "enums": """
        SELECT t.typname, array_agg(e.enumlabel ORDER BY e.enumsortorder)::text
        FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid GROUP BY 1
    """,
}


def described(engine: Engine) -> dict[str, set[tuple[object, ...]]]:
    """All that PostgreSQL knows of the tables, but for alembic's own."""
    with engine.connect() as connection:
        return {
            kind: {
                tuple(row)
                for row in connection.execute(text(query))
                if "alembic_version" not in row[0]
            }
            for kind, query in CATALOG.items()
        }


def test_the_migration_makes_what_the_code_knows(empty: Engine, postgres_url: str) -> None:
    migrate(empty)
    with empty.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "include_schemas": True,
                "include_name": lambda name, kind, _: kind != "schema" or name == SCHEMA,
                "version_table": "alembic_version",
                "version_table_schema": SCHEMA,
                "compare_type": True,
                "compare_server_default": True,
            },
        )
        assert compare_metadata(context, metadata) == []
    # Alembic compares no checks, no conditions of indexes and no enums: PostgreSQL does.
    with database(postgres_url) as url:
        direct = open_engine(url)
        with direct.begin() as connection:
            connection.execute(text("CREATE SCHEMA extraction"))
            metadata.create_all(connection)
        wanted = described(direct)
        direct.dispose()
    found = described(empty)
    assert {kind: len(rows) for kind, rows in found.items() if not rows} == {}
    for kind, rows in wanted.items():
        assert found[kind] == rows, kind
    assert {str(row[1]) for row in found["enums"]} == {
        "{" + ",".join(state.value for state in states) + "}"
        for states in (DeliveryOutcome, DocumentState, ItemState, JobState)
    }


def test_a_second_migration_finds_nothing_to_do(empty: Engine) -> None:
    before, after = migrate(empty)
    assert before is None
    with empty.begin() as connection:
        connection.execute(
            text("INSERT INTO extraction.audit_events (event, actor) VALUES ('e', 'a')")
        )
    assert migrate(empty) == (after, after)
    with empty.connect() as connection:
        assert (
            connection.execute(text("SELECT count(*) FROM extraction.audit_events")).scalar() == 1
        )


def test_two_processes_that_migrate_at_once_do_it_once(
    empty_url: str, empty: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXTRACTION_DATABASE_URL", empty_url)
    with working("migrate") as first, working("migrate") as second:
        said = sorted([first.output().split(), second.output().split()])
    (_, newest) = said[0]
    assert said == [[newest, newest], ["None", newest]]
    require_current(empty)


def test_tables_of_another_version_are_refused_with_what_to_do(empty: Engine) -> None:
    with pytest.raises(LedgerError, match="at version none") as raised:
        require_current(empty)
    assert "extraction-pipeline migrate" in (raised.value.remedy or "")
    migrate(empty)
    with empty.begin() as connection:
        connection.execute(text("UPDATE extraction.alembic_version SET version_num = '9999'"))
    for refused in (require_current, migrate):
        with pytest.raises(
            LedgerError, match="at version 9999, which this code does not"
        ) as raised:
            refused(empty)
        assert raised.value.remedy == "Run that release, or a later one."


def test_a_migration_that_fails_leaves_nothing_half_done(empty: Engine) -> None:
    with empty.begin() as connection:
        connection.execute(text("CREATE SCHEMA extraction"))
        connection.execute(text("CREATE TABLE extraction.extractions (id int)"))
    with pytest.raises(LedgerError):
        migrate(empty)
    with empty.begin() as connection:
        tables = connection.execute(
            text("SELECT tablename FROM pg_tables WHERE schemaname = 'extraction'")
        ).scalars()
        assert list(tables) == ["extractions"]
        connection.execute(text("DROP TABLE extraction.extractions"))
    migrate(empty)
    require_current(empty)


def test_answers_of_the_first_version_are_named_as_uncosted(empty: Engine) -> None:
    """What is there when costs come: each answer gets its row, each job its estimate in tokens."""
    config = Config()
    folder = files("extraction_pipeline.ledger") / "migrations"
    config.set_main_option("script_location", str(folder))
    with empty.begin() as connection:
        connection.execute(text("CREATE SCHEMA extraction"))
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
    with empty.begin() as connection:
        version = insert(connection, "extraction_versions", recipe='{"max_output_tokens": 100}')
        job = insert(
            connection,
            "batch_jobs",
            version_id=version,
            state="prepared",
            request_count=3,
            payload_hash=HASH,
            payload_bytes=2001,
        )
        insert(connection, "batch_jobs", version_id=version, job_key="unbuilt")
        file = insert(connection, "result_files", batch_job_id=job)
        answers = [("completed", 7, 5), ("expired", None, None), ("completed", None, None)]
        for number, (outcome, used, written) in enumerate(answers):
            document = insert(connection, "documents", document_hash=f"{number}" * 64)
            item = insert(
                connection,
                "batch_items",
                batch_job_id=job,
                document_id=document,
                version_id=version,
                state="answered",
            )
            insert(
                connection,
                "raw_responses",
                item_id=item,
                result_file_id=file,
                outcome=outcome,
                input_tokens=used,
                output_tokens=written,
                received_at="2026-01-02T03:04:05Z",
            )
    assert migrate(empty)[0] == "0001"
    with empty.connect() as connection:
        costs = connection.execute(
            text("""
                SELECT c.input_tokens, c.output_tokens, c.amount, c.currency, c.at = r.received_at
                FROM extraction.request_costs c JOIN extraction.raw_responses r USING (item_id)
                ORDER BY c.item_id
            """)
        ).all()
        estimates = connection.execute(
            text("""
                SELECT estimated_input_tokens, estimated_output_tokens, estimated_amount
                FROM extraction.batch_jobs ORDER BY id
            """)
        ).all()
    assert [tuple(row) for row in costs] == [
        (7, 5, None, None, True),
        (0, 0, None, None, True),
        (None, None, None, None, True),
    ]
    assert [tuple(row) for row in estimates] == [(1001, 300, None), (None, None, None)]
    require_current(empty)
