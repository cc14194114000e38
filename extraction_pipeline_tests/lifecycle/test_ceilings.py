"""Ceilings: what would pass one is not sent, and nothing is lost or used up by that."""

import threading
from decimal import Decimal

import pytest

from extraction_pipeline.collections.collection import Ceiling, CeilingPeriod
from extraction_pipeline.errors import CollectionError
from extraction_pipeline.ledger import claims
from extraction_pipeline.ledger.costs import VersionCosts, version_costs
from extraction_pipeline.lifecycle.ceilings import excess, today
from extraction_pipeline.lifecycle.cost_line import cost_line
from extraction_pipeline.lifecycle.submission import SubmissionReport
from extraction_pipeline.prices.estimate import estimate
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.proxy import CREATE, Proxy
from extraction_pipeline_tests.faults.result_rows import envelope, undecodable
from extraction_pipeline_tests.lifecycle.driving import Driven
from extraction_pipeline_tests.lifecycle.priced import priced, under

ONE_REQUEST = Decimal("0.4096")
"""What a request costs at most where only output does, at 100 a million and 4,096 tokens."""


@pytest.fixture
def costly(driven: Driven, workplace: Workplace) -> Driven:
    return priced(driven, workplace, ("2020-01-01", "0", "100"))


def ceiling(requests: float, per: str = "total") -> str:
    """A ceiling of so many requests."""
    return f"{{amount: {ONE_REQUEST * Decimal(requests)}, currency: EUR, per: {per}}}"


def costs(driven: Driven) -> VersionCosts:
    with driven.pipeline.engine.connect() as connection:
        return version_costs(connection, "notes", "v1", "EUR")


