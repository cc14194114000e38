"""What a million tokens cost, by provider, model and day. Money is `Decimal` throughout."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

ANY = "*"
"""Ends the beginning of a model's name that stands for every model of that beginning."""


def money(amount: Decimal, currency: str) -> str:
    """An amount for people, to a hundredth of a cent."""
    return f"{amount:,.4f} {currency}"


def exact(amount: Decimal) -> str:
    """An amount in digits, all of them and no zeros after them: for files and records."""
    return f"{amount.normalize():f}"


@dataclass(frozen=True)
class Price:
    """What a million tokens cost in a batch from a day on, until the next price of that model."""

    valid_from: date
    input: Decimal
    output: Decimal
    currency: str

    def cost(self, input_tokens: int, output_tokens: int) -> Decimal:
        """What these tokens cost, exactly."""
        return (input_tokens * self.input + output_tokens * self.output).scaleb(-6)


@dataclass(frozen=True)
class PriceList:
    """All prices that the operator knows, in one currency. The empty list knows none.

    `entries` holds, by provider and model name or pattern, the prices in order of their days.
    """

    currency: str | None = None
    entries: Mapping[tuple[str, str], tuple[Price, ...]] = field(default_factory=dict, hash=False)

    def prices(self, provider: str, model: str) -> tuple[Price, ...]:
        """All prices of a model in order of their days: by its exact name, else by the longest
        beginning that fits."""
        if (provider, model) in self.entries:
            return self.entries[provider, model]
        fitting = [
            pattern
            for named, pattern in self.entries
            if named == provider and pattern.endswith(ANY) and model.startswith(pattern[:-1])
        ]
        return self.entries[provider, max(fitting, key=len)] if fitting else ()

    def price(self, provider: str, model: str, day: date) -> Price | None:
        """The price of a model on a day, or `None` where none is known for it."""
        begun = [one for one in self.prices(provider, model) if one.valid_from <= day]
        return begun[-1] if begun else None
