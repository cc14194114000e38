"""A process dies at the worst moment, and what it left is carried on without a second batch.

Field reports 1, 2, 3, 7, 11. The workers are real processes, killed where the test wants them:
in an HTTP call that the proxy holds, or in front of a text that is a pipe and never comes.
"""

import os
from collections.abc import Callable

import pytest

from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline_tests.batch_server.process import wait_until
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import Hold
from extraction_pipeline_tests.faults.proxy import CONTENT, CREATE, UPLOAD, Proxy
from extraction_pipeline_tests.faults.worker import Worker, working
from extraction_pipeline_tests.lifecycle.driving import Driven


def only_job(driven: Driven) -> int:
    ((job_id,),) = driven.rows("SELECT id FROM extraction.batch_jobs")
    return int(job_id)


@pytest.mark.parametrize("end", [Worker.kill, Worker.interrupt], ids=["SIGKILL", "SIGINT"])
def test_killed_after_the_provider_took_the_job(
    driven: Driven, workplace: Workplace, proxy: Proxy, end: Callable[[Worker], None]
) -> None:
    workplace.write(3)
    driven.scan()
    hold = Hold(forward=True)
    proxy.plan(CREATE, hold)
    with working("submit", "notes") as worker:
        assert hold.reached.wait(20)
        job_id = only_job(driven)
        assert "another run is at work" in (driven.resolve(job_id).cause or "")
        end(worker)
    assert driven.job(job_id).state in (JobState.SUBMITTING, JobState.UNRESOLVED)
    assert driven.submit().jobs == []
    driven.resolved(job_id)
    assert len(driven.finished(job_id).published) == 3
    assert (driven.creates(job_id), proxy.count(CREATE)) == (1, 1)
    ((extractions,),) = driven.rows("SELECT count(*) FROM extraction.extractions")
    assert extractions == 3


def test_killed_before_the_create_reached_the_provider(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(2)
    driven.scan()
    hold = Hold(forward=False)
    proxy.plan(CREATE, hold)
    with working("submit", "notes") as worker:
        assert hold.reached.wait(20)
        worker.kill()
    job_id = only_job(driven)
    assert driven.job(job_id).state is JobState.SUBMITTING
    driven.resolved(job_id)
    assert (driven.creates(job_id), proxy.count(CREATE)) == (1, 2)
    assert len(driven.finished(job_id).published) == 2


def test_killed_while_the_upload_was_under_way(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(2)
    driven.scan()
    hold = Hold(forward=True)
    proxy.plan(UPLOAD, hold)
    with working("submit", "notes") as worker:
        assert hold.reached.wait(20)
        worker.kill()
    job_id = only_job(driven)
    assert driven.job(job_id).state is JobState.PREPARED
    driven.resolved(job_id)
    assert (driven.creates(job_id), proxy.count(CREATE), proxy.count(UPLOAD)) == (1, 1, 2)
    assert len(driven.finished(job_id).published) == 2


def test_killed_while_the_payload_was_built(
    driven: Driven, connected: Pipeline, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(3)
    driven.scan()
    ((text_hash,),) = driven.rows("SELECT text_hash FROM extraction.documents ORDER BY id LIMIT 1")
    text = connected.store.get(text_hash)
    (place,) = (workplace.root / "home" / "store").rglob(text_hash)
    place.unlink()
    os.mkfifo(place)
    with working("submit", "notes") as worker:
        wait_until(lambda: driven.rows("SELECT FROM extraction.batch_jobs"))
        worker.kill()
    place.unlink()
    place.write_bytes(text)
    job_id = only_job(driven)
    assert driven.job(job_id).state is JobState.PREPARING
    assert driven.submit().jobs == []
    driven.resolved(job_id)
    assert (driven.creates(job_id), proxy.count(CREATE)) == (1, 1)
    assert len(driven.finished(job_id).published) == 3


def test_killed_while_results_were_fetched(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(3)
    (job_id,) = driven.submitted()
    driven.ended(job_id)
    hold = Hold(forward=True)
    proxy.plan(CONTENT, hold)
    with working("collect", str(job_id)) as worker:
        assert hold.reached.wait(20)
        worker.kill()
    assert driven.job(job_id).state is JobState.ENDED
    wait_until(lambda: not driven.rows("SELECT FROM pg_locks WHERE locktype = 'advisory'"))
    assert driven.collect(job_id)[1].landed == 3
    assert len(driven.publish(job_id).published) == 3
