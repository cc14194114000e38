"""Publishing: each answer is judged by itself, and a failure has a kind that decides who acts."""

import json
import threading

import pytest

from extraction_pipeline.errors import ConfigurationError, StoreError
from extraction_pipeline.ledger.jobs import StateMoved
from extraction_pipeline.ledger.states import DocumentStatus, JobState
from extraction_pipeline.ledger.summary import document_lines
from extraction_pipeline.lifecycle.decisions import give_up
from extraction_pipeline.lifecycle.publishing import LOST_PATIENCE
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import answer
from extraction_pipeline_tests.faults.proxy import CONTENT, CREATE, Proxy
from extraction_pipeline_tests.faults.result_rows import Change, envelope, reversed_rows, said
from extraction_pipeline_tests.lifecycle.driving import ACTOR, Driven
from extraction_pipeline_tests.lifecycle.model_answers import NOTHING_STATED


def collected(driven: Driven, workplace: Workplace, count: int) -> int:
    workplace.write(count)
    (job_id,) = driven.submitted()
    driven.ended(job_id)
    driven.collect(job_id)
    return job_id


def status(driven: Driven, wanted: DocumentStatus) -> list[tuple[str, str | None, int | None]]:
    """(hash, reason, attempt) of the documents of one status."""
    with driven.pipeline.engine.connect() as connection:
        lines = document_lines(
            connection, "notes", "v1", driven.collection.active.max_attempts, statuses=[wanted]
        )
    return [(line.document_hash, line.reason, line.attempt) for line in lines]


