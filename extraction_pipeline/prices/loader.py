"""Reads the operator's price list. All that is wrong in it is reported at once, one line each."""

import json
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from extraction_pipeline.collections.defect import Defect
from extraction_pipeline.collections.explanation import explain
from extraction_pipeline.collections.form import CURRENCY
from extraction_pipeline.collections.yaml_document import MOST_BYTES, YamlDocument, parse_yaml
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.prices.price_list import ANY, Price, PriceList
from extraction_pipeline.providers.registry import ProviderName
from extraction_pipeline.whole_file import read_whole


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _PriceForm(_Form):
    """What a million tokens cost from a day on; a batch is billed with `batch_factor` of it."""

    valid_from: date
    input: Annotated[Decimal, Field(ge=0, le=1_000_000)]
    output: Annotated[Decimal, Field(ge=0, le=1_000_000)]
    batch_factor: Annotated[Decimal, Field(gt=0, le=1)] = Decimal(1)


class _ListForm(_Form):
    """A whole file: by provider and model, the prices of each."""

    currency: Annotated[str, Field(pattern=CURRENCY)]
    prices: dict[ProviderName, dict[str, Annotated[list[_PriceForm], Field(min_length=1)]]]


def load_prices(file: Path | None) -> PriceList:
    """The prices that a file declares; none without a file.

    Raises `ConfigurationError` with one line for each defect, in the form
    `file:line: cause remedy`.
    """
    if file is None:
        return PriceList()
    try:
        text = read_whole(file, MOST_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or "it is not UTF-8"
        raise ConfigurationError(
            f"The price list {file} cannot be read ({reason}).",
            remedy="Name a YAML file in EXTRACTION_PRICES, or unset it.",
        ) from None
    document = parse_yaml(text)
    form, defects = _read(document)
    if form is None or defects:
        raise ConfigurationError(
            "\n".join(defect.shown(file) for defect in sorted(defects, key=lambda one: one.line))
        )
    return _price_list(form)


def _read(document: YamlDocument) -> tuple[_ListForm | None, list[Defect]]:
    defects = list(document.defects)
    if not isinstance(document.data, dict):
        return None, defects or [Defect(1, "The file holds no keys.", "Begin it with currency:.")]
    form: _ListForm | None = None
    try:
        form = _ListForm.model_validate_json(json.dumps(document.data), strict=True)
    except ValidationError as error:
        defects += explain(error, document, _keys_at)
    return form, [*defects, *_inconsistencies(document)]


def _inconsistencies(document: YamlDocument) -> Iterator[Defect]:
    """What no form tells, as far as the file can be read, so that all is told at once."""
    for provider, models in _mapping(_mapping(document.data).get("prices")).items():
        for model, prices in _mapping(models).items():
            if ANY in model[:-1] or not model:
                yield Defect(
                    document.line(("prices", provider, model)),
                    f"A model cannot be called {model!r}.",
                    "Write its whole name, or its beginning with one * at the end.",
                )
            days: set[str] = set()
            for position, price in enumerate(prices if isinstance(prices, list) else []):
                day = _mapping(price).get("valid_from")
                if day in days:
                    yield Defect(
                        document.line(("prices", provider, model, position, "valid_from")),
                        f"{model} has two prices from {day} on.",
                        "Keep one of them, or correct the day.",
                    )
                if isinstance(day, str):
                    days.add(day)


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _keys_at(location: Sequence[str | int]) -> tuple[str, ...]:
    match tuple(location):
        case ():
            return tuple(_ListForm.model_fields)
        case ("prices", _, _, int()):
            return tuple(_PriceForm.model_fields)
        case _:
            return ()


def _price_list(form: _ListForm) -> PriceList:
    return PriceList(
        currency=form.currency,
        entries={
            (provider.value, model): tuple(
                Price(
                    valid_from=price.valid_from,
                    input=price.input * price.batch_factor,
                    output=price.output * price.batch_factor,
                    currency=form.currency,
                )
                for price in sorted(prices, key=lambda one: one.valid_from)
            )
            for provider, models in form.prices.items()
            for model, prices in models.items()
        },
    )
