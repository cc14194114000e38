"""Another provider is one more extraction version: same documents, same ledger, same records."""

from collections import defaultdict

from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.submission import submit_documents
from extraction_pipeline.providers.registry import BUILDERS, ProviderName
from extraction_pipeline_tests.batch_server.process import ServerProcess
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.lifecycle.driving import ACTOR, Driven

DOCUMENTS = 3


def test_every_provider_gives_the_same_records_from_the_same_documents(
    workplace: Workplace, shared_server: ServerProcess
) -> None:
    workplace.declare()
    with (workplace.collections / "notes.yaml").open("a") as yaml:
        for name in set(BUILDERS) - {ProviderName.LOCAL}:
            yaml.write(f"  on_{name}: {{provider: {name}, model: rules-baseline}}\n")
            workplace.environment.setenv(f"EXTRACTION_{name.upper()}_API_KEY", "k-1")
            path = "/v1" if name is ProviderName.OPENAI else ""
            workplace.environment.setenv(
                f"EXTRACTION_{name.upper()}_BASE_URL", shared_server.root_url + path
            )
    workplace.write(DOCUMENTS)
    pipeline = workplace.open(shared_server.base_url, POLL_MAX_SECONDS="0.05", READ_TIMEOUT="30")
    driven = Driven(pipeline, shared_server)
    driven.scan()
    for version in driven.collection.extraction_versions:
        report = submit_documents(pipeline, driven.collection, version, actor=ACTOR)
        assert (len(report.submitted), report.documents) == (1, DOCUMENTS), report.causes
        (job_id,) = report.submitted
        assert len(driven.finished(job_id).published) == DOCUMENTS
        assert driven.job(job_id).state is JobState.PUBLISHED
        again = submit_documents(pipeline, driven.collection, version, actor=ACTOR)
        assert again.documents == 0
    bodies = defaultdict(set)
    for document, body in driven.rows("SELECT document_id, body::text FROM extraction.extractions"):
        bodies[document].add(body)
    assert [len(different) for different in bodies.values()] == [1] * DOCUMENTS
    (count,) = driven.rows(
        "SELECT count(*), count(DISTINCT document_id) FROM extraction.extractions"
    )
    assert tuple(count) == (DOCUMENTS * len(BUILDERS), DOCUMENTS)
    usage = driven.rows(
        "SELECT DISTINCT input_tokens > 0, output_tokens > 0 FROM extraction.raw_responses"
    )
    assert [tuple(row) for row in usage] == [(True, True)]
    pipeline.engine.dispose()
