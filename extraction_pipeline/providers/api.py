"""A provider with an API, whose contract can be shown and compared."""

from typing import Protocol

from extraction_pipeline.providers.base import BatchProvider
from extraction_pipeline.providers.contract import Contract
from extraction_pipeline.providers.contract_reading import Reading


class ApiProvider(BatchProvider, Protocol):
    """A `BatchProvider` that says what it relies on."""

    @property
    def contract(self) -> Contract:
        """What this adapter relies on."""

    def look(self) -> tuple[Reading, ...]:
        """Compare that with what the provider says now, by the cheapest calls that only read.

        Raises `CallRefused` or `CallFailed`.
        """
