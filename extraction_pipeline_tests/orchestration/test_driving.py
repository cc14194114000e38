"""Driving jobs and sensor in one process: progress is told, and no wait is for ever."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from dagster import DagsterRunStatus

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.orchestration.driving import Driver, NothingWorks, Target
from extraction_pipeline.orchestration.jobs import JOB_KEY_TAG
from extraction_pipeline.orchestration.outcomes import RunFailed
from extraction_pipeline.providers.errors import ProviderError
from extraction_pipeline_tests.faults.actions import answer, saying
from extraction_pipeline_tests.faults.proxy import CONTENT, CREATE, POLL, UPLOAD, Proxy, Route
from extraction_pipeline_tests.orchestration.installed import NOTES, Installed, keys


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be sent is tried again at once."""
    monkeypatch.setattr("extraction_pipeline.lifecycle.sending.SUBMIT_RETRY_SECONDS", 0.1)
    monkeypatch.setattr("extraction_pipeline.orchestration.sensors.RUN_AGAIN_SECONDS", 0.02)
    monkeypatch.setenv("EXTRACTION_POLL_MAX_SECONDS", "0.1")


class Told:
    """A driver, and what it told."""

    def __init__(self, installed: Installed, patience: float) -> None:
        self.lines: list[str] = []
        self.driver = Driver(
            installed.instance,
            installed.definitions,
            installed.workplace.open(),
            self.lines.append,
            patience,
        )


@pytest.fixture
def told(installed: Installed, proxy: Proxy) -> Iterator[Told]:
    """An impatient driver over two documents that were scanned, with a proxy before its server."""
    installed.with_documents(2)
    one = Told(installed, patience=1.0)
    yield one
    one.driver.pipeline.engine.dispose()


def test_progress_is_told_in_lines(installed: Installed, told: Told, proxy: Proxy) -> None:
    proxy.plan(POLL, saying(status="in_progress"), times=2)
    told.driver.scan(["notes"])
    told.driver.finish([NOTES])
    assert told.lines[:2] == ["scanning notes", "submitting what notes lacks at v1"]
    assert "open batch jobs: 1 submitted" in told.lines
    assert all("\n" not in line for line in told.lines)
    assert installed.materialized("extractions") == keys(installed.partitions())


def test_with_no_provider_the_wait_ends_and_says_why(installed: Installed, told: Told) -> None:
    before = installed.provider_jobs()
    installed.disconnect()
    started = time.monotonic()
    with pytest.raises(NothingWorks) as ended:
        told.driver.finish([NOTES])
    assert time.monotonic() - started < 15
    assert ended.value.exit_code == 5
    sentence = str(ended.value)
    assert "1 batch jobs are open" in sentence
    assert "no connection could be made" in sentence
    assert "extraction-pipeline dev" in sentence
    assert "\n" not in sentence
    assert any("no connection could be made" in line for line in told.lines)
    installed.reconnect()
    told.driver.finish([NOTES])
    assert installed.materialized("extractions") == keys(installed.partitions())
    assert installed.provider_jobs() - before == 1


def test_an_outage_shorter_than_the_patience_is_waited_out(
    installed: Installed, told: Told, proxy: Proxy
) -> None:
    proxy.plan(UPLOAD, answer(503), times=2)
    proxy.plan(POLL, answer(502), times=3)
    replace(told.driver, patience=30.0).finish([NOTES])
    assert installed.materialized("extractions") == keys(installed.partitions())
    assert proxy.count(CREATE) == 1


def test_a_provider_that_answers_and_is_slow_is_waited_for(
    installed: Installed, told: Told, proxy: Proxy
) -> None:
    """Longer than the patience, with a failed call now and then."""
    assert told.driver.submit(NOTES)
    proxy.plan(POLL, answer(502), times=None, every=2)
    proxy.plan(POLL, saying(status="in_progress"), times=None)
    threading.Timer(4.0, proxy.forget_plans).start()
    told.driver.wait()
    assert any("502" in line for line in told.lines)
    assert installed.materialized("extractions") == keys(installed.partitions())


def test_a_run_in_the_queue_of_a_daemon_that_is_gone_is_not_waited_for(
    installed: Installed, told: Told
) -> None:
    assert told.driver.submit(NOTES)
    installed.ended()
    (key,) = installed.query("SELECT job_key FROM extraction.batch_jobs")
    installed.add_run("collect_batch", DagsterRunStatus.QUEUED, **{JOB_KEY_TAG: key})
    waiting = threading.Thread(target=told.driver.wait, daemon=True)
    waiting.start()
    waiting.join(60)
    assert not waiting.is_alive()
    assert installed.materialized("extractions") == keys(installed.partitions())


