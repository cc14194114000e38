"""Dagster's tables after a start that was killed while it made them, and beside contents."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from dagster import DagsterInstance, DagsterRun
from dagster._core.storage.event_log import SqlEventLogStorageMetadata
from dagster._core.storage.runs import RunStorageSqlMetadata
from dagster._core.utils import make_new_run_id
from sqlalchemy import Engine, inspect, make_url, text

from extraction_pipeline.errors import LedgerError
from extraction_pipeline.installation.dagster_tables import (
    Standing,
    dagster_standing,
    make_dagster_tables,
)
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.ledger.migrate import migrate
from extraction_pipeline_tests.ledger.databases import database

HALVES = {
    "before the first": "SELECT 1",
    "within those of runs": "DROP TABLE run_tags, backfill_tags, alembic_version",
    "before the stamp": "DROP TABLE alembic_version",
    "within the stamp": "DELETE FROM alembic_version",
    "within those of events": "DROP TABLE asset_check_executions, jobs, job_ticks, instigators",
    "within those of ticks": "DROP TABLE job_ticks",
    "before the last mark": "DELETE FROM secondary_indexes WHERE name LIKE 'schedule_%'",
}
RUNS_ALONE = "DROP TABLE run_tags, alembic_version"


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """A database with all of Dagster's tables."""
    opened = open_engine(database_url)
    yield opened
    opened.dispose()


@pytest.fixture
def instance(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DagsterInstance]:
    monkeypatch.setenv("EXTRACTION_DATABASE_URL", database_url)
    (tmp_path / "dagster.yaml").write_text(
        "storage: {postgres: {postgres_url: {env: EXTRACTION_DATABASE_URL}}}\n"
    )
    with DagsterInstance.from_config(str(tmp_path)) as opened:
        yield opened


def standing(engine: Engine) -> Standing:
    with engine.connect() as connection:
        return dagster_standing(connection)


def change(engine: Engine, statement: str) -> None:
    with engine.begin() as connection:
        connection.execute(text(statement))


def add_a_run(instance: DagsterInstance) -> str:
    run_id = make_new_run_id()
    instance.add_run(DagsterRun(job_name="job", run_id=run_id))
    return run_id


def url_of(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=False)


def test_they_are_made_once(postgres_url: str) -> None:
    with database(postgres_url) as url:
        engine = open_engine(url)
        assert standing(engine) is Standing.NONE
        make_dagster_tables(url)
        assert standing(engine) is Standing.COMPLETE
        oid = "SELECT 'runs'::regclass::oid"
        with engine.connect() as connection:
            before = connection.execute(text(oid)).scalar_one()
            make_dagster_tables(url)
            assert connection.execute(text(oid)).scalar_one() == before
        engine.dispose()


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES.keys())
def test_those_of_a_killed_start_are_made_anew(engine: Engine, half: str) -> None:
    change(engine, half)
    make_dagster_tables(url_of(engine))
    assert standing(engine) is Standing.COMPLETE


@pytest.mark.parametrize("metadata", [RunStorageSqlMetadata, SqlEventLogStorageMetadata])
def test_the_first_half_alone_is_made_anew(postgres_url: str, metadata: object) -> None:
    with database(postgres_url) as url:
        engine = open_engine(url)
        for table in list(metadata.sorted_tables)[:3]:  # type: ignore[attr-defined]
            table.create(engine)
        assert standing(engine) is Standing.HALF_MADE
        make_dagster_tables(url)
        assert standing(engine) is Standing.COMPLETE
        engine.dispose()


@pytest.mark.parametrize(
    "half", [RUNS_ALONE, HALVES["before the stamp"], HALVES["within those of ticks"]]
)
def test_a_database_with_a_run_in_it_is_never_touched(
    engine: Engine, instance: DagsterInstance, half: str
) -> None:
    run_id = add_a_run(instance)
    change(engine, half)
    tables = set(inspect(engine).get_table_names())
    with pytest.raises(LedgerError, match="dagster instance migrate") as raised:
        make_dagster_tables(url_of(engine))
    assert raised.value.exit_code == 3
    assert set(inspect(engine).get_table_names()) == tables
    with engine.connect() as connection:
        found = connection.execute(text("SELECT run_id FROM runs")).scalar_one()
    assert found == run_id


def test_runs_without_the_marks_go_on(engine: Engine, instance: DagsterInstance) -> None:
    run_id = add_a_run(instance)
    change(engine, "DELETE FROM secondary_indexes")
    make_dagster_tables(url_of(engine))
    assert instance.get_run_by_id(run_id) is not None


@pytest.mark.parametrize(
    "other",
    [
        "CREATE TABLE jobs (id bigint, title text)",
        "CREATE TABLE alembic_version AS SELECT 'of_another_program' AS version_num",
    ],
)
def test_what_another_program_made_is_left_alone(postgres_url: str, other: str) -> None:
    with database(postgres_url) as url:
        engine = open_engine(url)
        change(engine, other)
        tables = inspect(engine).get_table_names()
        with pytest.raises(LedgerError, match="in use; nothing was changed"):
            make_dagster_tables(url)
        assert inspect(engine).get_table_names() == tables
        engine.dispose()


def test_two_first_starts_do_not_meet(postgres_url: str) -> None:
    with database(postgres_url) as url, ThreadPoolExecutor() as threads:
        for start in [threads.submit(make_dagster_tables, url) for _ in range(3)]:
            start.result()
        engine = open_engine(url)
        assert standing(engine) is Standing.COMPLETE
        engine.dispose()


def test_they_are_never_made_among_the_ledgers(postgres_url: str) -> None:
    """As for a role that is called as the ledger's schema is."""
    with database(postgres_url) as url:
        asked = make_url(url).update_query_dict({"options": "-csearch_path=extraction,public"})
        engine = open_engine(asked.render_as_string(hide_password=False))
        migrate(engine)
        before = inspect(engine).get_table_names()
        with pytest.raises(
            LedgerError, match=r"ALTER ROLE \w+ IN DATABASE own_\w+ SET search_path"
        ):
            make_dagster_tables(asked.render_as_string(hide_password=False))
        assert inspect(engine).get_table_names() == before
        engine.dispose()
        make_dagster_tables(url)
