"""What a living run has not come to yet is its own; what a dead or hanging one left is not."""

import threading
from concurrent.futures import ThreadPoolExecutor

from extraction_pipeline.lifecycle.submission import (
    BUSY_PATIENCE_SECONDS,
    SubmissionReport,
    claim,
)
from extraction_pipeline.orchestration.jobs import JOB_KEY_TAG
from extraction_pipeline.orchestration.lifeline import lifeline
from extraction_pipeline.orchestration.recording import Recorder, record_submission
from extraction_pipeline.orchestration.sensors import tick
from extraction_pipeline_tests.orchestration.installed import Installed, keys, let_go_of_runs

RUN = "5f0c4a50-0000-4000-8000-000000000001"


def begun(installed: Installed, hashes: list[str]) -> list[str]:
    """A run that lives has made a job for each of these documents and sent none; their keys."""
    url = installed.pipeline.settings.database_url
    assert url is not None
    lifeline(url.get_secret_value()).hold(RUN)
    collection = installed.pipeline.collection("notes")
    for one in hashes:
        version = collection.version("v1")
        claim(installed.pipeline, collection, version, [one], RUN, SubmissionReport())
    installed.execute("UPDATE extraction.batch_jobs SET due_at = now() - interval '1 hour'")
    return installed.query("SELECT job_key FROM extraction.batch_jobs ORDER BY id")


def asked_for(installed: Installed) -> set[str]:
    requests = tick(installed.pipeline, installed.instance).requests
    return {request.tags[JOB_KEY_TAG] for request in requests}


def test_jobs_that_a_living_run_comes_to_are_left_to_it_until_it_dies(
    installed: Installed,
) -> None:
    waiting = begun(installed, installed.with_documents(2))
    assert asked_for(installed) == set()
    let_go_of_runs(installed.pipeline)
    assert asked_for(installed) == set(waiting)


def test_jobs_of_a_run_that_lives_and_brings_none_on_are_carried_on(installed: Installed) -> None:
    waiting = begun(installed, installed.with_documents(2))
    installed.execute(
        "UPDATE extraction.audit_events SET at = now() - make_interval(secs => :age)",
        age=BUSY_PATIENCE_SECONDS + 1,
    )
    assert asked_for(installed) == set(waiting)


def test_a_job_that_its_living_run_could_not_send_is_tried_again_when_due(
    installed: Installed,
) -> None:
    waiting = begun(installed, installed.with_documents(2))
    tried = "UPDATE extraction.batch_jobs SET poll_count = 1 WHERE job_key = :key"
    installed.execute(tried, key=waiting[0])
    assert asked_for(installed) == {waiting[0]}


def test_what_a_living_run_has_sent_it_records_itself(installed: Installed) -> None:
    (one,) = installed.with_documents(1)
    assert installed.submit(document_hashes=[one]).success
    installed.execute(
        "UPDATE extraction.batch_jobs SET submission_recorded_at = NULL,"
        " submitted_at = now() - interval '61 seconds', due_at = now() + interval '1 hour'"
    )
    installed.execute("UPDATE extraction.audit_events SET actor = :run", run=RUN)
    url = installed.pipeline.settings.database_url
    assert url is not None
    lifeline(url.get_secret_value()).hold(RUN)
    assert asked_for(installed) == set()
    let_go_of_runs(installed.pipeline)
    assert asked_for(installed) == set(installed.query("SELECT job_key FROM extraction.batch_jobs"))


def test_of_runs_that_record_a_submission_at_once_one_does(installed: Installed) -> None:
    hashes = installed.with_documents(3)
    assert installed.submit().success
    (job,) = installed.query("SELECT id FROM extraction.batch_jobs")
    installed.execute("UPDATE extraction.batch_jobs SET submission_recorded_at = NULL")
    before = len(installed.records("batch_submissions"))
    together = threading.Barrier(4)

    def record(number: int) -> int:
        to = Recorder(installed.instance, f"run-{number}", "resolve_submission", "step")
        together.wait(20)
        return record_submission(installed.pipeline, job, to)

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(record, range(4))) == [0, 0, 0, 3]
    assert len(installed.records("batch_submissions")) == before + 3
    assert installed.materialized("batch_submissions") == keys(hashes)