def test_one_answer_that_is_no_record_costs_one_document_and_at_most_its_attempts(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Field reports 31, 38, 39: the rest is published, and the same half JSON is not bought for
    ever."""
    proxy.plan_results(said(2, '{"chief_complaint": "half'), times=1)
    job_id = collected(driven, workplace, 6)
    result = driven.publish(job_id)
    assert (len(result.published), result.failed) == (5, 1)
    assert driven.summary().waiting == 1
    proxy.plan_results(said(0, '{"chief_complaint": "half'), times=1)
    (second,) = driven.submit().submitted
    assert driven.job(second).request_count == 1
    driven.finished(second)
    assert driven.submit().jobs == []  # two attempts were all
    assert (driven.summary().published, driven.summary().invalid) == (5, 1)
    ((_, reason, attempt),) = status(driven, DocumentStatus.INVALID)
    assert (reason, attempt) == ("invalid_not_json", 2)
    ((answers,),) = driven.rows("SELECT count(*) FROM extraction.raw_responses")
    assert answers == 7  # the raw text of both failures is kept
    assert proxy.count(CREATE) == 2


NO_RECORD: dict[str, tuple[Change, DocumentStatus, str]] = {
    "refusal in words (field report 32)": (
        said(0, "I am sorry, but I cannot help with that."),
        DocumentStatus.INVALID,
        "invalid_not_json",
    ),
    "refusal field": (
        said(0, None, refusal="I cannot help."),
        DocumentStatus.FAILED,
        "refused",
    ),
    "cut at the token limit (field report 34)": (
        said(0, '{"chief_complaint": "half', finish="length"),
        DocumentStatus.FAILED,
        "truncated",
    ),
    "cut, and valid by chance (field report 35)": (
        said(0, "{}", finish="length"),
        DocumentStatus.FAILED,
        "truncated",
    ),
    "empty": (said(0, ""), DocumentStatus.FAILED, "empty"),
    "nothing": (said(0, None), DocumentStatus.FAILED, "empty"),
    "filtered": (said(0, "", finish="content_filter"), DocumentStatus.FAILED, "blocked"),
    "answered 500": (
        envelope(0, status_code=500, body={"error": {"code": "server_error"}}),
        DocumentStatus.FAILED,
        "errored:server_error",
    ),
    "answered 500 in words": (
        envelope(0, status_code=500, body={"error": {"code": "Jane Doe's file broke it"}}),
        DocumentStatus.FAILED,
        "errored",
    ),
    "another schema": (said(0, '{"title": "x"}'), DocumentStatus.INVALID, "invalid_schema"),
    "a list": (said(0, "[]"), DocumentStatus.INVALID, "invalid_not_an_object"),
}


@pytest.mark.parametrize(("change", "end", "reason"), NO_RECORD.values(), ids=NO_RECORD)
def test_every_way_to_give_no_record_is_its_own_end(
    driven: Driven,
    workplace: Workplace,
    proxy: Proxy,
    change: Change,
    end: DocumentStatus,
    reason: str,
) -> None:
    workplace.declare(max_attempts=1)
    driven = Driven(workplace.open(), driven.server)
    proxy.plan_results(change)
    assert driven.publish(collected(driven, workplace, 2)).failed == 1
    kind = "rejected" if reason == "truncated" else "model"
    assert driven.items() == {("published", None, None): 1, ("failed", kind, reason): 1}
    assert [line[1:] for line in status(driven, end)] == [(reason, 1)]
    assert driven.submit().jobs == []
    driven.pipeline.engine.dispose()


def test_an_empty_account_in_the_middle_of_a_batch_uses_up_no_attempt(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Field report 15."""
    workplace.declare(max_attempts=1)
    driven = Driven(workplace.open(), driven.server)
    refused = envelope(0, status_code=429, body={"error": {"code": "insufficient_quota"}})
    proxy.plan_results(refused, times=1)
    driven.publish(collected(driven, workplace, 2))
    assert driven.items()[("failed", "account", "account")] == 1
    assert [line[1] for line in status(driven, DocumentStatus.WAITING)] == ["account"]
    (second,) = driven.submit().submitted
    driven.finished(second)
    assert driven.summary().published == 2
    driven.pipeline.engine.dispose()


def test_a_number_that_nothing_can_hold_costs_one_document(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    declared = workplace.collections / "notes.yaml"
    declared.write_text(
        declared.read_text().replace(
            "document_type: discharge_summary",
            "document_type: extraction_pipeline_tests.lifecycle.counted_type",
        )
    )
    driven = Driven(workplace.open(), driven.server)
    proxy.plan_results(
        lambda content: said(0, '{"pages": ' + "9" * 30 + "}")(said(1, '{"pages": 3}')(content))
    )
    result = driven.publish(collected(driven, workplace, 2))
    assert (len(result.published), result.failed) == (1, 1)
    assert driven.items()[("failed", "model", "invalid_number")] == 1
    driven.pipeline.engine.dispose()


def test_text_that_the_database_cannot_hold_costs_no_record(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Field report 47: NUL, half a character, U+2028, letters beyond the basic plane."""
    awkward = NOTHING_STATED | {"chief_complaint": "a\0b \ud800 \u2028 \U0001d538 漢"}
    proxy.plan_results(said(0, json.dumps(awkward)))
    assert len(driven.publish(collected(driven, workplace, 2)).published) == 2
    ((complaint,),) = driven.rows(
        "SELECT body->>'chief_complaint' FROM extraction.extractions"
        " WHERE body->>'chief_complaint' IS NOT NULL"
    )
    assert complaint == "ab \ufffd \u2028 \U0001d538 漢"


def test_publishing_twice_changes_nothing(driven: Driven, workplace: Workplace) -> None:
    job_id = collected(driven, workplace, 3)
    driven.publish(job_id)
    before = driven.rows("SELECT * FROM extraction.extractions ORDER BY id")
    assert driven.publish(job_id).published == []
    assert driven.rows("SELECT * FROM extraction.extractions ORDER BY id") == before
    assert driven.audited()["job_published"] == 1


def test_runs_at_once_publish_once_and_do_not_wait_for_each_others_connections(
    driven: Driven, workplace: Workplace
) -> None:
    job_id = collected(driven, workplace, 40)
    start = threading.Barrier(6)
    moved: list[StateMoved] = []
    published: list[str] = []

    def run() -> None:
        start.wait(20)
        try:
            published.extend(driven.publish(job_id).published)
        except StateMoved as error:
            moved.append(error)

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert (len(published), len(set(published))) == (40, 40)
    assert driven.audited()["job_published"] == 1


def test_a_text_that_the_store_lost_keeps_its_own_document_waiting_and_no_other(
    driven: Driven, workplace: Workplace, caplog: pytest.LogCaptureFixture
) -> None:
    """Promise 4: a fault of our storage is mended by replay, and one is not everybody's."""
    job_id = collected(driven, workplace, 4)
    ((text_hash, document_hash),) = driven.rows(
        "SELECT text_hash, document_hash FROM extraction.documents ORDER BY id LIMIT 1"
    )
    (place,) = (workplace.root / "home" / "store").rglob(text_hash)
    content = place.read_bytes()
    place.unlink()
    with pytest.raises(StoreError, match=r"1 answers wait.*3 were published"):
        driven.publish(job_id)
    assert document_hash in caplog.text
    assert driven.job(job_id).state is JobState.COLLECTED
    assert (driven.summary().published, driven.summary().waiting) == (3, 1)
    place.write_bytes(content)
    assert len(driven.publish(job_id).published) == 1
    assert driven.job(job_id).state is JobState.PUBLISHED


def test_results_that_the_store_lost_are_fetched_once_more_and_only_the_same_will_do(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id = collected(driven, workplace, 3)
    ((results,),) = driven.rows("SELECT content_hash FROM extraction.result_files")
    (place,) = (workplace.root / "home" / "store").rglob(results)
    place.write_bytes(bytes(place.stat().st_size))
    with pytest.raises(StoreError):
        driven.publish(job_id)
    driven.collect(job_id)
    place.unlink()
    place.symlink_to("/proc/self/mem")  # as a file that a damaged disk does not give out
    with pytest.raises(StoreError, match="Input/output error"):
        driven.publish(job_id)
    driven.collect(job_id)
    place.unlink()
    with pytest.raises(StoreError):
        driven.publish(job_id)
    proxy.plan_results(reversed_rows)
    with pytest.raises(StoreError, match="does not have the same bytes any more"):
        driven.collect(job_id)
    proxy.forget_plans()
    driven.collect(job_id)
    assert len(driven.publish(job_id).published) == 3
    assert driven.creates(job_id) == 1


def test_results_that_nobody_has_any_more_are_given_up_by_a_person(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id = collected(driven, workplace, 2)
    ((results,),) = driven.rows("SELECT content_hash FROM extraction.result_files")
    (place,) = (workplace.root / "home" / "store").rglob(results)
    place.unlink()
    proxy.plan(CONTENT, answer(404), times=None)
    with pytest.raises(StoreError, match="could not be fetched again"):
        driven.collect(job_id)
    driven.execute("UPDATE extraction.batch_jobs SET failing_since = now() - interval '2h'")
    assert give_up(driven.pipeline, job_id, ACTOR, "nobody has them") == 2
    assert driven.job(job_id).state is JobState.FAILED
    assert driven.items() == {("failed", "transport", "results_lost"): 2}
    proxy.forget_plans()
    (again,) = driven.submit().submitted
    assert len(driven.finished(again).published) == 2


def test_a_store_that_is_away_is_not_asked_for_every_answer(
    driven: Driven, workplace: Workplace, caplog: pytest.LogCaptureFixture
) -> None:
    job_id = collected(driven, workplace, 2 * LOST_PATIENCE)
    store = workplace.root / "home" / "store"
    ((results,),) = driven.rows("SELECT content_hash FROM extraction.result_files")
    for place in store.rglob("?" * 64):
        if place.name != results:
            place.unlink()
    with pytest.raises(StoreError):
        driven.publish(job_id)
    assert len(caplog.records) < LOST_PATIENCE + 5
    assert driven.items() == {("answered", None, None): 2 * LOST_PATIENCE}


def test_an_answer_that_was_damaged_in_the_store_is_not_published(
    driven: Driven, workplace: Workplace
) -> None:
    """What is published is what came: its hash is compared."""
    job_id = collected(driven, workplace, 3)
    ((results,),) = driven.rows("SELECT content_hash FROM extraction.result_files")
    (place,) = (workplace.root / "home" / "store").rglob(results)
    content = place.read_bytes()
    place.chmod(0o600)
    place.write_bytes(content.replace(b"Examplol", b"Otherdol", 1))
    with pytest.raises(StoreError, match="1 answers wait"):
        driven.publish(job_id)
    assert driven.summary().published == 2
    place.write_bytes(content)
    driven.publish(job_id)
    assert driven.summary().published == 3


def test_nothing_of_a_document_or_an_answer_is_in_the_log(
    driven: Driven, workplace: Workplace, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    """Promise 8."""
    caplog.set_level("DEBUG")
    proxy.plan_results(said(0, "Fictional answer that is no JSON"))
    driven.publish(collected(driven, workplace, 3))
    assert "Fictional" not in caplog.text
    assert "Examplol" not in caplog.text


@pytest.mark.parametrize("change", ["renamed", "of another type"])
def test_a_job_is_published_as_what_it_was_asked_for_whatever_the_yaml_says_by_now(
    driven: Driven, workplace: Workplace, change: str
) -> None:
    job_id = collected(driven, workplace, 2)
    declared = workplace.collections / "notes.yaml"
    if change == "renamed":
        declared.write_text(declared.read_text().replace("name: notes", "name: letters"))
    else:
        declared.write_text(declared.read_text().replace("discharge_summary", "payer_note"))
    later = Driven(workplace.open(), driven.server)
    assert len(later.publish(job_id).published) == 2
    assert {row[0] for row in driven.rows("SELECT schema_version FROM extraction.extractions")} == {
        driven.job(job_id).schema_version
    }
    later.pipeline.engine.dispose()


def test_answers_of_a_type_that_nobody_declares_wait_and_say_so(
    driven: Driven, workplace: Workplace
) -> None:
    job_id = collected(driven, workplace, 1)
    driven.execute(
        """UPDATE extraction.extraction_versions
           SET recipe = jsonb_set(recipe, '{schema_name}', '"of_another_house"')"""
    )
    with pytest.raises(ConfigurationError, match="has the document type of_another_house"):
        driven.publish(job_id)
    assert driven.job(job_id).state is JobState.COLLECTED


def test_what_a_provider_calls_its_model_is_kept_only_where_it_is_a_name(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    def odd(content: bytes) -> bytes:
        rows = [json.loads(line) for line in content.splitlines()]
        for row, model in zip(rows, ("Mr. Fictional Name", "org/model:1.0-x"), strict=True):
            row["response"]["body"]["model"] = model
            row["response"]["body"]["usage"] = {
                "prompt_tokens": 2**62,
                "completion_tokens": 7,
                "total_tokens": 1,
            }
        return b"".join(json.dumps(row).encode() + b"\n" for row in rows)

    proxy.plan_results(odd)
    assert len(driven.publish(collected(driven, workplace, 2)).published) == 2
    kept = driven.rows("SELECT model, input_tokens, output_tokens FROM extraction.raw_responses")
    assert sorted(map(tuple, kept), key=str) == [("org/model:1.0-x", None, 7), (None, None, 7)]
    assert driven.summary().input_tokens == 0
