"""The providers there are. A further one is its own module, its name and its builder here."""

from collections.abc import Callable, Mapping
from enum import StrEnum

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.providers.base import BatchProvider
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.openai import build_local, build_openai


class ProviderName(StrEnum):
    """The names that collections and the ledger use."""

    LOCAL = "local"
    OPENAI = "openai"


_BUILDERS: Mapping[ProviderName, Callable[[ProviderEndpoint], BatchProvider]] = {
    ProviderName.LOCAL: build_local,
    ProviderName.OPENAI: build_openai,
}
_KEYLESS = frozenset({ProviderName.LOCAL})


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
