"""Replay: from the stored raw responses to extractions, again, with no inference."""

import pytest

from extraction_pipeline.errors import RecipeChanged
from extraction_pipeline.ledger.states import DocumentStatus
from extraction_pipeline.lifecycle.publishing import Publication, replay
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.proxy import CREATE, Proxy
from extraction_pipeline_tests.faults.result_rows import said
from extraction_pipeline_tests.lifecycle.driving import Driven
from extraction_pipeline_tests.lifecycle.test_publishing import status


def replayed(driven: Driven) -> Publication:
    hashes = [row[0] for row in driven.rows("SELECT document_hash FROM extraction.documents")]
    return replay(driven.pipeline, driven.collection, "v1", hashes, "replay")


def as_an_older_validation_left_it(driven: Driven) -> None:
    """One published document, as if a stricter validation had refused its answer."""
    driven.execute(
        "DELETE FROM extraction.extractions"
        " WHERE document_id = (SELECT min(document_id) FROM extraction.batch_items)"
    )
    driven.execute(
        "UPDATE extraction.batch_items SET state = 'failed', failure_kind = 'model',"
        " failure_reason = 'invalid_schema'"
        " WHERE document_id = (SELECT min(document_id) FROM extraction.batch_items)"
    )


def test_a_replay_is_idempotent_and_needs_no_provider(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(5)
    (job_id,) = driven.submitted()
    driven.finished(job_id)
    proxy.close()
    before = driven.rows("SELECT * FROM extraction.extractions ORDER BY id")
    for _ in range(2):
        result = replayed(driven)
        assert (len(result.published), result.changed, result.missing) == (5, 0, [])
    assert driven.rows("SELECT * FROM extraction.extractions ORDER BY id") == before


def test_what_was_lost_from_the_database_comes_back_as_it_was(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(5)
    (job_id,) = driven.submitted()
    driven.finished(job_id)
    proxy.close()
    columns = "document_id, version_id, raw_response_id, body, body_hash, text_hash"
    before = driven.rows(f"SELECT {columns} FROM extraction.extractions ORDER BY document_id")
    driven.execute("DELETE FROM extraction.extractions")
    assert replayed(driven).changed == 5
    assert (
        driven.rows(f"SELECT {columns} FROM extraction.extractions ORDER BY document_id") == before
    )


def test_a_changed_normalization_changes_the_record_and_not_the_number_of_them(
    driven: Driven, workplace: Workplace
) -> None:
    workplace.write(3)
    (job_id,) = driven.submitted()
    driven.finished(job_id)
    driven.execute("UPDATE extraction.extractions SET body = '{}', body_hash = 'older'")
    assert replayed(driven).changed == 3
    bodies = driven.rows("SELECT body FROM extraction.extractions")
    assert len(bodies) == 3
    assert all(row[0] for row in bodies)


def test_an_answer_that_is_valid_now_is_published_and_not_asked_for_again(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(3)
    (job_id,) = driven.submitted()
    driven.finished(job_id)
    as_an_older_validation_left_it(driven)
    assert driven.summary().waiting == 1
    assert len(replayed(driven).published) == 3
    assert driven.summary().published == 3
    assert driven.submit().jobs == []
    assert proxy.count(CREATE) == 1


def test_a_document_with_a_record_is_not_asked_about_though_its_last_attempt_failed(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """The replay published the first attempt while the second was under way, which then failed."""
    workplace.declare(max_attempts=5)
    driven = Driven(workplace.open(), driven.server)
    workplace.write(2)
    (job_id,) = driven.submitted()
    driven.finished(job_id)
    as_an_older_validation_left_it(driven)
    (second,) = driven.submit().submitted
    replayed(driven)
    assert driven.summary().published == 2
    proxy.plan_results(said(0, "no JSON"))
    driven.finished(second)
    assert driven.items()[("failed", "model", "invalid_not_json")] == 1
    assert driven.submit().jobs == []
    assert (driven.summary().published, proxy.count(CREATE)) == (2, 2)
    driven.pipeline.engine.dispose()


def test_documents_without_a_stored_answer_are_named(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(3)
    proxy.plan_results(said(0, None, refusal="no"))
    (job_id,) = driven.submitted()
    driven.finished(job_id)
    result = replayed(driven)
    ((refused, _, _),) = status(driven, DocumentStatus.WAITING)
    assert (len(result.published), result.missing) == (2, [refused])
    assert replay(driven.pipeline, driven.collection, "v9", [refused], None).missing == [refused]


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"model": "rules-baseline-2"}, "model"),
        ({"max_output_tokens": 1}, "max_output_tokens"),
        ({"parameters": "{temperature: 0.5}"}, "parameters.temperature"),
        ({"instructions": "Find all."}, "instructions"),
    ],
)
def test_a_recipe_that_changed_under_a_used_name_is_refused_by_what_changed(
    driven: Driven, workplace: Workplace, change: dict[str, str], part: str
) -> None:
    workplace.write(1)
    driven.submitted()
    workplace.write(1, start=1)
    workplace.declare("notes", "", **change)
    changed = Driven(workplace.open(), driven.server)
    changed.scan()
    with pytest.raises(RecipeChanged, match=f"changed: {part}\\)") as raised:
        changed.submit()
    assert "new version name" in (raised.value.remedy or "")
    assert len(changed.rows("SELECT FROM extraction.batch_jobs")) == 1
    workplace.declare("notes", "", max_attempts=9)  # a policy, and no part of the recipe
    assert Driven(workplace.open(), driven.server).submit().documents == 1
    changed.pipeline.engine.dispose()