def test_what_would_pass_the_ceiling_waits_and_goes_out_when_it_is_raised(
    costly: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(3)
    driven = under(costly, workplace, ceiling(2.5))
    driven.scan()
    for _ in range(3):  # more often than there are attempts
        report = driven.submit()
        assert (report.documents, report.refused, report.jobs) == (0, 3, [])
    (cause,) = report.causes
    assert cause == (
        "Nothing was sent for notes at v1: its ceiling of 1.0240 EUR in total would be passed by 3 "
        "requests for at most 1.2288 EUR, with 0.0000 EUR spent and at most 0.0000 EUR under way. "
        "Raise it, or submit fewer documents at once. The ceiling stands in "
        f"{workplace.collections / 'notes.yaml'}:13."
    )
    assert proxy.count(CREATE) == 0
    assert driven.items() == {}
    assert driven.summary().waiting == 3
    assert driven.audited()["ceiling_reached"] == 3
    # The same version, whose recipe is as it was; and exactly what may be spent may be.
    raised = under(costly, workplace, ceiling(3))
    assert raised.submit().documents == 3


def test_fewer_documents_may_go_out_under_the_same_ceiling(
    costly: Driven, workplace: Workplace
) -> None:
    workplace.write(3)
    driven = under(costly, workplace, ceiling(2))
    hashes = driven.scan().new
    assert driven.submit(hashes[:2]).documents == 2
    assert driven.submit(hashes[2:]).refused == 1


def test_runs_at_once_do_not_pass_it_together(
    costly: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(4)
    driven = under(costly, workplace, ceiling(1))
    hashes = driven.scan().new
    start = threading.Barrier(4)
    reports: list[SubmissionReport] = []

    def run(document_hash: str) -> None:
        start.wait(20)
        reports.append(driven.submit([document_hash]))

    threads = [threading.Thread(target=run, args=[one]) for one in hashes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(report.documents for report in reports) == [0, 0, 0, 1]
    assert proxy.count(CREATE) == 1


def test_a_run_that_comes_while_another_claims_sees_what_that_one_may_cost(
    costly: Driven, workplace: Workplace
) -> None:
    workplace.write(1)
    driven = under(costly, workplace, ceiling(2))
    driven.submitted()
    workplace.write(2, start=1)
    driven.scan()
    (*_, (last,)) = driven.rows("SELECT document_hash FROM extraction.documents ORDER BY id")
    ((version,),) = driven.rows("SELECT id FROM extraction.extraction_versions")
    price = driven.pipeline.prices.price("local", "rules-baseline", today())
    reports: list[SubmissionReport] = []
    with driven.pipeline.engine.begin() as connection:
        found = claims.claimable_documents(
            connection, "notes", version, max_attempts=2, hashes=None
        )
        asked = [one.document_id for one in found]
        second = threading.Thread(target=lambda: reports.append(driven.submit([last])))
        second.start()
        second.join(0.3)
        assert reports == []
        claims.create_jobs(
            connection,
            version,
            provider="local",
            base_url="http://127.0.0.1:9/v1",
            jobs=[claims.NewJob("first", (asked[0],), estimate(1, 1, 4096, price))],
        )
    second.join(20)
    assert [report.refused for report in reports] == [1]


def test_an_answer_frees_what_it_did_not_use(costly: Driven, workplace: Workplace) -> None:
    workplace.write(2)
    driven = under(costly, workplace, ceiling(1.9))
    first, second = driven.scan().new
    (job_id,) = driven.submit([first]).submitted
    assert costs(driven) == VersionCosts(Decimal(0), ONE_REQUEST, 0)
    assert driven.submit([second]).refused == 1
    driven.ended(job_id)
    driven.collect(job_id)
    after = costs(driven)
    assert 0 < after.spent < ONE_REQUEST * Decimal("0.9")
    assert after.under_way == 0
    assert driven.submit([second]).documents == 1
    # Half collected, its answers count once: no more than the estimate is under way in all.
    driven.execute("UPDATE extraction.batch_jobs SET state = 'ended' WHERE id = :job", job=job_id)
    half = costs(driven)
    assert half.spent == after.spent
    assert half.spent + half.under_way == 2 * ONE_REQUEST


def test_a_ceiling_a_day_begins_anew_each_day(costly: Driven, workplace: Workplace) -> None:
    workplace.write(2)
    driven = under(costly, workplace, ceiling(1, "day"))
    first, second = driven.scan().new
    assert driven.submit([first]).documents == 1
    report = driven.submit([second])
    assert report.refused == 1
    assert "0.4096 EUR a day" in report.causes[0]
    driven.execute("UPDATE extraction.batch_jobs SET created_at = now() - interval '1 day'")
    assert driven.submit([second]).documents == 1


def test_an_answer_that_hides_its_usage_counts_with_its_estimate(
    costly: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    answer = {"message": {"content": "{}"}, "finish_reason": "stop"}
    proxy.plan_results(envelope(0, body={"choices": [answer]}), times=1)
    workplace.write(1)
    (job_id,) = costly.submitted()
    costly.finished(job_id)
    assert costs(costly) == VersionCosts(ONE_REQUEST, Decimal(0), 0)


@pytest.mark.parametrize(
    ("reason", "job_id", "unanswered"),
    [
        ("results_lost", "b-1", 1),
        ("missing_from_results", "b-1", 1),
        ("expired", "b-1", 1),
        ("given_up", "b-1", 1),
        ("given_up", None, 0),  # no provider is known to have had it
        ("cancelled", "b-1", 0),
    ],
)
def test_what_may_have_to_be_paid_for_without_an_answer_counts_with_its_estimate(
    costly: Driven,
    workplace: Workplace,
    proxy: Proxy,
    reason: str,
    job_id: str | None,
    unanswered: int,
) -> None:
    proxy.plan_results(undecodable(0), times=1)
    workplace.write(2)
    driven = under(costly, workplace, ceiling(2))
    (job,) = driven.submitted()
    driven.finished(job)
    assert driven.items()[("failed", "rejected", "results_lost")] == 1
    driven.execute(
        "UPDATE extraction.batch_items SET failure_reason = :reason WHERE state = 'failed'",
        reason=reason,
    )
    driven.execute("UPDATE extraction.batch_jobs SET state = 'failed', job_id = :id", id=job_id)
    after = costs(driven)
    assert 0 < after.spent < ONE_REQUEST
    assert (after.unanswered, after.under_way) == (unanswered * ONE_REQUEST, Decimal(0))
    with driven.pipeline.engine.connect() as connection:
        line = cost_line(connection, driven.pipeline, driven.collection, "v1") or ""
    assert ("at most 0.4096 EUR for requests without an answer" in line) == bool(unanswered)
    workplace.write(1, start=2)
    driven.scan()
    report = driven.submit()
    assert report.refused == unanswered
    assert ("at most 0.4096 EUR without an answer" in "".join(report.causes)) == bool(unanswered)


def test_what_came_before_any_price_is_priced_or_holds_everything_up(
    driven: Driven, workplace: Workplace
) -> None:
    """A ceiling that does not count all would be none."""
    workplace.write(2)
    first, second = driven.scan().new
    driven.finished(driven.submit([first]).submitted[0])
    of_today = priced(driven, workplace, ("2020-01-01", "0", "100"))
    driven.execute("UPDATE extraction.batch_jobs SET submitted_at = '2019-12-31T12:00:00Z'")
    report = under(of_today, workplace, ceiling(100)).submit([second])
    assert report.refused == 1
    assert "1 answers or open jobs have no price in EUR" in report.causes[0]
    complete = priced(driven, workplace, ("2019-01-01", "0", "100"))
    assert under(complete, workplace, ceiling(100)).submit([second]).documents == 1


def test_a_ceiling_without_a_price_is_refused_with_file_and_line(
    driven: Driven, workplace: Workplace
) -> None:
    workplace.write(1)
    driven.scan()
    for unusable in (driven, priced(driven, workplace, ("2999-01-01", "1", "1"))):
        with pytest.raises(CollectionError, match=r"notes\.yaml:13: .*ceiling in EUR, and no pri"):
            under(unusable, workplace, ceiling(1)).submit()
    costly = priced(driven, workplace, ("2020-01-01", "1", "1"))
    with pytest.raises(CollectionError, match="no price in USD"):
        under(costly, workplace, "{amount: 5, currency: USD}").submit()
    assert driven.items() == {}


@pytest.mark.parametrize(
    ("spent", "under_way", "new", "passes"),
    [("0", "0", "10", True), ("4", "4", "2.0001", False), ("4", "4", "2", True)],
)
def test_a_ceiling_may_be_reached_and_not_passed(
    spent: str, under_way: str, new: str, passes: bool
) -> None:
    so_far = VersionCosts(Decimal(spent), Decimal(under_way), 0)
    ten = Ceiling(Decimal(10), "EUR", CeilingPeriod.TOTAL)
    assert (excess(ten, so_far, Decimal(new), 1) is None) == passes
