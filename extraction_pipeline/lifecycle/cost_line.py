"""What a version has cost, and may still cost, in one line."""

from sqlalchemy import Connection

from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.ledger.costs import version_costs
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.prices.price_list import money


def cost_line(
    connection: Connection, pipeline: Pipeline, collection: Collection, version: str
) -> str | None:
    """The line, or `None` without a price list, and where there are no costs and no ceiling."""
    currency = pipeline.prices.currency
    if currency is None:
        return None
    costs = version_costs(connection, collection.name, version, currency)
    ceiling = next(
        (one.ceiling for one in collection.extraction_versions if one.name == version), None
    )
    if not (costs.at_most or costs.unpriced or ceiling):
        return None
    line = (
        f"{collection.name} at {version}: {money(costs.spent, currency)} spent, at most "
        f"{money(costs.under_way, currency)} under way"
    )
    if costs.unanswered:
        line += f", at most {money(costs.unanswered, currency)} for requests without an answer"
    if ceiling is not None:
        line += f"; its ceiling is {money(ceiling.amount, ceiling.currency)} ({ceiling.per.value})"
    if costs.unpriced:
        what = "answer or open job" if costs.unpriced == 1 else "answers or open jobs"
        line += f"; {costs.unpriced:,} {what} without a price"
    return f"{line}."
