"""What every step of the lifecycle works with, opened once per process."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlalchemy import Engine

from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.documents.store import ContentStore
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.prices.price_list import PriceList
from extraction_pipeline.providers.base import BatchProvider
from extraction_pipeline.settings import Settings


@dataclass(frozen=True)
class Pipeline:
    """The ledger, the store, the collections, the prices and the providers of one installation."""

    engine: Engine
    store: ContentStore
    settings: Settings
    collections: Mapping[str, Collection]
    prices: PriceList
    provider: Callable[[str], BatchProvider]

    def collection(self, name: str) -> Collection:
        """The collection of this name. Raises `ConfigurationError` naming those that exist."""
        try:
            return self.collections[name]
        except KeyError:
            raise ConfigurationError(
                f"There is no collection {name}.",
                remedy=f"Known are: {', '.join(sorted(self.collections))}.",
            ) from None
