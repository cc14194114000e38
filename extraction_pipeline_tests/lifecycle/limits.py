"""A provider with other limits than its own, to fill jobs with few documents."""

from dataclasses import replace

from extraction_pipeline.lifecycle.opening import endpoint_of
from extraction_pipeline.providers.base import BatchProvider, ProviderLimits
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.openai import OpenAIBatchProvider
from extraction_pipeline.providers.registry import ProviderName
from extraction_pipeline_tests.lifecycle.driving import Driven


def limited(driven: Driven, limits: ProviderLimits) -> Driven:
    """The same collection, at the same server, in jobs of these limits."""
    endpoint = endpoint_of(driven.pipeline.settings, ProviderName.LOCAL)
    assert isinstance(endpoint, ProviderEndpoint)

    def provider(name: str) -> BatchProvider:
        return OpenAIBatchProvider(name, endpoint, limits)

    return replace(driven, pipeline=replace(driven.pipeline, provider=provider))
