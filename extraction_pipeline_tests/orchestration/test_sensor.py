"""The status sensor: one run for each ended job, whatever fails, and a bounded tick."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from dagster import (
    DagsterRunStatus,
    RunRequest,
    SensorResult,
    SkipReason,
    build_sensor_context,
)

from extraction_pipeline.orchestration import sensors
from extraction_pipeline.orchestration.jobs import ATTEMPT_TAG, JOB_KEY_TAG, collect_batch
from extraction_pipeline.orchestration.resource import PipelineResource
from extraction_pipeline.orchestration.sensors import batch_status, tick
from extraction_pipeline.settings import Settings
from extraction_pipeline_tests.batch_server.process import wait_until
from extraction_pipeline_tests.orchestration.installed import Installed, keys
from extraction_pipeline_tests.providers.scripted_server import scripted_server, silence


def with_ended_jobs(installed: Installed, count: int) -> list[str]:
    """Job keys of as many submitted jobs, of one document each, that have ended."""
    hashes = installed.with_documents(count)
    for one in hashes:
        assert installed.submit(document_hashes=[one]).success
    installed.ended()
    return installed.query("SELECT job_key FROM extraction.batch_jobs ORDER BY id")


def execute(installed: Installed, request: RunRequest) -> DagsterRunStatus:
    """Execute a requested run as the daemon would, and say how it ended."""
    (op,) = request.run_config["ops"]
    assert request.job_name is not None
    result = installed.run(
        request.job_name, op, request.run_config["ops"][op]["config"], **request.tags
    )
    run = installed.instance.get_run_by_id(result.run_id)
    assert run is not None
    return run.status


def job_keys(requests: Sequence[RunRequest]) -> list[str]:
    return [request.tags[JOB_KEY_TAG] for request in requests]


def test_a_tick_asks_for_one_run_for_each_ended_job(installed: Installed) -> None:
    ended = with_ended_jobs(installed, 2)
    requests = tick(installed.pipeline, installed.instance).requests
    assert [request.run_key for request in requests] == [f"{key}:1" for key in ended]
    for request, key in zip(requests, ended, strict=True):
        assert request.job_name == collect_batch.name
        assert request.run_config["ops"]["collect_batch_results"]["config"] == {
            "job_key": key,
            "attempt": 1,
        }
        assert request.tags[ATTEMPT_TAG] == "1"
        assert execute(installed, request) is DagsterRunStatus.SUCCESS
    assert installed.materialized("extractions") == installed.ledger_keys()
    assert len(installed.ledger_keys()) == 2
    after = tick(installed.pipeline, installed.instance)
    assert (after.requests, after.polled) == ((), 0)


def test_a_failed_run_is_asked_for_again_after_its_back_off_with_the_next_attempt(
    installed: Installed,
) -> None:
    (key,) = with_ended_jobs(installed, 1)
    for attempt, back_off in ((1, 15), (2, 30), (3, 60)):
        (request,) = tick(installed.pipeline, installed.instance).requests
        assert request.run_key == f"{key}:{attempt}"
        installed.disconnect()
        assert execute(installed, request) is DagsterRunStatus.FAILURE
        installed.requested_ago(back_off - 3)
        assert tick(installed.pipeline, installed.instance).requests == ()
        installed.requested_ago(back_off + 1)
    installed.reconnect()
    (request,) = tick(installed.pipeline, installed.instance).requests
    assert request.run_key == f"{key}:4"
    assert execute(installed, request) is DagsterRunStatus.SUCCESS
    assert len(installed.materialized("extractions")) == 1


def test_of_ticks_at_the_same_time_one_asks_for_the_run(installed: Installed) -> None:
    ended = with_ended_jobs(installed, 3)
    for attempt in range(1, 6):
        together = threading.Barrier(4)

        def one_tick(together: threading.Barrier = together) -> tuple[RunRequest, ...]:
            together.wait(20)
            return tick(installed.pipeline, installed.instance).requests

        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(one_tick) for _ in range(4)]
            requests = [request for one in asked for request in one.result(30)]
        assert sorted(request.run_key or "" for request in requests) == sorted(
            f"{key}:{attempt}" for key in ended
        )
        installed.requested_ago(3600)


@pytest.mark.parametrize(
    ("status", "daemon", "kept_back"),
    [
        (DagsterRunStatus.QUEUED, True, True),
        (DagsterRunStatus.STARTING, True, True),
        (DagsterRunStatus.STARTED, True, True),
        (DagsterRunStatus.FAILURE, True, False),
        (DagsterRunStatus.CANCELED, True, False),
        # Nobody will start it where there is no daemon.
        (DagsterRunStatus.QUEUED, False, False),
    ],
)
def test_a_run_under_way_keeps_its_job_from_another(
    installed: Installed, status: DagsterRunStatus, daemon: bool, kept_back: bool
) -> None:
    (key,) = with_ended_jobs(installed, 1)
    tick(installed.pipeline, installed.instance)
    installed.add_run(collect_batch.name, status, **{JOB_KEY_TAG: key})
    installed.requested_ago(3600)
    requests = tick(installed.pipeline, installed.instance, daemon=daemon).requests
    assert job_keys(requests) == ([] if kept_back else [key])


def test_records_that_a_killed_run_did_not_write_are_written_by_the_next(
    installed: Installed,
) -> None:
    hashes = installed.with_documents(2)
    installed.finish()
    installed.execute('DELETE FROM event_logs WHERE asset_key = \'["notes", "extractions"]\'')
    installed.execute("UPDATE extraction.batch_jobs SET results_recorded_at = NULL")
    installed.requested_ago(3600)
    assert installed.materialized("extractions") == set()
    jobs = installed.provider_jobs()
    (request,) = tick(installed.pipeline, installed.instance).requests
    assert execute(installed, request) is DagsterRunStatus.SUCCESS
    assert installed.materialized("extractions") == keys(hashes)
    assert installed.provider_jobs() == jobs


def evaluate(installed: Installed) -> SensorResult | SkipReason:
    """One evaluation of the sensor itself, as the daemon makes it."""
    context = build_sensor_context(
        instance=installed.instance,
        definitions=installed.definitions,
        resources={"pipeline": PipelineResource()},
    )
    result = batch_status(context)
    assert isinstance(result, SensorResult | SkipReason)
    return result


def test_the_sensor_says_why_it_asks_for_nothing(installed: Installed) -> None:
    skipped = evaluate(installed)
    assert isinstance(skipped, SkipReason)
    assert skipped.skip_message == "0 batch jobs polled, nothing to run; 0 are open."
    with_ended_jobs(installed, 1)
    asked = evaluate(installed)
    assert isinstance(asked, SensorResult)
    assert asked.run_requests is not None
    assert len(asked.run_requests) == 1
    waiting = evaluate(installed)
    assert isinstance(waiting, SkipReason)
    assert waiting.skip_message == "0 batch jobs polled, nothing to run; 1 are open."


def test_a_provider_that_does_not_answer_keeps_no_tick_and_gets_no_storm(
    installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes = installed.with_documents(6)
    for one in hashes:
        assert installed.submit(document_hashes=[one]).success
    monkeypatch.setattr(sensors, "SECONDS_PER_TICK", 0.8)
    with scripted_server(silence(10)) as silent:
        slow = installed.workplace.open(silent.url, READ_TIMEOUT="0.5", POLL_SECONDS="30")
        started = time.monotonic()
        first = tick(slow, installed.instance)
        took = time.monotonic() - started
        assert 1 <= first.polled < 6
        assert took < 0.8 + 0.5 + 1.5
        assert len(first.causes) == first.polled
        assert all("\n" not in cause and "Job notes.v1." in cause for cause in first.causes)
        while (later := tick(slow, installed.instance)).polled:
            assert later.polled < 6
        # Every job was read once, none a second time before its interval.
        assert len(silent.requests) == 6
        slow.engine.dispose()


def test_the_time_that_a_tick_may_take_is_less_than_dagster_allows() -> None:
    """Dagster cuts a tick off after 60 s. The last poll may begin at the end of the tick's time."""
    settings = Settings()
    last_poll = 4 * settings.poll_timeout  # for the connection, the head, the body: see `http`
    assert sensors.SECONDS_PER_TICK + last_poll < 60


