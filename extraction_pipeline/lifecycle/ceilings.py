"""Ceilings: what a version may cost is decided before anything is sent."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from sqlalchemy import Connection

from extraction_pipeline.collections.collection import (
    Ceiling,
    CeilingPeriod,
    Collection,
    ExtractionVersion,
)
from extraction_pipeline.ledger.claims import NewJob
from extraction_pipeline.ledger.costs import VersionCosts, version_costs
from extraction_pipeline.prices.price_list import PriceList, money

PER = {CeilingPeriod.TOTAL: "in total", CeilingPeriod.DAY: "a day"}


def today() -> date:
    """The day whose prices hold now, in UTC."""
    return datetime.now(UTC).date()


def shown(ceiling: Ceiling) -> str:
    """A ceiling in words, such as `5.0000 EUR a day`."""
    return f"{money(ceiling.amount, ceiling.currency)} {PER[ceiling.per]}"


def require_price(collection: Collection, version: ExtractionVersion, prices: PriceList) -> None:
    """Raise `CollectionError` for a ceiling that nothing can be held against: without a price in
    its currency."""
    if version.ceiling is None:
        return
    price = prices.price(version.provider.value, version.model, today())
    if price is None or price.currency != version.ceiling.currency:
        raise collection.error(
            ("extraction_versions", version.name, "ceiling"),
            f"Version {version.name} has a ceiling in {version.ceiling.currency}, and no price in "
            f"{version.ceiling.currency} is known for model {version.model} of "
            f"{version.provider.value}.",
            "Add one to the file that EXTRACTION_PRICES names, or remove the ceiling.",
        )


def refusal(
    connection: Connection,
    collection: Collection,
    version: ExtractionVersion,
    jobs: Sequence[NewJob],
    *,
    timezone: str,
) -> str | None:
    """Why new jobs must not be made, in one line that says what to do; `None` if they may.

    The caller holds the claim lock of the version until it has made them.
    """
    ceiling = version.ceiling
    if ceiling is None or not jobs:
        return None
    since = None
    if ceiling.per is CeilingPeriod.DAY:
        now = datetime.now(ZoneInfo(timezone))
        since = now.replace(hour=0, minute=0, second=0, microsecond=0)
    so_far = version_costs(connection, collection.name, version.name, ceiling.currency, since=since)
    new = sum((job.estimate.amount or Decimal(0) for job in jobs), Decimal(0))
    requests = sum(len(job.document_ids) for job in jobs)
    why = excess(ceiling, so_far, new, requests)
    if why is None:
        return None
    line = collection.lines.get(("extraction_versions", version.name, "ceiling"), 1)
    return (
        f"Nothing was sent for {collection.name} at {version.name}: {why} The ceiling stands in "
        f"{collection.declared_in}:{line}."
    )


def excess(ceiling: Ceiling, so_far: VersionCosts, new: Decimal, requests: int) -> str | None:
    """What would pass a ceiling, and what to do; `None` if nothing does."""
    if so_far.unpriced:
        return (
            f"{so_far.unpriced} answers or open jobs have no price in {ceiling.currency}, so its "
            "ceiling cannot be kept. Add the price of their days to the price list."
        )
    if so_far.at_most + new <= ceiling.amount:
        return None
    unanswered = (
        f", at most {money(so_far.unanswered, ceiling.currency)} without an answer"
        if so_far.unanswered
        else ""
    )
    return (
        f"its ceiling of {shown(ceiling)} would be "
        f"passed by {requests} requests for at most {money(new, ceiling.currency)}, with "
        f"{money(so_far.spent, ceiling.currency)} spent{unanswered} and at most "
        f"{money(so_far.under_way, ceiling.currency)} under way. Raise it, or submit fewer "
        "documents at once."
    )
