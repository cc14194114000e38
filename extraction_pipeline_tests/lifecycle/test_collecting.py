"""Collecting: whatever a result file looks like, an answer lands once, with its own document."""

import threading

import orjson
import pytest

from extraction_pipeline.ledger import items
from extraction_pipeline.ledger.jobs import StateMoved
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.fetching import FOREIGN_PATIENCE, LAST_LINE_PATIENCE
from extraction_pipeline.providers.errors import CallFailed
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import Hold, answer, drop_before, saying
from extraction_pipeline_tests.faults.proxy import CONTENT, FILE, POLL, Fault, Proxy, rewritten
from extraction_pipeline_tests.faults.result_rows import (
    both,
    cut,
    envelope,
    failed_first,
    foreign,
    repeated,
    reversed_rows,
    said,
    without,
)
from extraction_pipeline_tests.lifecycle.driving import Driven

MISSING = ("failed", "model", "missing_from_results")


def numbers(driven: Driven) -> set[tuple[str, str]]:
    """For each extraction, the number that its document and its diagnosis carry."""
    found = set()
    for text_hash, body in driven.rows("SELECT text_hash, body FROM extraction.extractions"):
        document = driven.pipeline.store.get(text_hash).decode()
        asked = document.partition("Record ")[2].split()[0]
        said = body["diagnoses"][0]["name"].removesuffix(".").rsplit(" ")[-1]
        found.add((asked, said))
    return found


def counting(completed: int) -> Fault:
    """Readings of a job that count so many completed requests."""
    return saying(request_counts={"total": completed, "completed": completed, "failed": 0})


def ended(driven: Driven, workplace: Workplace, count: int) -> int:
    workplace.write(count)
    (job_id,) = driven.submitted()
    driven.ended(job_id)
    return job_id


