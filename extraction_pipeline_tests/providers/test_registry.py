"""Providers by name."""

import pytest

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.folder_endpoint import FolderEndpoint
from extraction_pipeline.providers.registry import BUILDERS, ProviderName, build_provider

ENDPOINT = ProviderEndpoint("https://host/v1", api_key="sk-a")


@pytest.mark.parametrize("name", BUILDERS)
def test_every_name_of_an_api_builds_a_provider_of_that_name(name):
    provider = build_provider(name, ENDPOINT)
    assert (provider.name, provider.base_url) == (name, "https://host/v1")
    assert provider.limits.requests_per_job > 0 and provider.limits.bytes_per_job > 0


def test_names_are_plain_strings():
    assert ProviderName("openai") is ProviderName.OPENAI
    names = ["local", "openai", "anthropic", "gemini", "infrai", "outside"]
    assert [f"{name}" for name in ProviderName] == names
    with pytest.raises(ValueError, match="'other'"):
        ProviderName("other")


def test_a_key_is_asked_for_where_it_is_a_must():
    keyless = ProviderEndpoint("https://host/v1")
    assert build_provider(ProviderName.LOCAL, keyless).name == "local"
    for name in set(BUILDERS) - {ProviderName.LOCAL}:
        with pytest.raises(ConfigurationError, match=f"EXTRACTION_{name.upper()}_API_KEY"):
            build_provider(name, keyless)


def test_a_service_without_an_api_needs_a_folder_and_no_key(tmp_path):
    provider = build_provider(ProviderName.OUTSIDE, FolderEndpoint(f"{tmp_path}/"))
    assert (provider.name, provider.base_url) == ("outside", str(tmp_path))
    assert provider.limits.requests_per_job > 0 and provider.limits.bytes_per_job > 0
    for unset in (None, ""):
        with pytest.raises(ConfigurationError, match="Set EXTRACTION_OUTSIDE_FOLDER"):
            build_provider(ProviderName.OUTSIDE, FolderEndpoint(unset))
