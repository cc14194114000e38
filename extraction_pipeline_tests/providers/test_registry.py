"""Providers by name."""

import pytest

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.registry import ProviderName, build_provider

ENDPOINT = ProviderEndpoint("https://host/v1", api_key="sk-a")


@pytest.mark.parametrize("name", ProviderName)
def test_every_name_builds_a_provider_of_that_name(name):
    provider = build_provider(name, ENDPOINT)
    assert (provider.name, provider.base_url) == (name, "https://host/v1")
    assert provider.limits.requests_per_job > 0 and provider.limits.bytes_per_job > 0


def test_names_are_plain_strings():
    assert ProviderName("openai") is ProviderName.OPENAI
    names = ["local", "openai", "anthropic", "gemini", "infrai"]
    assert [f"{name}" for name in ProviderName] == names
    with pytest.raises(ValueError, match="'other'"):
        ProviderName("other")


def test_a_key_is_asked_for_where_it_is_a_must():
    keyless = ProviderEndpoint("https://host/v1")
    assert build_provider(ProviderName.LOCAL, keyless).name == "local"
    for name in set(ProviderName) - {ProviderName.LOCAL}:
        with pytest.raises(ConfigurationError, match=f"EXTRACTION_{name.upper()}_API_KEY"):
            build_provider(name, keyless)