def test_shuffled_rows_reach_their_own_documents(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Field report 25: 17,148 pages got another page's text, joined by position."""
    proxy.plan_results(reversed_rows)
    job_id = ended(driven, workplace, 12)
    assert driven.collect(job_id)[1].landed == 12
    driven.publish(job_id)
    assert numbers(driven) == {(str(number), str(number)) for number in range(12)}


def test_a_missing_row_that_nobody_counts_is_asked_for_again_and_only_that(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Field report 19, 33: no document vanishes because its row did."""
    proxy.plan_results(without(1, 3), times=1)
    proxy.plan(POLL, counting(3), times=None)
    job_id = ended(driven, workplace, 5)
    _, landing = driven.collect(job_id)
    assert (landing.landed, landing.missing) == (3, 2)
    assert driven.items() == {("answered", None, None): 3, MISSING: 2}
    driven.publish(job_id)
    proxy.forget_plans()
    report = driven.submit()
    assert report.documents == 2
    driven.finished(report.submitted[0])
    assert driven.summary().published == 5


def test_a_row_that_is_not_ours_lands_nowhere_and_is_audited(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(2)
    (other,) = driven.submitted()
    ((theirs,),) = driven.rows("SELECT min(custom_id) FROM extraction.batch_items")
    driven.finished(other)
    workplace.write(2, start=2)
    proxy.plan_results(both(foreign(0), both(foreign(1, theirs), foreign(0, "nul\0"))))
    (job_id,) = driven.submitted()
    driven.ended(job_id)
    _, landing = driven.collect(job_id)
    assert (landing.landed, landing.foreign, landing.missing) == (2, 3, 0)
    ((details,),) = driven.rows(
        "SELECT details FROM extraction.audit_events WHERE event = 'foreign_result'"
    )
    assert details == {"rows": 3}
    driven.publish(job_id)
    assert numbers(driven) == {(str(number), str(number)) for number in range(4)}


def test_of_a_repeated_row_the_first_stands(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Field reports 28, 29: a repeated custom id in the output publishes nothing twice."""
    proxy.plan_results(both(repeated(0), said(3, "something else")))
    job_id = ended(driven, workplace, 3)
    _, landing = driven.collect(job_id)
    assert (landing.landed, landing.repeated, landing.missing) == (3, 1, 0)
    assert len(driven.publish(job_id).published) == 3
    assert driven.audited()["repeated_result"] == 1


@pytest.mark.parametrize("rows_at_once", [1, 1000])
def test_an_answer_counts_before_rows_that_say_that_there_is_none(
    driven: Driven, workplace: Workplace, proxy: Proxy, monkeypatch, rows_at_once: int
) -> None:
    monkeypatch.setattr(items, "CHUNK", rows_at_once)
    proxy.plan_results(failed_first)
    job_id = ended(driven, workplace, 3)
    _, landing = driven.collect(job_id)
    assert (landing.landed, landing.unasked, landing.repeated) == (3, 0, 3)
    assert len(driven.publish(job_id).published) == 3
    assert driven.submit().jobs == []


@pytest.mark.parametrize(
    "content", [b"<html>Sign in</html>\n", b"", b'{"custom_id": "x", "response": {}}\n']
)
def test_results_without_a_row_of_ours_are_fetched_again_and_buy_nothing(
    driven: Driven, workplace: Workplace, proxy: Proxy, content: bytes
) -> None:
    job_id = ended(driven, workplace, 2)
    proxy.plan_results(lambda _: content, times=2)
    for _ in range(2):
        with pytest.raises(CallFailed, match="of another job, or none"):
            driven.collect(job_id)
    assert driven.items() == {("claimed", None, None): 2}
    assert driven.collect(job_id)[1].landed == 2


def test_results_that_stay_another_jobs_end_for_a_person_and_are_not_bought_again(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id = ended(driven, workplace, 2)
    proxy.plan_results(lambda _: b"<html>Sign in</html>\n")
    for _ in range(FOREIGN_PATIENCE):
        with pytest.raises(CallFailed):
            driven.collect(job_id)
    driven.collect(job_id)
    assert driven.items() == {("failed", "rejected", "results_lost"): 2}
    assert driven.submit().jobs == []


@pytest.mark.parametrize("known_size", [True, False], ids=["its size is known", "it is not"])
def test_a_body_that_was_cut_is_fetched_again_and_never_half_landed(
    driven: Driven, workplace: Workplace, proxy: Proxy, known_size: bool
) -> None:
    job_id = ended(driven, workplace, 6)
    if known_size:
        proxy.plan(CONTENT, rewritten(cut))
    else:
        proxy.plan_results(cut, times=1)
    with pytest.raises(CallFailed):
        driven.collect(job_id)
    assert driven.job(job_id).state is JobState.ENDED
    assert driven.items() == {("claimed", None, None): 6}
    assert driven.collect(job_id)[1].landed == 6


def test_a_last_line_that_stays_cut_does_not_keep_the_others_for_ever(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """What was paid for is taken before the provider deletes it."""
    proxy.plan_results(cut)
    job_id = ended(driven, workplace, 6)
    for _ in range(LAST_LINE_PATIENCE):
        with pytest.raises(CallFailed):
            driven.collect(job_id)
    _, landing = driven.collect(job_id)
    assert (landing.landed, landing.undecodable, landing.missing) == (5, 1, 1)


@pytest.mark.parametrize(
    "fault",
    [answer(404), answer(429), answer(500), drop_before],
    ids=["404", "429", "500", "dropped"],
)
def test_results_that_cannot_be_fetched_are_fetched_later(
    driven: Driven, workplace: Workplace, proxy: Proxy, fault: Fault
) -> None:
    job_id = ended(driven, workplace, 2)
    for route in (FILE, CONTENT):
        proxy.plan(route, fault)
        with pytest.raises(Exception, match="local: GET /files/"):
            driven.collect(job_id)
        assert driven.job(job_id).state is JobState.ENDED
        driven.pause_ends()
    assert driven.collect(job_id)[1].landed == 2


def test_results_are_fetched_once(driven: Driven, workplace: Workplace, proxy: Proxy) -> None:
    """Promise 3: a job's results are fetched once, and the job is marked."""
    job_id = ended(driven, workplace, 3)
    driven.collect(job_id)
    assert driven.collect(job_id)[1].landed == 0
    driven.publish(job_id)
    driven.publish(job_id)
    assert proxy.count(CONTENT) == 1
    stored = driven.rows("SELECT kind, byte_size FROM extraction.result_files")
    assert [row[0] for row in stored] == ["output"]


def test_two_runs_at_once_land_everything_once(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    job_id = ended(driven, workplace, 4)
    hold = Hold(forward=True)
    proxy.plan(CONTENT, hold)
    first = threading.Thread(target=driven.collect, args=(job_id,))
    first.start()
    assert hold.reached.wait(20)
    with pytest.raises(StateMoved, match="by another run"):
        driven.collect(job_id)
    hold.release.set()
    first.join(20)
    assert driven.job(job_id).state is JobState.COLLECTED
    assert (driven.items(), proxy.count(CONTENT)) == ({("answered", None, None): 4}, 1)


def test_what_landed_before_a_crash_is_counted_as_landed_and_not_fetched_again(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Field report 23: counts come from stored rows."""
    job_id = ended(driven, workplace, 4)
    driven.execute(
        "CREATE FUNCTION extraction.stop() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'stop'; END $$"
    )
    driven.execute(
        "CREATE TRIGGER stop BEFORE UPDATE OF state ON extraction.batch_jobs"
        " FOR EACH ROW EXECUTE FUNCTION extraction.stop()"
    )
    with pytest.raises(Exception, match="refused a statement"):
        driven.collect(job_id)
    driven.execute("DROP TRIGGER stop ON extraction.batch_jobs")
    assert driven.items() == {("answered", None, None): 4}
    _, landing = driven.collect(job_id)
    assert (landing.landed, landing.repeated, landing.missing) == (4, 0, 0)
    assert proxy.count(CONTENT) == 1
    ((details,),) = driven.rows(
        "SELECT details FROM extraction.audit_events WHERE event = 'job_collected'"
    )
    assert (details["landed"], details["repeated"]) == (4, 0)
    assert driven.audited()["repeated_result"] == 0


def test_a_line_separator_inside_an_answer_ends_no_line(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Field report 47: U+2028 is legal in JSON and ends a line for some readers."""

    def with_separators(content: bytes) -> bytes:
        lines = [orjson.loads(line) for line in content.splitlines()]
        for line in lines:
            line["response"]["body"]["model"] = "fictional\u2028model\u0085\u2029"
        return b"".join(orjson.dumps(line) + b"\n" for line in lines)

    proxy.plan_results(with_separators)
    job_id = ended(driven, workplace, 3)
    assert driven.collect(job_id)[1].landed == 3
    assert len(driven.publish(job_id).published) == 3


def test_odd_envelopes_cost_no_answer(driven: Driven, workplace: Workplace, proxy: Proxy) -> None:
    """What the database cannot hold (NUL, half a character, a number too large) is left out."""
    proxy.plan_results(
        both(envelope(0, request_id="a\0b"), envelope(1, request_id="\ud800", status_code=10**12))
    )
    job_id = ended(driven, workplace, 3)
    assert driven.collect(job_id)[1].landed == 3
    assert driven.items()[("answered", None, None)] == 3


def test_bytes_are_stored_as_they_came(driven: Driven, workplace: Workplace, proxy: Proxy) -> None:
    """Promise 3: raw before published, verbatim, with its hash and the schema asked for."""
    seen: list[bytes] = []

    def note(content: bytes) -> bytes:
        seen.append(content)
        return content

    proxy.plan(CONTENT, rewritten(note))
    job_id = ended(driven, workplace, 2)
    driven.collect(job_id)
    ((content_hash, size),) = driven.rows(
        "SELECT content_hash, byte_size FROM extraction.result_files"
    )
    assert (driven.pipeline.store.get(content_hash), size) == (seen[0], len(seen[0]))
    assert driven.rows("SELECT count(*) FROM extraction.extractions")[0][0] == 0
    for offset, length, schema in driven.rows(
        "SELECT byte_offset, byte_length, schema_version FROM extraction.raw_responses"
    ):
        assert seen[0][offset : offset + length + 1] in seen[0].splitlines(keepends=True)
        assert schema == "discharge_summary/1"
