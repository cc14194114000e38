"""A service without an API: what it sends back in a file takes the way of every other answer."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.polling import poll
from extraction_pipeline.lifecycle.publishing import replay
from extraction_pipeline.lifecycle.releasing import release
from extraction_pipeline.providers.errors import CallFailed
from extraction_pipeline_tests.batch_server.process import ServerProcess, wait_until
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.worker import working
from extraction_pipeline_tests.lifecycle.driving import ACTOR, Driven
from extraction_pipeline_tests.providers.outside_service import Line, OutsideService, delivery

HOLD = 4711


@pytest.fixture
def service(workplace: Workplace) -> OutsideService:
    folder = workplace.root / "shared"
    folder.mkdir()
    workplace.environment.setenv("EXTRACTION_OUTSIDE_FOLDER", str(folder))
    return OutsideService(folder)


@pytest.fixture
def driven(
    workplace: Workplace, service: OutsideService, shared_server: ServerProcess
) -> Iterator[Driven]:
    """The collection `notes`, extracted by that service; the batch server gets nothing to do."""
    workplace.declare(provider="outside", model="ward-bureau")
    pipeline = workplace.open(POLL_MAX_SECONDS="0.05")
    yield Driven(pipeline, shared_server)
    pipeline.engine.dispose()


def sent(driven: Driven, workplace: Workplace, count: int, start: int = 0) -> tuple[int, str]:
    """A job about so many new notes: its id and its key."""
    workplace.write(count, start=start)
    (job_id,) = driven.submitted()
    return job_id, driven.job(job_id).job_key


def records(driven: Driven) -> dict[str, object]:
    """What is published, by document hash."""
    return {
        row[0]: row[1]
        for row in driven.rows(
            "SELECT d.document_hash, e.body FROM extraction.extractions e"
            " JOIN extraction.documents d ON d.id = e.document_id"
        )
    }


def as_sent(lines: list[Line]) -> dict[str, object]:
    return {line["document_hash"]: line["record"] for line in lines}


def test_results_in_any_order_reach_their_own_documents_and_nothing_is_asked_twice(
    driven: Driven, workplace: Workplace, service: OutsideService
) -> None:
    job_id, job_key = sent(driven, workplace, 12)
    requests = service.requests(job_key)
    assert {one["model"] for one in requests} == {"ward-bureau"}
    assert len({one["document_hash"] for one in requests}) == 12
    answers = service.answers(job_key)
    service.deliver(job_key, answers)
    assert len(driven.finished(job_id).published) == 12
    assert records(driven) == as_sent(answers)
    assert driven.submit().jobs == []
    assert (service.jobs(), driven.job(job_id).state) == ([job_key], JobState.PUBLISHED)
    raw = driven.rows(
        "SELECT DISTINCT http_status, request_id, input_tokens, output_tokens"
        " FROM extraction.raw_responses"
    )
    assert [tuple(row) for row in raw] == [(None, None, None, None)]


def test_a_file_lies_there_cut_and_is_taken_once_it_is_whole(
    driven: Driven, workplace: Workplace, service: OutsideService
) -> None:
    job_id, job_key = sent(driven, workplace, 3)
    content = delivery(service.answers(job_key))
    for length in (1, len(content) // 2, len(content) - 3):
        service.place(job_key, content[:length])
        assert not poll(driven.pipeline, driven.job(job_id), ACTOR).ended
        assert driven.job(job_id).provider_state == "results_not_whole"
    path = service.place(job_key, content)
    driven.ended(job_id)
    path.write_bytes(content[:-3])  # it is replaced between the reading and the fetch
    with pytest.raises(CallFailed):
        driven.collect(job_id)
    assert driven.items() == {("claimed", None, None): 3}
    path.write_bytes(content)
    assert driven.collect(job_id)[1].landed == 3


def test_rows_that_are_missing_foreign_repeated_or_unreadable_have_the_ends_of_all_others(
    driven: Driven, workplace: Workplace, service: OutsideService
) -> None:
    earlier, earlier_key = sent(driven, workplace, 1, start=50)
    theirs = service.answers(earlier_key)
    service.deliver(earlier_key, theirs)
    driven.finished(earlier)
    job_id, job_key = sent(driven, workplace, 6)
    asked = {one["document_hash"]: one["custom_id"] for one in service.requests(job_key)}
    answers = service.answers(job_key)
    lines = [
        {**answers[0], "custom_id": asked[answers[0]["document_hash"]]},  # both names
        {**answers[1], "document_hash": None, "custom_id": asked[answers[1]["document_hash"]]},
        {**answers[2], "custom_id": asked[answers[3]["document_hash"]]},  # two that contradict
        answers[3],
        {**answers[0], "record": answers[3]["record"]},  # repeated
        theirs[0],  # of another job of ours
        {**answers[0], "document_hash": "ab" * 32},  # of nobody
        {**answers[4], "document_hash": "no hash"},
        answers[5],
        {**answers[5], "custom_id": "nul\0"},
    ]
    service.deliver(job_key, lines)
    driven.ended(job_id)
    _, landing = driven.collect(job_id)
    assert (landing.landed, landing.missing) == (4, 2)
    assert (landing.foreign, landing.repeated, landing.undecodable) == (4, 1, 1)
    driven.publish(job_id)
    landed = [*theirs, *(answers[place] for place in (0, 1, 3, 5))]
    assert records(driven) == as_sent(landed)
    # There are more lines than landed, so what the service made may be among them.
    assert driven.items()[("failed", "rejected", "results_lost")] == 2
    assert driven.submit().jobs == []
    released = release(driven.pipeline, "notes", "v1", list(asked), ACTOR, "asked the bureau")
    assert released.count == 2
    report = driven.submit()
    assert report.documents == 2
    again = driven.job(report.submitted[0]).job_key
    assert {one["document_hash"] for one in service.requests(again)} == {
        answers[2]["document_hash"],
        answers[4]["document_hash"],
    }


def test_the_results_of_another_job_under_this_ones_name_are_not_taken(
    driven: Driven, workplace: Workplace, service: OutsideService
) -> None:
    one, one_key = sent(driven, workplace, 2)
    other, other_key = sent(driven, workplace, 2, start=2)
    service.deliver(one_key, service.answers(other_key))
    driven.ended(one)
    with pytest.raises(CallFailed, match="of another job, or none"):
        driven.collect(one)
    assert driven.items() == {("claimed", None, None): 4}
    for job_id, job_key in ((one, one_key), (other, other_key)):
        service.deliver(job_key, service.answers(job_key))
        driven.ended(job_id)
        assert driven.collect(job_id)[1].landed == 2


def test_errors_are_counted_attempts_and_what_is_rejected_is_not_asked_again(
    driven: Driven, workplace: Workplace, service: OutsideService, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    job_id, job_key = sent(driven, workplace, 3)
    errors = ["illegible", "rejected", "page 2 of Jane Doe is torn"]
    hashes = sorted(one["document_hash"] for one in service.requests(job_key))
    service.deliver(
        job_key,
        [{"document_hash": one, "error": error} for one, error in zip(hashes, errors, strict=True)],
    )
    assert driven.finished(job_id).failed == 3
    assert driven.items() == {
        ("failed", "model", "errored:illegible"): 1,
        ("failed", "model", "errored"): 1,
        ("failed", "rejected", "rejected"): 1,
    }
    report = driven.submit()
    (again,) = report.submitted
    key = driven.job(again).job_key
    assert {one["document_hash"] for one in service.requests(key)} == {hashes[0], hashes[2]}
    service.deliver(key, [{"document_hash": hashes[0], "error": "illegible"}])
    driven.finished(again)
    assert driven.submit().jobs == [], "two attempts were all"
    kept = [
        str(row[0])
        for table in ("batch_jobs", "batch_items", "raw_responses", "audit_events")
        for row in driven.rows(f"SELECT to_jsonb(t) FROM extraction.{table} t")
    ]
    assert "Jane" not in "".join(kept) + caplog.text


def test_a_record_that_is_not_valid_is_a_failure_of_the_service(
    driven: Driven, workplace: Workplace, service: OutsideService
) -> None:
    job_id, job_key = sent(driven, workplace, 2)
    first, second = service.answers(job_key)
    twice = json.dumps(second["record"])[:-1] + ', "diagnoses": null}'
    path = service.deliver(job_key, [{**first, "record": {"title": "x"}}, {**second, "record": 0}])
    path.write_bytes(path.read_bytes().replace(b'"record": 0', f'"record": {twice}'.encode()))
    assert driven.finished(job_id).failed == 2
    assert driven.items() == {
        ("failed", "model", "invalid_schema"): 1,
        ("failed", "model", "invalid_not_json"): 1,
    }


def test_records_are_published_again_from_what_was_stored(
    driven: Driven, workplace: Workplace, service: OutsideService
) -> None:
    job_id, job_key = sent(driven, workplace, 2)
    answers = service.answers(job_key)
    service.deliver(job_key, answers)
    driven.finished(job_id)
    for path in (*service.inbox.iterdir(), *service.outbox.iterdir()):
        path.unlink()
    driven.execute("UPDATE extraction.extractions SET body = '{}', body_hash = ''")
    hashes = [one["document_hash"] for one in answers]
    again = replay(driven.pipeline, driven.collection, "v1", hashes, None)
    assert (sorted(again.published), again.changed) == (sorted(hashes), 2)
    assert records(driven) == as_sent(answers)


@contextmanager
def commits_of_submissions_held(driven: Driven) -> Iterator[None]:
    """No job becomes `submitted` until the block ends."""
    driven.execute(
        "CREATE FUNCTION extraction.hold() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN PERFORM pg_advisory_xact_lock({HOLD}); RETURN NEW; END $$"
    )
    driven.execute(
        "CREATE TRIGGER hold BEFORE UPDATE ON extraction.batch_jobs FOR EACH ROW"
        " WHEN (NEW.state = 'submitted') EXECUTE FUNCTION extraction.hold()"
    )
    with driven.pipeline.engine.connect() as connection:
        connection.execute(text(f"SELECT pg_advisory_lock({HOLD})"))
        try:
            yield
        finally:
            connection.execute(text(f"SELECT pg_advisory_unlock({HOLD})"))
    driven.execute("DROP FUNCTION extraction.hold CASCADE")


def killed_between_file_and_commit(driven: Driven, workplace: Workplace) -> int:
    """The id of a job about three notes whose requests are out and whose ledger says nothing."""
    workplace.write(3)
    driven.scan()
    with commits_of_submissions_held(driven), working("submit", "notes") as worker:
        wait_until(lambda: driven.rows(f"SELECT FROM pg_locks WHERE NOT granted AND objid={HOLD}"))
        worker.kill()
    ((job_id,),) = driven.rows("SELECT id FROM extraction.batch_jobs")
    return int(job_id)


def test_killed_between_the_file_and_the_commit_the_job_is_adopted(
    driven: Driven, workplace: Workplace, service: OutsideService
) -> None:
    job_id = killed_between_file_and_commit(driven, workplace)
    (job_key,) = service.jobs()
    before = (service.outbox / f"{job_key}.jsonl").stat()
    assert driven.submit().jobs == []
    driven.resolved(job_id)
    after = (service.outbox / f"{job_key}.jsonl").stat()
    assert (before.st_ino, before.st_ctime_ns) == (after.st_ino, after.st_ctime_ns)
    assert driven.audited()["job_adopted"] == 1
    service.deliver(job_key, service.answers(job_key))
    assert len(driven.finished(job_id).published) == 3
    assert service.jobs() == [job_key]


def test_killed_so_and_the_service_was_quick_the_job_waits_and_is_not_sent_again(
    driven: Driven, workplace: Workplace, service: OutsideService
) -> None:
    job_id = killed_between_file_and_commit(driven, workplace)
    (job_key,) = service.jobs()
    answers = service.answers(job_key)
    (service.outbox / f"{job_key}.jsonl").unlink()
    wait_until(lambda: "cannot be told yet" in (driven.resolve(job_id).cause or ""))
    assert (service.jobs(), driven.job(job_id).state) == ([], JobState.UNRESOLVED)
    service.deliver(job_key, answers)
    driven.resolved(job_id)
    assert len(driven.finished(job_id).published) == 3
    assert (service.jobs(), driven.job(job_id).submit_attempt) == ([], 1)


def test_a_share_that_is_away_is_one_line_and_the_job_goes_out_when_it_is_back(
    driven: Driven, workplace: Workplace, service: OutsideService
) -> None:
    away = service.folder.with_name("away")
    service.folder.rename(away)
    workplace.write(2)
    driven.scan()
    report = driven.submit()
    (job_id,) = report.waiting
    (cause,) = report.causes
    assert "the shared folder is not there. Mount it" in cause and "\n" not in cause
    assert driven.job(job_id).state is JobState.PREPARED
    away.rename(service.folder)
    driven.resolved(job_id)
    (job_key,) = service.jobs()
    service.folder.rename(away)
    assert "is not there" in str(poll(driven.pipeline, driven.job(job_id), ACTOR).cause)
    assert driven.job(job_id).state is JobState.SUBMITTED
    assert not Path(service.folder).exists()
    away.rename(service.folder)
    service.deliver(job_key, service.answers(job_key))
    assert len(driven.finished(job_id).published) == 2
