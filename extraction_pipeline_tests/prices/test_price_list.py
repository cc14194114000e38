"""Prices: read exactly, found by name, beginning and day, and refused with file and line."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.prices.loader import load_prices
from extraction_pipeline.prices.price_list import PriceList

VALID = """\
currency: USD
prices:
  openai:
    model-small:
      - {valid_from: 2026-01-01, input: 0.4, output: 1.6, batch_factor: 0.5}
      - {valid_from: 2026-07-01, input: 0.3, output: 1.1, batch_factor: 0.5}
    model-*:
      - valid_from: 2026-01-01
        input: 2
        output: 8
    model-large-*:
      - {valid_from: 2026-01-01, input: 10, output: 30}
  local:
    "*":
      - {valid_from: 2020-01-01, input: 0, output: 0}
"""


def loaded(folder: Path, text: str = VALID) -> PriceList:
    file = folder / "prices.yaml"
    file.write_text(text)
    return load_prices(file)


def test_no_file_knows_no_price() -> None:
    assert load_prices(None).price("openai", "model-small", date(2026, 7, 1)) is None


@pytest.mark.parametrize(
    ("provider", "model", "day", "expected"),
    [
        ("openai", "model-small", "2025-12-31", None),
        ("openai", "model-small", "2026-01-01", ("0.2", "0.8")),
        ("openai", "model-small", "2026-06-30", ("0.2", "0.8")),
        ("openai", "model-small", "2026-07-01", ("0.15", "0.55")),
        ("openai", "model-small-2026", "2026-07-01", ("2", "8")),
        ("openai", "model-large-9", "2026-07-01", ("10", "30")),
        ("openai", "other", "2026-07-01", None),
        ("gemini", "model-small", "2026-07-01", None),
        ("local", "whatever", "2026-07-01", ("0", "0")),
    ],
)
def test_a_price_is_found_by_name_then_longest_beginning_and_by_day(
    tmp_path: Path, provider: str, model: str, day: str, expected: tuple[str, str] | None
) -> None:
    price = loaded(tmp_path).price(provider, model, date.fromisoformat(day))
    found = None if price is None else (price.input, price.output)
    assert found == (None if expected is None else (Decimal(expected[0]), Decimal(expected[1])))


def test_money_is_exact(tmp_path: Path) -> None:
    price = loaded(tmp_path).price("openai", "model-small", date(2026, 7, 1))
    assert price is not None
    assert price.cost(1, 1) == Decimal("0.0000007")
    assert price.cost(999_999_999_999, 3) == Decimal("150000.0000015")
    assert price.currency == "USD"


WRONG = {
    "no currency": ("currency: USD\n", "", 1, "'currency' is missing"),
    "bad currency": ("currency: USD", "currency: dollars", 1, "currency is not of the right form"),
    "unknown provider": ("  openai:", "  opnai:", 3, "must be 'local'"),
    "negative": ("input: 2", "input: -2", 9, "prices.openai.model-*.0.input is not valid"),
    "words": ("input: 2", "input: two", 9, "prices.openai.model-*.0.input"),
    "misspelt": ("        input: 2", "        inptu: 2", 9, "Did you mean 'input'?"),
    "no day": ("      - valid_from: 2026-01-01\n        input", "      - input", 8, "valid_from"),
    "no date": ("valid_from: 2026-07-01", "valid_from: July", 6, "valid_from"),
    "a day twice": ("2026-07-01", "2026-01-01", 6, "two prices from 2026-01-01"),
    "factor": ("8\n", "8\n        batch_factor: 1.5\n", 11, "batch_factor"),
    "pattern": ("    model-*:", "    mo*del-*:", 7, "cannot be called 'mo*del-*'"),
    "no prices": ("      - {valid_from: 2020-01-01, input: 0, output: 0}", "      []", 14, "local"),
    "syntax": ("currency: USD", "currency: [", 3, "Not valid YAML"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_list_is_refused_with_file_line_and_remedy(
    tmp_path: Path, case: tuple[str, str, int, str]
) -> None:
    old, new, line, said = case
    assert old in VALID
    with pytest.raises(ConfigurationError) as raised:
        loaded(tmp_path, VALID.replace(old, new, 1))
    (report,) = str(raised.value).splitlines()
    assert report.startswith(f"{tmp_path / 'prices.yaml'}:{line}: "), report
    assert said in report


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    text = VALID.replace("    model-*:", "    mo*del-*:").replace("2026-07-01", "2026-01-01")
    with pytest.raises(ConfigurationError) as raised:
        loaded(tmp_path, text.replace("input: 10", "input: ten"))
    lines = str(raised.value).splitlines()
    assert [line.partition(".yaml:")[2].partition(":")[0] for line in lines] == ["6", "7", "12"]
    assert "two prices" in lines[0] and "mo*del-*" in lines[1] and "input" in lines[2]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"absent\.yaml cannot be read .*EXTRACTION_PRI"):
        load_prices(tmp_path / "absent.yaml")
