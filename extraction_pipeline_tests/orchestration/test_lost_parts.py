"""A part of a source whose worker was lost is read again, as often as any lost run is tried."""

import pytest
from dagster import DagsterRun, DagsterRunStatus, RunRequest, build_sensor_context
from dagster._core.definitions.run_status_sensor_definition import RunStatusSensorCursor
from dagster._core.events import RunFailureReason
from dagster._core.storage.tags import (
    BACKFILL_ID_TAG,
    MAX_RETRIES_TAG,
    PARTITION_NAME_TAG,
    RUN_FAILURE_REASON_TAG,
)

from extraction_pipeline.documents.parts import part_keys
from extraction_pipeline.orchestration.lost_parts import LOST_TAG
from extraction_pipeline_tests.orchestration.installed import Installed

PART = part_keys("notes", 2)[1]


@pytest.fixture
def in_parts(installed: Installed) -> Installed:
    installed.workplace.environment.setenv("EXTRACTION_SCAN_PARTS", "2")
    installed.workplace.write(6)
    return installed.reopened()


def lost(installed: Installed, **tags: str) -> None:
    """A run of a backfill, of one part, whose process is gone, as it is taken for lost."""
    job = installed.definitions.resolve_job_def("scan_in_parts")
    run = installed.instance.create_run_for_job(
        job,
        status=DagsterRunStatus.STARTED,
        tags={**job.tags, PARTITION_NAME_TAG: PART, BACKFILL_ID_TAG: "over", **tags},
    )
    installed.instance.report_run_failed(run)


def asked_for(installed: Installed) -> list[RunRequest]:
    """What a tick of the sensor asks for, over all that has happened."""
    start = RunStatusSensorCursor(
        record_id=0, update_timestamp="2026-01-01T00:00:00+00:00"
    ).to_json()
    context = build_sensor_context(
        instance=installed.instance, cursor=start, definitions=installed.definitions
    )
    sensor = installed.definitions.get_repository_def().get_sensor_def("lost_parts")
    return list(sensor.evaluate_tick(context).run_requests or ())


def executed(installed: Installed, request: RunRequest) -> DagsterRun:
    result = installed.definitions.resolve_job_def("scan_in_parts").execute_in_process(
        instance=installed.instance, partition_key=request.partition_key, tags=dict(request.tags)
    )
    return result.dagster_run


def test_a_part_whose_worker_was_lost_is_read_by_another_run(in_parts: Installed) -> None:
    lost(in_parts)
    (request,) = asked_for(in_parts)
    assert request.partition_key == PART
    run = executed(in_parts, request)
    assert run.tags[PARTITION_NAME_TAG] == PART
    assert run.tags[MAX_RETRIES_TAG] == "0", "Dagster's own retries come not on top"
    assert in_parts.query("SELECT count(*) > 0 FROM extraction.documents") == [True]


def test_it_is_tried_as_often_as_the_instance_allows(in_parts: Installed) -> None:
    lost(in_parts, **{LOST_TAG: "1"})
    (request,) = asked_for(in_parts)
    assert request.tags[LOST_TAG] == "2"
    in_parts.execute("DELETE FROM event_logs")
    lost(in_parts, **{LOST_TAG: "2"})
    assert asked_for(in_parts) == []


def test_a_part_that_failed_with_a_cause_is_left_to_a_person(in_parts: Installed) -> None:
    lost(in_parts, **{RUN_FAILURE_REASON_TAG: RunFailureReason.STEP_FAILURE.value})
    assert asked_for(in_parts) == []


def test_a_part_that_is_none_any_more_keeps_no_other_back(in_parts: Installed) -> None:
    """Sources are read in another number of parts since, and the night reads them whole."""
    lost(in_parts)
    in_parts.workplace.environment.setenv("EXTRACTION_SCAN_PARTS", "3")
    assert asked_for(in_parts.reopened()) == []
