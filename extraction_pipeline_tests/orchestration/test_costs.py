"""What a person sees of costs in Dagster: on records, and where a ceiling stops a run."""

from dataclasses import replace

from dagster import AssetKey

from extraction_pipeline.orchestration.partitions import NIGHTLY
from extraction_pipeline_tests.orchestration.installed import (
    NOTES,
    Installed,
    cause,
    keys,
    metadata_of,
)


def with_ceiling(installed: Installed, amount: str) -> Installed:
    """The installation with prices, and a ceiling of its version."""
    prices = installed.workplace.root / "prices.yaml"
    prices.write_text(
        "currency: EUR\nprices:\n  local:\n"
        '    "*": [{valid_from: 2020-01-01, input: 0, output: 100}]\n'
    )
    installed.workplace.environment.setenv("EXTRACTION_PRICES", str(prices))
    installed.workplace.declare(ceiling=f"{{amount: {amount}, currency: EUR}}")
    return installed.reopened()


def test_a_ceiling_stops_runs_in_one_line_and_records_say_what_was_paid(
    installed: Installed,
) -> None:
    hashes = installed.with_documents(2)
    jobs = installed.provider_jobs()
    low = with_ceiling(installed, "0.5")
    sentence = "its ceiling of 0.5000 EUR in total would be passed by 2 requests"
    refused = low.submit()
    assert not refused.success
    assert sentence in cause(refused) and "\n" not in cause(refused)
    by_hand = low.materialize("batch_submissions", f"{hashes[0]}|v1", f"{hashes[-1]}|v1")
    assert cause(by_hand).startswith("2 of 2 documents did not pass: 2 waiting. Nothing was sent")
    assert sentence in cause(by_hand)
    assert low.asset_run(AssetKey(NIGHTLY), {}, partition="2026-11-20").success
    (record,) = low.instance.fetch_materializations(AssetKey(NIGHTLY), limit=9).records
    assert record.asset_materialization is not None
    night = metadata_of(record.asset_materialization)
    assert (night["submitted"], night["over_ceiling"], night["waiting"]) == (0, 2, 2)
    assert installed.provider_jobs() == jobs
    assert low.materialized("batch_submissions") == set()
    high = with_ceiling(installed, "0.8192")
    high.finish()
    assert high.materialized("extractions") == keys(hashes)
    for record in high.records("batch_submissions"):
        assert record.asset_materialization is not None
        assert metadata_of(record.asset_materialization)["job_costs_at_most"] == "0.8192 EUR"
    paid = dict(
        high.query(
            "SELECT d.document_hash || '|v1', trim_scale(c.amount) || ' ' || c.currency"
            " FROM extraction.request_costs c"
            " JOIN extraction.batch_items i ON i.id = c.item_id"
            " JOIN extraction.documents d ON d.id = i.document_id"
        )
    )
    for record in high.records("raw_responses"):
        assert record.asset_materialization is not None
        said = metadata_of(record.asset_materialization)
        assert said["cost"] == paid[record.partition_key or ""]


def test_a_driver_tells_what_is_under_way(installed: Installed) -> None:
    installed.with_documents(1)
    priced = with_ceiling(installed, "5")
    lines: list[str] = []
    replace(priced.driver(), tell=lines.append, pipeline=priced.workplace.open()).finish([NOTES])
    assert (
        "notes at v1: 0.0000 EUR spent, at most 0.4096 EUR under way; its ceiling is 5.0000 EUR "
        "(total)."
    ) in lines
