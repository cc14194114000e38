"""A run counts as lost only if its process is gone: never while it loads, waits or checks."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from dagster import AssetCheckKey, AssetKey, DagsterRun, DagsterRunStatus, RunsFilter
from dagster._core.definitions.run_request import InstigatorType
from sqlalchemy import create_engine, text

from extraction_pipeline.errors import DatabaseUnavailable, LedgerError
from extraction_pipeline.ledger.database import RUN_LOCK
from extraction_pipeline.orchestration import liveness
from extraction_pipeline.orchestration.jobs import JOB_KEY_TAG
from extraction_pipeline.orchestration.lifeline import (
    PULSE_SECONDS,
    lifeline,
    lock_engine,
    take_run_lock,
)
from extraction_pipeline.orchestration.liveness import (
    BOUNDS,
    OURS,
    hold_for_life,
    report_lost_runs,
)
from extraction_pipeline.orchestration.sensors import tick
from extraction_pipeline_tests.batch_server.process import wait_until
from extraction_pipeline_tests.faults.actions import Hold
from extraction_pipeline_tests.faults.proxy import CONTENT, Proxy
from extraction_pipeline_tests.ledger.databases import LOCK_HOLDERS_END
from extraction_pipeline_tests.orchestration.conftest import HELD_SECONDS
from extraction_pipeline_tests.orchestration.installed import Installed, keys
from extraction_pipeline_tests.orchestration.processes import Process, job_process

OF_RUNS = f"classid = {RUN_LOCK}"
"""Locks of runs, among all."""
STARTED, STARTING = DagsterRunStatus.STARTED, DagsterRunStatus.STARTING
NOTES = frozenset({AssetKey(["notes", "extractions"])})


def url_of(installed: Installed) -> str:
    url = installed.pipeline.settings.database_url
    assert url is not None
    return url.get_secret_value()


def dead_run(installed: Installed, status: DagsterRunStatus, age: float, **values: object) -> str:
    """A run without a process, that came to its status so many seconds ago; its id."""
    run = installed.instance.add_run(DagsterRun(status=status, **values))  # type: ignore[arg-type]
    installed.execute(
        "UPDATE runs SET update_timestamp = update_timestamp - make_interval(secs => :age)"
        " WHERE run_id = :run",
        age=age,
        run=run.run_id,
    )
    return run.run_id


def status_of(installed: Installed, run_id: str) -> DagsterRunStatus:
    run = installed.instance.get_run_by_id(run_id)
    assert run is not None
    return run.status


@contextmanager
def collecting(installed: Installed, proxy: Proxy) -> Iterator[Process]:
    """A process whose run waits for the results of a job."""
    installed.with_documents(1)
    hold = Hold(forward=False)
    proxy.plan(CONTENT, hold)
    config = {"job_key": installed.ended_job()}
    with job_process(installed, "collect_batch", "collect_batch_results", config) as worker:
        assert hold.reached.wait(HELD_SECONDS), worker.poll()
        yield worker


@pytest.fixture(autouse=True)
def second_look_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "SECOND_LOOK_SECONDS", 0.05)


@pytest.mark.parametrize("status", list(BOUNDS))
@pytest.mark.parametrize(
    "kind",
    [
        {"job_name": "collect_batch", "tags": OURS},
        {"job_name": "__ASSET_JOB", "asset_selection": NOTES},
        {
            "job_name": "__ASSET_JOB",
            "asset_check_selection": frozenset({AssetCheckKey(min(NOTES), "any")}),
        },
    ],
    ids=["job", "assets", "checks"],
)
def test_a_run_that_died_before_it_wrote_anything_of_itself_is_lost(
    installed: Installed, status: DagsterRunStatus, kind: dict[str, object]
) -> None:
    young = dead_run(installed, status, BOUNDS[status] - 10, **kind)
    old = dead_run(installed, status, BOUNDS[status] + 1, **kind)
    assert report_lost_runs(installed.pipeline, installed.instance) == 1
    assert status_of(installed, young) is status
    assert status_of(installed, old) is DagsterRunStatus.FAILURE


def test_a_run_of_somebody_else_is_never_ended(installed: Installed) -> None:
    others = [
        dead_run(installed, STARTED, 9999, job_name="theirs"),
        dead_run(installed, STARTED, 9999, job_name="collect_batch"),
        dead_run(
            installed,
            STARTED,
            9999,
            job_name="__ASSET_JOB",
            asset_selection=frozenset({AssetKey(["theirs", "extractions"])}),
        ),
    ]
    assert report_lost_runs(installed.pipeline, installed.instance) == 0
    assert {status_of(installed, run) for run in others} == {STARTED}


def test_a_lost_run_without_a_word_of_itself_gives_its_batch_job_back(
    installed: Installed,
) -> None:
    hashes = installed.with_documents(2)
    key = installed.ended_job()
    dead_run(
        installed,
        STARTED,
        31,
        job_name="collect_batch",
        tags={JOB_KEY_TAG: key, **OURS},
    )
    installed.driver().wait()
    assert installed.materialized("extractions") == keys(hashes)


def test_a_run_whose_process_died_before_it_began_gives_its_batch_job_back(
    installed: Installed,
) -> None:
    """A command writes its run, then begins it; one that is killed in between never does."""
    installed.with_documents(1)
    key = installed.ended_job()
    dead_run(
        installed,
        DagsterRunStatus.NOT_STARTED,
        301,
        job_name="collect_batch",
        tags={JOB_KEY_TAG: key, **OURS},
    )
    (request,) = tick(installed.pipeline, installed.instance).requests
    assert request.tags[JOB_KEY_TAG] == key


@pytest.mark.usefixtures("patient")
def test_a_real_run_holds_its_lock_from_its_first_step_on(
    installed: Installed, proxy: Proxy
) -> None:
    with collecting(installed, proxy) as worker:
        installed.execute("UPDATE runs SET update_timestamp = update_timestamp - interval '1 day'")
        assert report_lost_runs(installed.pipeline, installed.instance) == 0
        # Its session is cut off: its process lives, and takes the lock again.
        cut_off(installed)
        wait_until(lambda: locks(installed) == 0)
        wait_until(lambda: locks(installed) == 1)
        assert report_lost_runs(installed.pipeline, installed.instance) == 0
        worker.kill()
        worker.wait(20)
        wait_until(lambda: locks(installed) == 0)
    assert report_lost_runs(installed.pipeline, installed.instance) == 1


@pytest.mark.usefixtures("patient")
def test_a_process_whose_run_was_ended_while_it_was_cut_off_ends_and_writes_no_more(
    installed: Installed, proxy: Proxy
) -> None:
    with collecting(installed, proxy) as worker:
        worker.send_signal(signal.SIGSTOP)  # as a host that is cut off: it cannot come back
        installed.execute("UPDATE runs SET update_timestamp = update_timestamp - interval '1 day'")
        cut_off(installed)
        wait_until(lambda: locks(installed) == 0)
        assert report_lost_runs(installed.pipeline, installed.instance) == 1
        (record,) = installed.instance.get_run_records(
            RunsFilter(statuses=[DagsterRunStatus.FAILURE], job_name="collect_batch")
        )
        written = installed.query("SELECT count(*) FROM event_logs")
        worker.send_signal(signal.SIGCONT)
        output, _ = worker.communicate(timeout=HELD_SECONDS)
    assert worker.returncode == DatabaseUnavailable.exit_code, output
    assert f"Run {record.dagster_run.run_id} was taken for lost" in output
    assert installed.query("SELECT count(*) FROM event_logs") == written
    assert locks(installed) == 0


def test_a_lock_that_is_being_looked_at_when_its_session_returns_is_taken_by_a_later_beat(
    installed: Installed,
) -> None:
    line = lifeline(url_of(installed))
    line.hold("one")
    with lock_engine(url_of(installed)).connect() as looker:
        cut_off(installed)
        wait_until(lambda: take_run_lock(looker, "one"))
        time.sleep(2 * PULSE_SECONDS)  # beats that find it in the looker's hand
        looker.invalidate()
    wait_until(lambda: locks(installed) == 1)
    line.let_go_of_all()
    assert locks(installed) == 0


@pytest.fixture
def held_table(installed: Installed) -> Iterator[threading.Event]:
    """Nobody can read `extraction.documents` until this is set."""
    release, taken = threading.Event(), threading.Event()
    engine = create_engine(url_of(installed).replace("postgresql:", "postgresql+psycopg2:"))

    def hold() -> None:
        with engine.begin() as connection:
            connection.execute(text("LOCK TABLE extraction.documents IN ACCESS EXCLUSIVE MODE"))
            taken.set()
            release.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    assert taken.wait(10)
    yield release
    release.set()
    holder.join(10)
    engine.dispose()


def test_a_run_is_alive_while_its_checks_are_run(
    installed: Installed, held_table: threading.Event
) -> None:
    check = AssetCheckKey(AssetKey(["notes", "extractions"]), "records_agree_with_ledger")
    job = installed.definitions.resolve_implicit_global_asset_job_def().get_subset(
        asset_check_selection={check}
    )
    run = threading.Thread(
        target=lambda: job.execute_in_process(instance=installed.instance, raise_on_error=False)
    )
    run.start()
    waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    wait_until(lambda: installed.query(waits) == [1])
    installed.execute("UPDATE runs SET update_timestamp = update_timestamp - interval '1 day'")
    assert report_lost_runs(installed.pipeline, installed.instance) == 0
    held_table.set()
    run.join(60)
    assert [one.status for one in installed.instance.get_runs()] == [DagsterRunStatus.SUCCESS]


def test_a_run_that_ended_meanwhile_keeps_its_end(
    installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = dead_run(installed, STARTED, 99, job_name="collect_batch", tags=OURS)

    def ends(seconds: float) -> None:
        run = installed.instance.get_run_by_id(run_id)
        assert run is not None
        installed.instance.report_run_canceled(run)

    monkeypatch.setattr("extraction_pipeline.orchestration.liveness.time.sleep", ends)
    assert report_lost_runs(installed.pipeline, installed.instance) == 0
    assert status_of(installed, run_id) is DagsterRunStatus.CANCELED


def test_a_run_that_was_taken_for_lost_before_it_took_its_lock_stops(
    installed: Installed,
) -> None:
    run_id = dead_run(installed, STARTED, 99, job_name="collect_batch", tags=OURS)
    assert report_lost_runs(installed.pipeline, installed.instance) == 1
    with pytest.raises(LedgerError, match="taken for lost, before it had begun"):
        hold_for_life(url_of(installed), installed.instance, run_id)
    assert locks(installed) == 0


def test_a_driver_frees_the_lock_of_each_run_it_executed(installed: Installed) -> None:
    installed.with_documents(1)
    installed.finish()
    assert locks(installed) == 0
    assert tick(installed.pipeline, installed.instance).requests == ()


def test_a_lock_is_held_once_however_often_it_is_asked_for(installed: Installed) -> None:
    line = lifeline(url_of(installed))
    for run_id in ("one", "two", "one"):
        line.hold(run_id)
    assert locks(installed) == 2
    line.let_go("one")
    assert locks(installed) == 1
    line.let_go_of_all()
    assert locks(installed) == 0


def locks(installed: Installed) -> int:
    """How many locks of runs are held in the test's database."""
    (count,) = installed.query(
        f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND {OF_RUNS}"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    return int(count)


def cut_off(installed: Installed) -> None:
    """End the connections that hold locks of runs."""
    installed.execute(f"{LOCK_HOLDERS_END} AND granted AND {OF_RUNS}")


def test_no_run_and_no_trail_of_ticks_lasts_for_ever(installed: Installed) -> None:
    instance = installed.instance
    assert instance.run_monitoring_enabled
    assert 6 * 3600 <= instance.run_monitoring_max_runtime_seconds <= 48 * 3600
    for kind in (InstigatorType.SENSOR, InstigatorType.SCHEDULE):
        assert all(days > 0 for days in instance.get_tick_retention_settings(kind).values())
