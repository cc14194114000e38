"""Costs: one row for each answered request, with the price of its day, whatever happens."""

from decimal import Decimal

import pytest

from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.polling import poll
from extraction_pipeline.prices.estimate import BYTES_PER_TOKEN
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.proxy import Proxy
from extraction_pipeline_tests.faults.result_rows import both, envelope, repeated, said
from extraction_pipeline_tests.lifecycle.driving import ACTOR, Driven
from extraction_pipeline_tests.lifecycle.priced import priced

COSTS = """
    SELECT c.input_tokens, c.output_tokens, c.input_price, c.output_price, c.amount, c.currency
    FROM extraction.request_costs c ORDER BY c.item_id
"""


@pytest.fixture
def at_a_price(driven: Driven, workplace: Workplace) -> Driven:
    return priced(driven, workplace, ("2020-01-01", "0.3", "1.7"))


def test_a_request_is_billed_once_however_often_its_job_is_polled_and_collected(
    at_a_price: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    """Field report 54: billed once for each status call, or never."""
    driven = at_a_price
    proxy.plan_results(repeated(0))
    workplace.write(3)
    (job_id,) = driven.submitted()
    driven.ended(job_id)
    for _ in range(10):
        poll(driven.pipeline, driven.job(job_id), ACTOR)
    driven.collect(job_id)
    before = driven.rows(COSTS)
    # A worker that died after landing left the job as it was, and another one collects it again.
    driven.execute("UPDATE extraction.batch_jobs SET state = 'ended'")
    assert driven.collect(job_id)[1].landed == 3
    driven.publish(job_id)
    assert driven.rows(COSTS) == before
    assert len(before) == 3
    for row in before:
        assert row.input_tokens > 0 and row.output_tokens > 0
        exact = row.input_tokens * Decimal("0.3") + row.output_tokens * Decimal("1.7")
        assert row.amount == exact / 1_000_000
        assert (row.input_price, row.output_price) == (Decimal("0.3"), Decimal("1.7"))
        assert row.currency == "EUR"


def test_an_answer_that_is_of_no_use_costs_as_well(
    at_a_price: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    driven = at_a_price
    refused = said(0, None, refusal="I cannot do that.")
    cut_short = said(1, '{"diagno', finish="length")
    failed = envelope(2, status_code=500, body={"error": {"message": "Oh.", "type": "server"}})
    answer = {"message": {"content": "{}"}, "finish_reason": "stop"}
    unsaid = envelope(3, body={"choices": [answer]})
    proxy.plan_results(both(both(refused, cut_short), both(failed, unsaid)), times=1)
    workplace.write(5)
    (job_id,) = driven.submitted()
    driven.finished(job_id)
    rows = driven.rows("""
        SELECT r.outcome, c.input_tokens > 0 AS used, c.amount > 0 AS paid
        FROM extraction.raw_responses r LEFT JOIN extraction.request_costs c USING (item_id)
        ORDER BY 1, 2
    """)
    assert [tuple(row) for row in rows] == [
        ("completed", True, True),
        ("completed", None, None),  # asked, and nobody says for how much: no price is made up
        ("errored", False, False),
        ("refused", True, True),
        ("truncated", True, True),
    ]


def test_a_new_price_holds_from_its_day_on(driven: Driven, workplace: Workplace) -> None:
    driven = priced(driven, workplace, ("2020-01-01", "1", "1"), ("2026-05-01", "2", "2"))
    workplace.write(1)
    (first,) = driven.submitted()
    # Asked on the last day of the old price; the answer comes on a later one.
    driven.execute("UPDATE extraction.batch_jobs SET submitted_at = '2026-04-30T23:59:59Z'")
    driven.finished(first)
    workplace.write(1, start=1)
    (second,) = driven.submitted()
    driven.execute(
        "UPDATE extraction.batch_jobs SET submitted_at = '2026-05-01T00:00:00Z' WHERE id = :job",
        job=second,
    )
    driven.finished(second)
    assert [row.input_price for row in driven.rows(COSTS)] == [1, 2]


def test_without_a_price_the_tokens_are_kept(driven: Driven, workplace: Workplace) -> None:
    workplace.write(2)
    (job_id,) = driven.submitted()
    driven.finished(job_id)
    assert driven.job(job_id).state is JobState.PUBLISHED
    for row in driven.rows(COSTS):
        assert row.input_tokens > 0
        assert tuple(row)[2:] == (None, None, None, None)


def test_a_price_that_is_known_later_is_written_once(driven: Driven, workplace: Workplace) -> None:
    workplace.write(2)
    first, second = driven.scan().new
    (job_id,) = driven.submit([first]).submitted
    driven.finished(job_id)
    assert driven.rows(COSTS)[0].amount is None
    later = priced(driven, workplace, ("2020-01-01", "1", "1"))
    later.finished(later.submit([second]).submitted[0])
    once = driven.rows(COSTS)
    assert [row.input_price for row in once] == [1, 1]
    assert [row.amount * 1_000_000 for row in once] == [
        row.input_tokens + row.output_tokens for row in once
    ]
    dearer = priced(driven, workplace, ("2020-01-01", "5", "5"))
    dearer.submit()
    assert driven.rows(COSTS) == once


def test_a_job_says_what_it_costs_at_most(at_a_price: Driven, workplace: Workplace) -> None:
    workplace.write(2)
    (job_id,) = at_a_price.submitted()
    job = at_a_price.job(job_id)
    assert job.payload_bytes is not None and job.estimated_amount is not None
    assert job.estimated_currency == "EUR"
    # Sizes are added up before the payload is built, with a few bytes too many and none too few.
    for size, holds in ((0, Decimal.__ge__), (10, Decimal.__le__)):
        tokens = -(-(job.payload_bytes + size) // BYTES_PER_TOKEN)
        bound = (tokens * Decimal("0.3") + 2 * 4096 * Decimal("1.7")) / 1_000_000
        assert holds(job.estimated_amount, bound)
    at_a_price.finished(job_id)
    spent = sum(row.amount for row in at_a_price.rows(COSTS))
    assert spent < job.estimated_amount
