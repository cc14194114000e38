"""Opening the pipeline from settings: the one place where its parts are put together."""

import os
from functools import lru_cache

from extraction_pipeline.collections.loader import load_collections
from extraction_pipeline.documents.store import ContentStore
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.ledger.migrate import require_current
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.scratch import sweep_scratch
from extraction_pipeline.prices.loader import load_prices
from extraction_pipeline.providers.base import BatchProvider
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.folder_endpoint import FolderEndpoint
from extraction_pipeline.providers.limits import AccountLimits
from extraction_pipeline.providers.registry import Endpoint, ProviderName, build_provider
from extraction_pipeline.settings import Settings


def open_pipeline(settings: Settings) -> Pipeline:
    """A pipeline over the database that the settings name; its tables must be current.

    Raises `ConfigurationError`, `DatabaseUnavailable` or `LedgerError`.
    """
    if settings.database_url is None:
        raise ConfigurationError(
            "EXTRACTION_DATABASE_URL is not set.",
            remedy="Set it to a PostgreSQL URL; `extraction-pipeline dev` starts one by itself.",
        )
    sweep_scratch(settings)
    engine = open_engine(settings.database_url.get_secret_value())
    require_current(engine)

    @lru_cache
    def provider(name: str) -> BatchProvider:
        if name not in set(ProviderName):
            raise ConfigurationError(
                f"The ledger holds a job of provider {name}, which this version does not know.",
                remedy="Run the version that submitted it, or a later one.",
            )
        return build_provider(ProviderName(name), endpoint_of(settings, ProviderName(name)))

    return Pipeline(
        engine=engine,
        store=ContentStore(settings.store_location),
        settings=settings,
        collections={
            collection.name: collection
            for collection in load_collections(settings.collections, os.environ)
        },
        prices=load_prices(settings.prices),
        provider=provider,
    )


def endpoint_of(settings: Settings, name: ProviderName) -> Endpoint:
    """Where a provider is reached, and with which key."""
    if name is ProviderName.OUTSIDE:
        return FolderEndpoint(settings.outside_folder, settings.limits.get(name, AccountLimits()))
    return api_endpoint_of(settings, name)


def api_endpoint_of(settings: Settings, name: ProviderName) -> ProviderEndpoint:
    """The same, of a provider with an API."""
    match name:
        case ProviderName.OPENAI:
            base_url, key = settings.openai_base_url, settings.openai_api_key
        case ProviderName.ANTHROPIC:
            base_url, key = settings.anthropic_base_url, settings.anthropic_api_key
        case ProviderName.GEMINI:
            base_url, key = settings.gemini_base_url, settings.gemini_api_key
        case ProviderName.INFRAI:
            base_url, key = settings.infrai_base_url, settings.infrai_api_key
        case _:
            base_url, key = settings.local_base_url, settings.local_api_key
    return ProviderEndpoint(
        base_url=base_url,
        api_key=key.get_secret_value() if key else None,
        organization=settings.openai_organization if name is ProviderName.OPENAI else None,
        project=settings.openai_project if name is ProviderName.OPENAI else None,
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
        poll_timeout=settings.poll_timeout,
        send_timeout=settings.send_timeout,
        anthropic_output=settings.anthropic_output,
        gemini_schema_field=settings.gemini_schema_field,
        infrai_capability=settings.infrai_capability,
        limits=settings.limits.get(name, AccountLimits()),
    )
