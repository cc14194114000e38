"""One collection all the way, by the lifecycle alone."""

from extraction_pipeline.ledger import jobs
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.ledger.summary import summarize
from extraction_pipeline.lifecycle.collecting import collect
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.polling import poll_due
from extraction_pipeline.lifecycle.publishing import publish_job
from extraction_pipeline.lifecycle.registration import scan
from extraction_pipeline.lifecycle.submission import submit_documents
from extraction_pipeline_tests.batch_server.process import ServerProcess
from extraction_pipeline_tests.conftest import Workplace


def test_every_document_is_published_and_asked_about_once(
    workplace: Workplace, pipeline: Pipeline, server: ServerProcess
) -> None:
    workplace.write(7)
    notes = pipeline.collection("notes")
    assert len(scan(pipeline, notes).new) == 7
    report = submit_documents(pipeline, notes, notes.active, actor="test")
    assert report.documents == 7
    assert len(report.submitted) == 1
    for _ in range(100):
        if any(reading.ended for reading in poll_due(pipeline, "test", 10, seconds=5)):
            break
    (job_id,) = report.submitted
    job, landing = collect(pipeline, job_id, "test")
    assert (job.state, landing.landed, landing.missing) == (JobState.COLLECTED, 7, 0)
    assert len(publish_job(pipeline, job_id, "test").published) == 7
    again = submit_documents(pipeline, notes, notes.active, actor="test")
    assert again.documents == 0
    with pipeline.engine.connect() as connection:
        summary = summarize(connection, "notes", "v1", 2)
        assert jobs.job_by_id(connection, job_id).state is JobState.PUBLISHED
    assert (summary.documents, summary.published, summary.waiting) == (7, 7, 0)
    assert server.statistics()["jobs_created"] == 1
