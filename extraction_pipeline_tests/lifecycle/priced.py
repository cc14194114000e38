"""The collection of a test with a price list, and with a ceiling."""

from dataclasses import replace

from extraction_pipeline.collections.loader import load_collections
from extraction_pipeline.prices.loader import load_prices
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.lifecycle.driving import Driven


def priced(driven: Driven, workplace: Workplace, *prices: tuple[str, str, str]) -> Driven:
    """The same collection with a price list: (first day, input, output) for its model."""
    file = workplace.root / "prices.yaml"
    file.write_text(
        "currency: EUR\nprices:\n  local:\n    rules-*:\n"
        + "".join(
            f"      - {{valid_from: {day}, input: {one}, output: {other}}}\n"
            for day, one, other in prices
        )
    )
    return replace(driven, pipeline=replace(driven.pipeline, prices=load_prices(file)))


def under(driven: Driven, workplace: Workplace, ceiling: str) -> Driven:
    """The same collection after an edit of its YAML: `ceiling` is what stands behind that key."""
    workplace.declare(ceiling=ceiling)
    (notes,) = load_collections(workplace.collections, {})
    return replace(driven, pipeline=replace(driven.pipeline, collections={notes.name: notes}))
