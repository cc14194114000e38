"""A provider that answers with the id of another job: the job is held, and nothing else waits."""

import json

import pytest

from extraction_pipeline.errors import LedgerError
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle import decisions
from extraction_pipeline.providers.base import ProviderLimits
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import forward_then_drop
from extraction_pipeline_tests.faults.proxy import CREATE, LIST, Fault, Proxy, rewritten
from extraction_pipeline_tests.lifecycle.driving import ACTOR, Driven
from extraction_pipeline_tests.lifecycle.limits import limited
from extraction_pipeline_tests.lifecycle.lost_calls import waiting_job

ONE_A_JOB = ProviderLimits(requests_per_job=1, bytes_per_job=1_000_000, result_retention_days=None)


def naming(job_id: str) -> Fault:
    return rewritten(lambda body: json.dumps({**json.loads(body), "id": job_id}).encode())


def only(job_id: str, key: str) -> Fault:
    """The list shows one batch: this id with the key of another job."""
    batch = {"id": job_id, "status": "completed", "metadata": {"extraction_job_key": key}}
    return rewritten(lambda body: json.dumps({"data": [batch], "has_more": False}).encode())


def test_a_job_that_gets_the_id_of_another_is_held_and_the_rest_go_on(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(1)
    (first,) = driven.submitted()
    taken = driven.job(first).job_id or ""
    workplace.write(4)
    one_each = limited(driven, ONE_A_JOB)
    proxy.plan(CREATE, naming(taken))
    one_each.scan()
    report = one_each.submit()
    (held,) = report.waiting
    assert len(report.submitted) == 2 and not report.stopped
    assert report.causes[0].startswith(
        f"Job {driven.job(held).job_key} is held: local gave it the id {taken}, which is that of "
        f"job {driven.job(first).job_key}. Look there"
    )
    job = driven.job(held)
    assert (job.state, job.job_id, job.submit_http_status) == (JobState.HELD, None, 200)
    assert job.failure_code == "job_id_of_another"
    # Asked for again, it is found under its own id.
    assert driven.resolve(held).state is JobState.SUBMITTED
    assert driven.job(held).failure_code is None
    assert driven.creates(held) == 1


def test_a_job_that_is_found_under_the_id_of_another_is_held(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(1)
    (first,) = driven.submitted()
    taken = driven.job(first).job_id or ""
    lost = waiting_job(driven, workplace, proxy, forward_then_drop)
    proxy.plan(LIST, only(taken, driven.job(lost).job_key))
    sent = driven.resolve(lost)
    assert (sent.state, driven.job(lost).state) == (JobState.HELD, JobState.HELD)
    assert taken in (sent.cause or "")
    with pytest.raises(LedgerError, match=f"Batch {taken} is that of job"):
        decisions.adopt(driven.pipeline, lost, taken, ACTOR, "a mistake")
    assert decisions.give_up(driven.pipeline, lost, ACTOR, "not to be found") == 1
