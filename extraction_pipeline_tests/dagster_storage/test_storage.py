"""The storage's own ways: its versions, its order of writers, its few connections."""

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from dagster import AssetKey, AssetMaterialization, DagsterInstance
from dagster._core.definitions.partitions.subset import DefaultPartitionsSubset
from dagster._core.events import AssetMaterializationPlannedData, DagsterEvent
from sqlalchemy import Engine, create_engine, make_url, text
from sqlalchemy.event import listen, remove

from extraction_pipeline.dagster_storage import event_log
from extraction_pipeline.dagster_storage.engines import CONNECTIONS_KEPT
from extraction_pipeline.dagster_storage.event_log import ROWS_AT_ONCE, BulkEventLogStorage
from extraction_pipeline.dagster_storage.event_rows import hold_assets
from extraction_pipeline.dagster_storage.table_statistics import LOOK_AT_ROWS
from extraction_pipeline.dagster_storage.tested_versions import TESTED_VERSIONS
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.installation.instance_file import INSTANCE_FILE
from extraction_pipeline.orchestration.event_log import write_records

SENT = AssetKey("sent")
CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = create_engine(make_url(database_url).set(drivername="postgresql+psycopg2"))
    yield engine
    engine.dispose()


def writing(instance: DagsterInstance, *partitions: str) -> Callable[[], int]:
    records = [AssetMaterialization(SENT, partition=one) for one in partitions]
    return lambda: write_records(
        instance, run_id="run", job_name="job", step_key="step", records=records
    )


def test_the_tested_versions_are_those_of_the_constraints() -> None:
    pinned = dict(line.split("==") for line in CONSTRAINTS.read_text().splitlines() if "==" in line)
    assert {name: pinned[name] for name in TESTED_VERSIONS} == TESTED_VERSIONS


def test_another_version_of_dagster_is_refused_in_one_line(
    instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TESTED_VERSIONS, "dagster-postgres", "0.28.1")
    with (
        pytest.raises(ConfigurationError, match=r"dagster-postgres 0\.28\.1.*constraints") as told,
        DagsterInstance.from_config(instance.root_directory),
    ):
        pass
    assert "\n" not in str(told.value)


def test_a_line_break_after_the_address_is_no_part_of_it(
    instance: DagsterInstance, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = make_url(database_url)
    monkeypatch.setenv("PGHOST", str(url.query["host"]))
    ending_in_its_name = url.set(query={}).render_as_string(hide_password=False)
    monkeypatch.setenv("EXTRACTION_DATABASE_URL", f"{ending_in_its_name}\n")
    with DagsterInstance.from_config(instance.root_directory) as opened:
        assert opened.get_runs_count() == 0


@pytest.mark.parametrize("alone", [False, True], ids=["of many", "a single one"])
def test_who_writes_later_has_the_higher_ids(
    instance: DagsterInstance, engine: Engine, alone: bool
) -> None:
    """Or who reads an asset's events after the last that it knows would never see the others."""
    later = AssetMaterialization(SENT, partition="later")
    other = Thread(
        target=(lambda: instance.report_runless_asset_event(later))
        if alone
        else writing(instance, "later")
    )
    with engine.begin() as connection:
        hold_assets(connection, [SENT.to_string()])
        other.start()
        other.join(0.5)
        assert other.is_alive(), "it waits for the end of this transaction"
        drawn = "SELECT nextval(pg_get_serial_sequence('event_logs', 'id'))"
        mine = connection.execute(text(drawn)).scalar_one()
    other.join(20)
    [record] = instance.fetch_materializations(SENT, limit=9).records
    assert record.storage_id > mine


@pytest.mark.parametrize("count", [ROWS_AT_ONCE - 1, ROWS_AT_ONCE + 1])
def test_a_batch_of_any_size_is_stored_whole_and_in_order(
    instance: DagsterInstance, count: int
) -> None:
    partitions = [f"{number:05}" for number in range(count)]
    writing(instance, *partitions)()
    newest = instance.fetch_materializations(SENT, limit=count, ascending=True).records
    assert [record.partition_key for record in newest] == partitions


def test_a_table_that_grew_in_bulk_is_counted_at_once(
    instance: DagsterInstance, engine: Engine
) -> None:
    """Or the next question about all partitions of an asset joins them one by one."""
    partitions = DefaultPartitionsSubset({f"{number:05}" for number in range(LOOK_AT_ROWS)})
    planned = AssetMaterializationPlannedData(SENT, partitions_subset=partitions)
    instance.report_dagster_event(
        DagsterEvent.build_asset_materialization_planned_event("job", "step", planned), "run"
    )
    known = "SELECT reltuples FROM pg_class WHERE relname = 'event_logs'"
    with engine.connect() as connection:
        assert connection.execute(text(known)).scalar_one() >= LOOK_AT_ROWS


def test_a_table_that_need_not_be_counted_is_looked_at_as_seldom(
    instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Single events are written in this way too, and a daemon lives for months."""
    monkeypatch.setattr(event_log, "LOOK_AT_ROWS", 10)
    monkeypatch.setattr(BulkEventLogStorage, "_look_at", 10)
    storage = instance.event_log_storage
    assert isinstance(storage, BulkEventLogStorage)
    looked: list[int] = []
    single = 0

    def look(connection: Any, cursor: Any, statement: str, *further: Any) -> None:
        if "reltuples" in statement:
            looked.append(single)

    listen(storage._engine, "before_cursor_execute", look)
    try:
        for single in range(26):
            count = 1 if single else 100
            planned = AssetMaterializationPlannedData(
                SENT, partitions_subset=DefaultPartitionsSubset({f"{n}" for n in range(count)})
            )
            event = DagsterEvent.build_asset_materialization_planned_event("job", "step", planned)
            instance.report_dagster_event(event, "run")
    finally:
        remove(storage._engine, "before_cursor_execute", look)
    assert looked == [0, 10, 20]


def test_instances_of_a_process_share_few_connections(
    instance: DagsterInstance, engine: Engine
) -> None:
    home = Path(instance.root_directory)
    assert (home / "dagster.yaml").read_bytes() == INSTANCE_FILE.read_bytes()
    others = [DagsterInstance.from_config(str(home)) for _ in range(4)]
    for one in (instance, *others):
        one.get_runs(limit=1)
        one.get_asset_keys()
        one.all_instigator_state()
    with engine.connect() as connection:
        opened = connection.execute(
            text(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND application_name = 'extraction-pipeline-dagster'"
            )
        ).scalar_one()
    assert 1 <= opened <= CONNECTIONS_KEPT
    for one in others:
        one.dispose()
