"""What a person decides, from the launchpad: it is done once, and kept with its reason."""

from dataclasses import replace

import requests
from dagster import AssetKey, ExecuteInProcessResult

from extraction_pipeline.ledger.stages import Stage
from extraction_pipeline.orchestration.comparing import compare
from extraction_pipeline_tests.faults.actions import answer, forward_then_drop, saying
from extraction_pipeline_tests.faults.proxy import CANCEL, CREATE, LIST, POLL, Proxy
from extraction_pipeline_tests.faults.result_rows import said
from extraction_pipeline_tests.orchestration.installed import Installed, keys

REASON = "found by hand"


def cause(result: ExecuteInProcessResult) -> str:
    (failed,) = (event for event in result.all_events if event.is_step_failure)
    said = failed.step_failure_data.user_failure_data
    return str(said.description if said else failed.step_failure_data.error)


def lost(installed: Installed, proxy: Proxy) -> tuple[list[str], str]:
    """Two documents whose job was made, and is not found by a search."""
    hashes = installed.with_documents(2)
    proxy.plan(CREATE, forward_then_drop)
    proxy.plan(LIST, answer(500), times=None)
    installed.submit()
    (key,) = installed.query("SELECT job_key FROM extraction.batch_jobs")
    assert installed.query("SELECT state FROM extraction.batch_jobs") == ["unresolved"]
    return hashes, key


def test_a_batch_that_was_found_by_hand_is_adopted_and_collected(
    installed: Installed, proxy: Proxy
) -> None:
    hashes, key = lost(installed, proxy)
    listed = requests.get(f"{installed.server.base_url}/batches?limit=100", timeout=10).json()
    (batch,) = (one["id"] for one in listed["data"] if one["metadata"]["extraction_job_key"] == key)
    chosen = {"job_key": key, "provider_job_id": batch, "reason": REASON}
    assert installed.run("adopt_batch", "adopt_found_batch", chosen).success
    assert installed.query("SELECT job_id FROM extraction.batch_jobs") == [batch]
    assert len(installed.materialized("batch_submissions")) == 2
    installed.finish()
    assert installed.ledger_keys() == keys(hashes)
    assert proxy.count(CREATE) == 1
    assert installed.query(
        "SELECT details->>'reason' FROM extraction.audit_events WHERE event = 'job_adopted'"
    ) == [REASON]
    again = installed.run("adopt_batch", "adopt_found_batch", chosen)
    assert "Only a job that is held or unresolved" in cause(again)


def test_a_batch_of_another_job_or_of_nobody_is_not_adopted(
    installed: Installed, proxy: Proxy
) -> None:
    _, key = lost(installed, proxy)
    installed.workplace.write(1, start=5)
    installed.driver().scan(["notes"])
    installed.submit()
    (taken,) = installed.query("SELECT job_id FROM extraction.batch_jobs WHERE job_id IS NOT NULL")
    chosen = {"job_key": key, "provider_job_id": taken, "reason": REASON}
    refused = installed.run("adopt_batch", "adopt_found_batch", chosen)
    assert "is that of job" in cause(refused)
    chosen["provider_job_id"] = "batch_none"
    told = cause(installed.run("adopt_batch", "adopt_found_batch", chosen))
    assert "knows no batch of this id (HTTP 404); nothing was changed" in told
    assert "Look up the id in the provider's list" in told
    assert installed.query(f"SELECT state FROM extraction.batch_jobs WHERE job_key = '{key}'") == [
        "unresolved"
    ]


