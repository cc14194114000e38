"""Claiming: who asks first gets a document, and how often anybody asks makes no difference."""

import threading
from collections import Counter

import pytest

from extraction_pipeline.errors import ConfigurationError, StoreError
from extraction_pipeline.ledger import claims
from extraction_pipeline.ledger.states import DocumentStatus, JobState
from extraction_pipeline.lifecycle.submission import SubmissionReport
from extraction_pipeline.prices.estimate import estimate
from extraction_pipeline.providers.base import ProviderLimits
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import Hold
from extraction_pipeline_tests.faults.proxy import CREATE, UPLOAD, Proxy
from extraction_pipeline_tests.faults.worker import working
from extraction_pipeline_tests.lifecycle.driving import Driven
from extraction_pipeline_tests.lifecycle.limits import limited
from extraction_pipeline_tests.lifecycle.test_publishing import status


def test_runs_at_once_make_the_jobs_of_one(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Field reports 60, 61: two runs were started for one key."""
    workplace.write(10)
    driven = limited(driven, ProviderLimits(4, 1_000_000, None))
    driven.scan()
    start = threading.Barrier(4)
    reports: list[SubmissionReport] = []

    def run() -> None:
        start.wait(20)
        reports.append(driven.submit())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(report.documents for report in reports) == [0, 0, 0, 10]
    assert Counter(len(report.jobs) for report in reports) == {3: 1, 0: 3}
    assert proxy.count(CREATE) == 3
    assert driven.items() == {("claimed", None, None): 10}


def test_processes_at_once_make_the_jobs_of_one(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(6)
    driven.scan()
    with working("submit", "notes") as first, working("submit", "notes") as second:
        said = sorted([first.output().strip(), second.output().strip()])
    assert said == ["0 0", "1 6"]
    assert proxy.count(CREATE) == 1


def test_a_run_that_comes_while_another_claims_waits_and_sees_what_it_left(
    driven: Driven, workplace: Workplace
) -> None:
    workplace.write(3)
    (job_id,) = driven.submitted()
    workplace.write(2, start=3)
    driven.scan()
    version = driven.job(job_id).version_id
    found: list[list[claims.Claimable]] = []

    def ask() -> None:
        with driven.pipeline.engine.begin() as connection:
            found.append(
                claims.claimable_documents(
                    connection, "notes", version, max_attempts=2, hashes=None
                )
            )

    second = threading.Thread(target=ask)
    with driven.pipeline.engine.begin() as connection:
        first = claims.claimable_documents(
            connection, "notes", version, max_attempts=2, hashes=None
        )
        second.start()
        second.join(0.2)
        assert found == []
        claims.refuse_documents(
            connection, version, [document.document_id for document in first], "rejected", "why"
        )
    second.join(20)
    assert (len(first), found) == (2, [[]])


def test_only_what_is_asked_for_and_needs_a_request_is_claimed(
    driven: Driven, workplace: Workplace
) -> None:
    workplace.write(3)
    hashes = driven.scan().new
    first, rest = hashes[:1], hashes
    assert driven.submit(first).documents == 1
    assert driven.submit(rest).documents == 2
    assert driven.submit(rest).documents == 0
    assert driven.submit([]).documents == 0
    assert driven.submit(["0" * 64]).documents == 0


def test_a_backfill_in_many_runs_makes_the_jobs_of_one(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """The first run asks for the whole target; however many follow, none makes a job."""
    workplace.write(9)
    hashes = driven.scan().new
    reports = [driven.submit(hashes) for _ in hashes]
    assert [len(report.jobs) for report in reports] == [1] + [0] * 8
    assert proxy.count(CREATE) == 1


def test_the_index_decides_where_the_lock_did_not(driven: Driven, workplace: Workplace) -> None:
    """Somebody claims past the lock: a member that is taken is left out, and no job is empty."""
    workplace.write(3)
    driven.submitted()
    documents = tuple(row[0] for row in driven.rows("SELECT id FROM extraction.documents"))
    ((version,),) = driven.rows("SELECT id FROM extraction.extraction_versions")
    with driven.pipeline.engine.begin() as connection:
        made = claims.create_jobs(
            connection,
            version,
            provider="local",
            base_url="http://127.0.0.1/v1",
            jobs=[claims.NewJob("late", documents, estimate(1, 1, 1, None))],
        )
    assert made == []
    assert len(driven.rows("SELECT FROM extraction.batch_jobs")) == 1
    assert driven.items() == {("claimed", None, None): 3}


def test_a_document_that_no_job_can_hold_is_refused_by_name(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Field reports 33, 43, 44: not dropped, and not the end of the others."""
    workplace.write(2)
    (workplace.documents / "notes" / "long.txt").write_text("A fictional word. " * 3000)
    driven = limited(driven, ProviderLimits(100, 40_000, None))
    driven.scan()
    report = driven.submit()
    assert (report.documents, report.too_large) == (2, 1)
    ((refused, reason, _),) = status(driven, DocumentStatus.FAILED)
    assert reason == "too_large_for_provider"
    ((path,),) = driven.rows(
        "SELECT s.path FROM extraction.document_sources s JOIN extraction.documents d"
        " ON d.id = s.document_id WHERE d.document_hash = :hash",
        hash=refused,
    )
    assert path == "long.txt"
    again = driven.submit()
    assert (again.jobs, again.too_large) == ([], 0)  # said once, and not asked again
    driven.finished(report.submitted[0])
    assert (driven.summary().published, driven.summary().failed) == (2, 1)


def test_what_is_uploaded_is_within_the_limits(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(12)
    limits = ProviderLimits(5, 30_000, None)
    driven = limited(driven, limits)
    driven.scan()
    report = driven.submit()
    sizes = []
    for job_id in report.jobs:
        job = driven.job(job_id)
        payload = driven.pipeline.store.get(job.payload_hash or "")
        assert len(payload) == job.payload_bytes
        assert payload.count(b"\n") == job.request_count
        sizes.append((len(payload), job.request_count))
    assert all(size <= 30_000 and requests <= 5 for size, requests in sizes)
    assert sum(requests for _, requests in sizes) == 12
    assert any(size > 20_000 or requests == 5 for size, requests in sizes)


def test_a_parameter_that_the_provider_sets_itself_is_refused_before_anything_is_claimed(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.declare("notes", "", parameters="{stream: true}")
    driven = Driven(workplace.open(), driven.server)
    workplace.write(1)
    driven.scan()
    with pytest.raises(ConfigurationError, match="stream"):
        driven.submit()
    assert driven.items() == {}
    assert proxy.count(UPLOAD) == 0
    driven.pipeline.engine.dispose()


def test_a_text_that_the_store_lost_costs_its_own_document_and_no_attempt(
    driven: Driven, workplace: Workplace
) -> None:
    workplace.write(3)
    driven.scan()
    ((text_hash,),) = driven.rows("SELECT text_hash FROM extraction.documents ORDER BY id LIMIT 1")
    (place,) = (workplace.root / "home" / "store").rglob(text_hash)
    content = place.read_bytes()
    place.unlink()
    (job_id,) = driven.submit().submitted
    assert driven.job(job_id).request_count == 2
    assert driven.items() == {
        ("claimed", None, None): 2,
        ("failed", "database", "text_not_stored"): 1,
    }
    driven.finished(job_id)
    place.write_bytes(content)
    (second,) = driven.submit().submitted
    driven.finished(second)
    assert driven.summary().published == 3


def test_a_job_whose_texts_are_all_lost_is_given_up_and_sent_when_they_are_back(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(1)
    driven.scan()
    ((text_hash,),) = driven.rows("SELECT text_hash FROM extraction.documents")
    (place,) = (workplace.root / "home" / "store").rglob(text_hash)
    content = place.read_bytes()
    place.unlink()
    (job_id,) = driven.submit().waiting
    job = driven.job(job_id)
    assert (job.state, job.failure_code) == (JobState.REJECTED, "text_not_stored")
    place.write_bytes(content)
    assert len(driven.submit().submitted) == 1
    assert proxy.count(CREATE) == 1


def test_a_payload_that_changed_since_it_was_built_is_not_sent(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Promise 2, field report 6: the same key and another body is refused, not merged."""
    workplace.write(2)
    driven.scan()
    hold = Hold(forward=False)
    proxy.plan(UPLOAD, hold)
    (job_id,) = driven.submit().waiting  # the upload timed out
    payload_hash = driven.job(job_id).payload_hash
    (place,) = (workplace.root / "home" / "store").rglob(str(payload_hash))
    content = place.read_bytes()
    place.write_bytes(content.replace(b"Examplol", b"Otherdol", 1))
    with pytest.raises(StoreError, match="damaged"):
        driven.resolve(job_id)
    assert (driven.job(job_id).state, proxy.count(CREATE)) == (JobState.PREPARED, 0)
    workplace.write(1, start=2)
    driven.scan()
    driven.execute("UPDATE extraction.batch_jobs SET due_at = now()")
    report = driven.submit()  # it is nobody else's trouble
    assert (len(report.submitted), report.waiting) == (1, [job_id])
    assert "damaged" in report.causes[0]
    place.unlink()
    place.symlink_to("/proc/self/mem")  # as a file that a damaged disk does not give out
    with pytest.raises(StoreError, match="Input/output error"):
        driven.resolve(job_id)
    place.unlink()
    place.write_bytes(content)
    assert driven.resolve(job_id).state is JobState.SUBMITTED


def test_names_that_travel_hold_no_word_of_a_document(driven: Driven, workplace: Workplace) -> None:
    """Promise 8."""
    workplace.write(2)
    (job_id,) = driven.submitted()
    for (custom_id,) in driven.rows("SELECT custom_id FROM extraction.batch_items"):
        assert len(custom_id) <= 64
        assert set(custom_id) <= set("0123456789abcdef-")
    key = driven.job(job_id).job_key
    assert key.startswith("notes.v1.")
    assert len(key) <= 117
