"""The providers there are. A further one is its own module, its name in `names`, and its
builder here."""

from collections.abc import Callable, Mapping

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.providers.anthropic import build_anthropic
from extraction_pipeline.providers.base import BatchProvider, ModelRequest
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.gemini import build_gemini
from extraction_pipeline.providers.infrai import build_infrai
from extraction_pipeline.providers.names import ProviderName as ProviderName
from extraction_pipeline.providers.openai import build_local, build_openai

_BUILDERS: Mapping[ProviderName, Callable[[ProviderEndpoint], BatchProvider]] = {
    ProviderName.LOCAL: build_local,
    ProviderName.OPENAI: build_openai,
    ProviderName.ANTHROPIC: build_anthropic,
    ProviderName.GEMINI: build_gemini,
    ProviderName.INFRAI: build_infrai,
}
_KEYLESS = frozenset({ProviderName.LOCAL})
PUBLISHES_CONTRACT = frozenset({ProviderName.INFRAI})
"""Providers whose contract can be read without a key."""


def build_provider(name: ProviderName, endpoint: ProviderEndpoint) -> BatchProvider:
    """The provider of this name at this endpoint; makes no call.

    Raises `ConfigurationError` where a key is needed and none is set.
    """
    if endpoint.api_key is None and name not in _KEYLESS:
        raise ConfigurationError(
            f"Provider {name} needs an API key and none is set.",
            remedy=f"Set EXTRACTION_{name.upper()}_API_KEY in the environment.",
        )
    return _BUILDERS[name](endpoint)


def describe_provider(name: ProviderName, endpoint: ProviderEndpoint) -> BatchProvider:
    """The same, for what needs no key: its contract, and what the provider publishes."""
    return _BUILDERS[name](endpoint)


def check_request(name: ProviderName, endpoint: ProviderEndpoint, request: ModelRequest) -> None:
    """Refuse what the provider would refuse of any request like this one: its schema, and
    parameters that the pipeline sets itself. Makes no call and needs no key.

    Raises `ConfigurationError` with the name of the field or parameter.
    """
    provider = _BUILDERS[name](endpoint)
    provider.check_schema(request.schema_name, request.json_schema)
    provider.encode_request(request)