def test_what_needs_a_person_is_not_waited_for(installed: Installed, told: Told) -> None:
    with pytest.raises(RunFailed) as failed:
        told.driver.scan(["nowhere"])
    assert "There is no collection nowhere." in str(failed.value)
    assert failed.value.exit_code == ConfigurationError.exit_code
    told.driver.submit(NOTES)
    installed.execute("UPDATE extraction.extraction_versions SET fingerprint = 'another'")
    with pytest.raises(RunFailed) as failed:
        told.driver.finish([NOTES])
    assert "was used before with another recipe" in str(failed.value)
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize("route", [POLL, CONTENT, CREATE], ids=["poll", "results", "create"])
def test_a_refused_key_ends_the_wait_with_the_remedy(
    installed: Installed, told: Told, proxy: Proxy, route: Route
) -> None:
    proxy.plan(route, answer(401), times=None)
    with pytest.raises(ProviderError) as ended:
        replace(told.driver, patience=900.0).finish([NOTES])
    assert "Check the provider's API key." in str(ended.value)
    assert "\n" not in str(ended.value)
    proxy.forget_plans()
    installed.execute("UPDATE extraction.batch_jobs SET due_at = now(), run_requested_at = NULL")
    told.driver.finish([NOTES])
    assert installed.materialized("extractions") == keys(installed.partitions())
    assert proxy.count(CREATE) == (2 if route is CREATE else 1)


@pytest.mark.parametrize("route", [POLL, CONTENT], ids=["batch", "result file"])
def test_what_is_gone_at_the_provider_is_held_and_not_waited_for(
    installed: Installed, told: Told, proxy: Proxy, route: Route
) -> None:
    proxy.plan(route, answer(404), times=None)
    replace(told.driver, patience=900.0).finish([NOTES])
    assert installed.query("SELECT state FROM extraction.batch_jobs") == ["held"]
    assert any("is held: local does not know batch" in line for line in told.lines)
    assert proxy.count(CREATE) == 1


def test_only_what_the_driver_was_started_for_is_waited_for(
    installed: Installed, told: Told, proxy: Proxy
) -> None:
    """Another collection's job is with a provider that never ends it."""
    told.driver.finish([NOTES])
    installed.execute(
        "INSERT INTO extraction.extraction_versions (collection, name, fingerprint, recipe,"
        " schema_version, provider, model) SELECT 'others', name, fingerprint, recipe,"
        " schema_version, provider, model FROM extraction.extraction_versions"
    )
    installed.execute(
        "INSERT INTO extraction.batch_jobs (job_key, version_id, provider, base_url, state,"
        " request_count, job_id, payload_hash) SELECT 'others', max(id), 'local', 'x', 'submitted',"
        " 1, 'batch_of_others', 'x' FROM extraction.extraction_versions"
    )
    polls = proxy.count(POLL)
    installed.workplace.write(1, start=7)
    told.driver.scan(["notes"])
    told.driver.finish([NOTES])
    assert len(installed.materialized("extractions")) == 3
    others = "SELECT poll_count FROM extraction.batch_jobs WHERE job_key = 'others'"
    assert installed.query(others) == [0]
    assert proxy.count(POLL) > polls


def test_a_target_that_cannot_be_submitted_keeps_no_other_from_its_end(
    installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    hashes = installed.with_documents(2)
    more = installed.redeclared("  v2: {provider: openai, model: some-model}\n")
    with pytest.raises(RunFailed, match="needs an API key"):
        more.driver().finish([Target("notes", "v2"), NOTES])
    assert more.materialized("extractions") == keys(hashes)
    assert evaluated(more) == {"succeeded": 6}


def test_the_checks_are_run_at_the_end_and_what_did_not_pass_is_told(
    installed: Installed, told: Told
) -> None:
    installed.with_documents(0, ("empty.txt", b""))
    assert told.driver.submit(NOTES)
    told.driver.wait()
    assert evaluated(installed) == {}  # a sensor's runs leave them to the night
    told.driver.finish([NOTES])
    assert evaluated(installed) == {"succeeded": 5, "failed": 1}
    assert told.lines[-1] == "check all_readable of notes/documents: 1 document unreadable (empty)"
    (run_id,) = installed.query("SELECT DISTINCT run_id FROM public.asset_check_executions")
    assert told.driver.runs[-1] == run_id


def evaluated(installed: Installed) -> dict[str, int]:
    """How many checks of the installation ended how."""
    states = installed.query("SELECT lower(execution_status) FROM public.asset_check_executions")
    return dict(Counter(map(str, states)))
