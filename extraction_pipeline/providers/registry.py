"""The providers there are. A further one is its own module, its name in `names`, and its
builder here."""

from collections.abc import Callable, Mapping

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.providers.anthropic import build_anthropic
from extraction_pipeline.providers.api import ApiProvider
from extraction_pipeline.providers.base import BatchProvider, ModelRequest
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.folder_endpoint import SETTING, FolderEndpoint
from extraction_pipeline.providers.gemini import build_gemini
from extraction_pipeline.providers.infrai import build_infrai
from extraction_pipeline.providers.names import ProviderName as ProviderName
from extraction_pipeline.providers.openai import build_local, build_openai
from extraction_pipeline.providers.outside import build_outside

BUILDERS: Mapping[ProviderName, Callable[[ProviderEndpoint], ApiProvider]] = {
    ProviderName.LOCAL: build_local,
    ProviderName.OPENAI: build_openai,
    ProviderName.ANTHROPIC: build_anthropic,
    ProviderName.GEMINI: build_gemini,
    ProviderName.INFRAI: build_infrai,
}
"""Of the providers with an API."""

_KEYLESS = frozenset({ProviderName.LOCAL})

Endpoint = ProviderEndpoint | FolderEndpoint
"""Of an API, or of a service without one."""


def build_provider(name: ProviderName, endpoint: Endpoint) -> BatchProvider:
    """The provider of this name at this endpoint; makes no call.

    Raises `ConfigurationError` where a key or a folder is needed and none is set.
    """
    if isinstance(endpoint, ProviderEndpoint):
        return build_api(name, endpoint)
    if endpoint.folder is None:
        raise ConfigurationError(
            f"Provider {name} needs a folder and none is set.",
            remedy=f"Set {SETTING} in the environment.",
        )
    return build_outside(endpoint)


def build_api(name: ProviderName, endpoint: ProviderEndpoint) -> ApiProvider:
    """The same, of a provider with an API."""
    if endpoint.api_key is None and name not in _KEYLESS:
        raise ConfigurationError(
            f"Provider {name} needs an API key and none is set.",
            remedy=f"Set EXTRACTION_{name.upper()}_API_KEY in the environment.",
        )
    return describe_provider(name, endpoint)


def describe_provider(name: ProviderName, endpoint: ProviderEndpoint) -> ApiProvider:
    """The same, for what needs no key: its contract, and what the provider publishes."""
    return BUILDERS[name](endpoint)


def check_request(name: ProviderName, endpoint: Endpoint, request: ModelRequest) -> None:
    """Refuse what the provider would refuse of any request like this one: its schema, and
    parameters that the pipeline sets itself. Makes no call and needs no key.

    Raises `ConfigurationError` with the name of the field or parameter.
    """
    provider: BatchProvider = (
        describe_provider(name, endpoint)
        if isinstance(endpoint, ProviderEndpoint)
        else build_outside(endpoint)
    )
    provider.check_schema(request.schema_name, request.json_schema)
    provider.encode_request(request)
