"""A job that waits because of what happened to one of its calls."""

from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.proxy import CREATE, Fault, Proxy, Route
from extraction_pipeline_tests.lifecycle.driving import Driven


def waiting_job(
    driven: Driven,
    workplace: Workplace,
    proxy: Proxy,
    fault: Fault,
    *,
    call: Route = CREATE,
    documents: int = 2,
) -> int:
    """Submit so many notes in one job, with `fault` in its call; the job, which waits."""
    workplace.write(documents)
    proxy.plan(call, fault)
    driven.scan()
    (job_id,) = driven.submit().waiting
    return job_id