def test_documents_that_failed_for_good_are_asked_about_once_more(
    installed: Installed, proxy: Proxy
) -> None:
    hashes = installed.with_documents(2)
    proxy.plan_results(said(0, "{}", finish="length"), times=1)
    assert installed.submit().success
    installed.finish()
    (published,) = installed.ledger_keys()
    assert installed.submit().success
    assert proxy.count(CREATE) == 1  # a cut answer is not asked for again under the same limit
    chosen = {"collection": "notes", "document_hashes": hashes, "reason": REASON}
    done = installed.run("release_documents", "release_failed_documents", chosen)
    (output,) = [event for event in done.all_events if event.is_successful_output]
    assert output.step_output_data.metadata["note"].value == (
        "Released 1 of 2 documents; not released: 1 with a record."
    )
    for wrong, said_of_it in {
        (): "document_hashes names no document",
        ("f" * 64, hashes[0]): f"1 is not in notes ({'f' * 64}); none was released.",
        ("Mrs Doe.pdf", *hashes): "1 is not in notes; none was released.",
    }.items():
        chosen["document_hashes"] = list(wrong)
        assert said_of_it in cause(
            installed.run("release_documents", "release_failed_documents", chosen)
        )
    assert installed.submit().success
    installed.finish()
    assert proxy.count(CREATE) == 2
    assert installed.ledger_keys() == keys(hashes) > {published}
    (details,) = installed.query(
        "SELECT details FROM extraction.audit_events WHERE event = 'documents_released'"
    )
    assert details["reason"] == REASON
    assert len(details["documents"]) == 1


def test_a_batch_that_is_cancelled_gives_its_documents_back(
    installed: Installed, proxy: Proxy
) -> None:
    hashes = installed.with_documents(2)
    assert installed.submit().success
    (key,) = installed.query("SELECT job_key FROM extraction.batch_jobs")
    chosen = {"job_key": key, "reason": REASON}
    cancelled = saying(status="cancelled", output_file_id=None, request_counts=None)
    proxy.plan(CANCEL, cancelled)
    proxy.plan(POLL, cancelled, times=None)
    assert installed.run("cancel_batch", "cancel_submitted_batch", chosen).success
    assert proxy.count(CANCEL) == 1
    behind = replace(installed, pipeline=installed.workplace.open())
    behind.driver().wait()
    assert (
        installed.query("SELECT state || failure_reason FROM extraction.batch_items")
        == ["releasedcancelled"] * 2
    )
    again = installed.run("cancel_batch", "cancel_submitted_batch", chosen)
    assert "Only a job that the provider works on" in cause(again)
    proxy.forget_plans()
    installed.finish()
    assert installed.ledger_keys() == keys(hashes)
    assert installed.query("SELECT max(attempt) FROM extraction.batch_items") == [2]


def test_a_job_that_was_given_up_says_so_in_the_ui_and_its_late_results_are_recorded_once(
    installed: Installed, proxy: Proxy
) -> None:
    hashes = installed.with_documents(2)
    assert installed.submit().success
    (key,) = installed.query("SELECT job_key FROM extraction.batch_jobs")
    installed.execute("UPDATE extraction.batch_jobs SET state = 'held'")
    chosen = {"job_key": key, "reason": REASON}
    assert installed.run("give_up_batch", "give_up_held_batch", chosen).success
    assert "Only a job can be given up that is held" in cause(
        installed.run("give_up_batch", "give_up_held_batch", chosen)
    )
    seen = installed.instance.fetch_observations(AssetKey(["notes", "extractions"]), limit=9)
    observed = {
        str(record.asset_observation.partition): record.asset_observation.metadata["reason"].value
        for record in seen.records
        if record.asset_observation is not None
    }
    assert observed == dict.fromkeys(keys(hashes), "given_up")
    installed.finish()  # by a second job
    installed.execute(f"UPDATE extraction.batch_jobs SET due_at = now() WHERE job_key = '{key}'")
    installed.driver().wait()
    assert installed.query(f"SELECT state FROM extraction.batch_jobs WHERE job_key = '{key}'") == [
        "published"
    ]
    assert installed.query("SELECT count(*) FROM extraction.raw_responses") == [4]
    assert installed.query("SELECT count(*) FROM extraction.extractions") == [2]
    for stage in Stage:
        assert compare(installed.pipeline.engine, installed.instance, "notes", stage).agrees, stage


def test_who_resolves_what_is_resolved_already_is_told_in_one_line(
    installed: Installed, proxy: Proxy
) -> None:
    installed.with_documents(1)
    assert installed.submit().success
    (key,) = installed.query("SELECT job_key FROM extraction.batch_jobs")
    again = installed.run("resolve_submission", "resolve_batch_job", {"job_key": key})
    assert again.success
    (output,) = [event for event in again.all_events if event.is_successful_output]
    assert output.step_output_data.metadata["note"].value == (
        f"Job {key} is submitted: there was nothing to do."
    )
    assert proxy.count(CREATE) == 1