def test_many_jobs_are_spread_over_ticks(
    installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sensors, "RUNS_PER_TICK", 2)
    ended = with_ended_jobs(installed, 5)
    asked = [job_keys(tick(installed.pipeline, installed.instance).requests) for _ in range(3)]
    assert [len(some) for some in asked] == [2, 2, 1]
    assert [key for some in asked for key in some] == ended


def test_a_job_whose_submission_is_not_certain_gets_a_run_that_resolves_it(
    installed: Installed,
) -> None:
    installed.with_documents(1)
    installed.disconnect()
    assert not installed.submit().success
    assert tick(installed.pipeline, installed.instance).requests == ()
    installed.execute("UPDATE extraction.batch_jobs SET due_at = now()")
    (request,) = tick(installed.pipeline, installed.instance).requests
    assert request.job_name == "resolve_submission"
    installed.reconnect()
    assert execute(installed, request) is DagsterRunStatus.SUCCESS
    wait_until(lambda: installed.query("SELECT state FROM extraction.batch_jobs") == ["submitted"])
    assert len(installed.materialized("batch_submissions")) == 1
    installed.ended()
    (collecting,) = tick(installed.pipeline, installed.instance).requests
    assert (collecting.job_name, collecting.tags[ATTEMPT_TAG]) == ("collect_batch", "2")
