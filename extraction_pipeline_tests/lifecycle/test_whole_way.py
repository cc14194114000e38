"""One collection all the way, by the lifecycle alone."""

from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline_tests.batch_server.process import ServerProcess
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.lifecycle.driving import Driven


def test_every_document_is_published_and_asked_about_once(
    workplace: Workplace, pipeline: Pipeline, server: ServerProcess
) -> None:
    driven = Driven(pipeline, server)
    workplace.write(7)
    assert len(driven.scan().new) == 7
    report = driven.submit()
    assert (report.documents, len(report.submitted)) == (7, 1)
    (job_id,) = report.submitted
    assert driven.ended(job_id).state is JobState.ENDED
    job, landing = driven.collect(job_id)
    assert (job.state, landing.landed, landing.missing) == (JobState.COLLECTED, 7, 0)
    assert len(driven.publish(job_id).published) == 7
    assert driven.job(job_id).state is JobState.PUBLISHED
    assert driven.submit().documents == 0
    summary = driven.summary()
    assert (summary.documents, summary.published, summary.waiting) == (7, 7, 0)
    assert server.statistics()["jobs_created"] == 1
