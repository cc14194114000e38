"""What requests may cost at most, before they are sent."""

from dataclasses import dataclass
from decimal import Decimal

from extraction_pipeline.prices.price_list import Price

BYTES_PER_TOKEN = 2
"""Bytes of a request line that count as one token. Tokenizers make one of about four bytes of
English, and of three of most other scripts. What is queued is reckoned with three
(`providers.limits`), because a job too many only waits; money that is spent stays spent."""


@dataclass(frozen=True)
class Estimate:
    """Tokens that requests use at most, and their price, `None` where none is known."""

    input_tokens: int
    output_tokens: int
    price: Price | None

    @property
    def amount(self) -> Decimal | None:
        """What they cost at most, or `None` without a price."""
        return self.price.cost(self.input_tokens, self.output_tokens) if self.price else None

    @property
    def currency(self) -> str | None:
        """The currency of the amount."""
        return self.price.currency if self.price else None


def estimate(
    request_bytes: int, requests: int, max_output_tokens: int, price: Price | None
) -> Estimate:
    """At most: every line is read as many short tokens, every answer is as long as it may be."""
    return Estimate(-(-request_bytes // BYTES_PER_TOKEN), requests * max_output_tokens, price)
