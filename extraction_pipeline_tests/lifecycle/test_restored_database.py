"""A database that was restored from a copy, beside a store that went on after it."""

from dataclasses import replace

from sqlalchemy import make_url

from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.ledger.databases import database
from extraction_pipeline_tests.lifecycle.driving import Driven


def test_what_was_open_when_it_was_copied_is_collected_and_nothing_is_bought_again(
    driven: Driven, workplace: Workplace, postgres_url: str, database_url: str
) -> None:
    workplace.write(3)
    (published,) = driven.submitted()
    driven.finished(published)
    workplace.write(2, start=3)
    (is_open,) = driven.submitted()
    driven.pipeline.engine.dispose()  # a database is copied while nobody is connected
    with database(postgres_url, make_url(database_url).database or "") as copied:
        driven.finished(is_open)
        restored = Driven(replace(driven.pipeline, engine=open_engine(copied)), driven.server)
        restored.scan()
        assert restored.submit().jobs == []
        assert len(restored.finished(is_open).published) == 2
        assert restored.submit().jobs == []
        summary = restored.summary()
        assert (summary.documents, summary.published, summary.waiting) == (5, 5, 0)
        assert [restored.creates(job) for job in (published, is_open)] == [1, 1]
        restored.pipeline.engine.dispose()
