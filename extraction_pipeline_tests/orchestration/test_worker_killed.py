"""A run's process is killed with SIGKILL: nothing goes out twice, nothing stays undone."""

import pytest
from dagster import DagsterRunStatus

from extraction_pipeline.orchestration.jobs import JOB_KEY_TAG
from extraction_pipeline.orchestration.liveness import BOUNDS
from extraction_pipeline.orchestration.sensors import tick
from extraction_pipeline_tests.faults.actions import Hold
from extraction_pipeline_tests.faults.proxy import CONTENT, CREATE, Proxy
from extraction_pipeline_tests.orchestration.conftest import HELD_SECONDS
from extraction_pipeline_tests.orchestration.installed import Installed, keys
from extraction_pipeline_tests.orchestration.processes import job_process, kill

pytestmark = pytest.mark.usefixtures("patient")


def runs_of(installed: Installed, job: str) -> list[DagsterRunStatus]:
    """How the runs of a job stand, the oldest first."""
    return [run.status for run in installed.instance.get_runs() if run.job_name == job][::-1]


def grow_older(installed: Installed) -> None:
    """Let all runs have started so long ago that their locks decide."""
    installed.execute(
        "UPDATE runs SET update_timestamp = update_timestamp - make_interval(secs => :age)",
        age=BOUNDS[DagsterRunStatus.STARTED] + 1,
    )


def test_killed_while_it_submits_the_job_is_adopted_and_was_created_once(
    installed: Installed, proxy: Proxy
) -> None:
    hashes = installed.with_documents(3)
    hold = Hold(forward=True)
    proxy.plan(CREATE, hold)
    with job_process(
        installed, "submit_missing", "submit_missing_documents", {"collection": "notes"}
    ) as worker:
        assert hold.reached.wait(HELD_SECONDS), worker.poll()
        kill(worker)
    assert installed.query("SELECT state FROM extraction.batch_jobs") == ["submitting"]
    assert runs_of(installed, "submit_missing") == [DagsterRunStatus.STARTED]
    # The claim says that another run may carry the job on a minute after it was made.
    assert tick(installed.pipeline, installed.instance).requests == ()
    installed.execute("UPDATE extraction.batch_jobs SET due_at = now()")
    grow_older(installed)
    installed.driver().wait()
    assert installed.submit().success
    assert proxy.count(CREATE) == 1
    assert installed.query("SELECT count(*) FROM extraction.batch_jobs") == [1]
    assert installed.query("SELECT event FROM extraction.audit_events WHERE event ~ 'adopt'") == [
        "job_adopted"
    ]
    for asset in ("batch_submissions", "raw_responses", "extractions"):
        assert installed.materialized(asset) == keys(hashes), asset
        assert len(installed.records(asset)) == 3
    assert installed.ledger_keys() == keys(hashes)
    assert runs_of(installed, "submit_missing") == [
        DagsterRunStatus.FAILURE,
        DagsterRunStatus.SUCCESS,
    ]


def test_a_run_that_lives_is_left_alone_and_a_lost_one_gives_its_job_back(
    installed: Installed, proxy: Proxy
) -> None:
    hashes = installed.with_documents(2)
    key = installed.ended_job()
    hold = Hold(forward=False)
    proxy.plan(CONTENT, hold)
    with job_process(
        installed,
        "collect_batch",
        "collect_batch_results",
        {"job_key": key},
        **{JOB_KEY_TAG: key},
    ) as worker:
        assert hold.reached.wait(HELD_SECONDS), worker.poll()
        grow_older(installed)
        for daemon in (True, False):
            assert tick(installed.pipeline, installed.instance, daemon=daemon).requests == ()
        assert runs_of(installed, "collect_batch") == [DagsterRunStatus.STARTED]
        kill(worker)
    installed.driver().wait()
    assert runs_of(installed, "collect_batch") == [
        DagsterRunStatus.FAILURE,
        DagsterRunStatus.SUCCESS,
    ]
    assert installed.materialized("extractions") == keys(hashes) == installed.ledger_keys()
    assert len(installed.records("extractions")) == 2
    assert proxy.count(CREATE) == 1
