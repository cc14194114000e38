"""What a provider holds of a collected job is deleted there, once, where the setting says so."""

from extraction_pipeline.lifecycle.cleaning import clean_up
from extraction_pipeline.lifecycle.decisions import give_up
from extraction_pipeline.providers.base import ProviderLimits
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import answer
from extraction_pipeline_tests.faults.proxy import DELETE_FILE, Proxy
from extraction_pipeline_tests.lifecycle.driving import ACTOR, Driven
from extraction_pipeline_tests.lifecycle.limits import limited


def cleaning(driven: Driven, workplace: Workplace) -> Driven:
    return Driven(workplace.open(DELETE_AT_PROVIDER="true"), driven.server)


def files_at(driven: Driven) -> list[str]:
    rows = driven.rows("SELECT input_id FROM extraction.batch_jobs")
    results = driven.rows("SELECT reference FROM extraction.result_files")
    files = driven.pipeline.provider("local").files
    assert files is not None
    return [row[0] for row in (*rows, *results) if files.holds(row[0])]


def test_payload_and_results_go_once_they_are_collected(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(2)
    (job_id,) = driven.submitted()
    driven = cleaning(driven, workplace)
    assert clean_up(driven.pipeline, ACTOR) == []  # it is under way
    driven.ended(job_id)
    assert clean_up(driven.pipeline, ACTOR) == []  # its results are not stored
    assert proxy.count(DELETE_FILE) == 0
    driven.collect(job_id)
    assert len(files_at(driven)) == 2
    assert clean_up(driven.pipeline, ACTOR) == []
    assert files_at(driven) == []
    assert len(driven.publish(job_id).published) == 2
    deleted = proxy.count(DELETE_FILE)
    assert clean_up(driven.pipeline, ACTOR) == []
    assert proxy.count(DELETE_FILE) == deleted == 2
    assert driven.audited()["provider_cleaned"] == 1
    statement = "SELECT details->'calls' FROM extraction.audit_events WHERE event = :event"
    ((calls,),) = driven.rows(statement, event="provider_cleaned")
    assert [call["call"].partition("/files/")[0] for call in calls] == ["DELETE "] * 2
    assert all(call["http_status"] == 200 and call["request_id"] for call in calls)


def test_what_could_not_be_deleted_is_named_and_tried_again(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(1)
    (job_id,) = driven.submitted()
    driven = cleaning(driven, workplace)
    driven.finished(job_id)
    proxy.plan(DELETE_FILE, answer(500))
    (fault,) = clean_up(driven.pipeline, ACTOR)
    assert driven.job(job_id).job_key in fault
    assert clean_up(driven.pipeline, ACTOR) == []
    assert files_at(driven) == []


def test_without_the_setting_everything_stays(driven: Driven, workplace: Workplace) -> None:
    workplace.write(1)
    (job_id,) = driven.submitted()
    driven.finished(job_id)
    assert clean_up(driven.pipeline, ACTOR) == []
    assert len(files_at(driven)) == 2


def test_an_account_that_is_told_to_wait_deletes_nothing_meanwhile(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(3)
    driven = limited(cleaning(driven, workplace), ProviderLimits(1, 1_000_000, None))
    for job_id in driven.submitted(3):
        driven.finished(job_id)
    proxy.plan(DELETE_FILE, answer(429, retry_after="500"))
    assert len(clean_up(driven.pipeline, ACTOR)) == 1
    assert clean_up(driven.pipeline, ACTOR) == []
    assert proxy.count(DELETE_FILE) == 1
    driven.pause_ends()
    assert clean_up(driven.pipeline, ACTOR) == []
    assert files_at(driven) == []


def test_what_a_job_that_was_given_up_may_still_bring_is_not_deleted(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(1)
    (job_id,) = driven.submitted()
    driven = cleaning(driven, workplace)
    driven.execute("UPDATE extraction.batch_jobs SET state = 'held'")
    give_up(driven.pipeline, job_id, ACTOR, "never came")
    assert clean_up(driven.pipeline, ACTOR) == []
    assert proxy.count(DELETE_FILE) == 0
    driven.execute("UPDATE extraction.batch_jobs SET collected_at = now() - interval '46 days'")
    assert clean_up(driven.pipeline, ACTOR) == []
    assert proxy.count(DELETE_FILE) == 1
