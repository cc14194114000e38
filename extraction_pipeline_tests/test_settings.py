"""The environment: every variable is read, and a wrong one is named."""

from pathlib import Path

import pytest

from extraction_pipeline.collections.loader import load_collections
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.lifecycle.opening import endpoint_of
from extraction_pipeline.providers.endpoint import AnthropicOutput, GeminiSchemaField
from extraction_pipeline.providers.registry import ProviderName, build_provider
from extraction_pipeline.settings import SHIPPED_COLLECTIONS, load_settings


def test_defaults_need_no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_settings()
    assert settings.home == tmp_path / ".extraction_pipeline"
    assert settings.store_location == str(tmp_path / ".extraction_pipeline" / "store")
    assert settings.collections == (SHIPPED_COLLECTIONS,)


def test_a_fourth_collection_beside_the_shipped_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "letters.yaml").write_text(
        "name: letters\ndocument_type: payer_note\nsource: {kind: folder, path: .}\n"
        "active_version: v1\nextraction_versions:\n  v1: {provider: local, model: rules-baseline,"
        " prices: {input: 2, output: 8}}\n"
    )
    monkeypatch.setenv("EXTRACTION_COLLECTIONS", f"shipped:{tmp_path}")
    collections = load_collections(load_settings().collections, {})
    assert [collection.name for collection in collections] == [
        "care_protocols",
        "discharge_summaries",
        "letters",
        "payer_notes",
    ]
    assert collections[2].active.prices.cost(500_000, 250_000) == 3.0


def test_a_wrong_setting_is_named_and_its_value_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EXTRACTION_TIMEZONE", "Mars/Olympus")
    monkeypatch.setenv("EXTRACTION_POLL_SECONDS", "-1")
    with pytest.raises(ConfigurationError) as error:
        load_settings()
    assert "EXTRACTION_TIMEZONE" in str(error.value)
    assert "EXTRACTION_POLL_SECONDS" in str(error.value)
    assert "Olympus" not in str(error.value)


def test_limits_of_an_account_narrow_those_of_its_provider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(
        "EXTRACTION_LIMITS", '{"local": {"queued_tokens": 100, "requests_per_job": 7}}'
    )
    settings = load_settings()
    local = build_provider(ProviderName.LOCAL, endpoint_of(settings, ProviderName.LOCAL))
    assert (local.limits.requests_per_job, local.limits.bytes_per_job) == (7, 300)
    assert (local.limits.queued_bytes, local.limits.jobs_at_once) == (300, None)
    assert endpoint_of(settings, ProviderName.OPENAI).limits.queued_tokens is None


@pytest.mark.parametrize(
    "wrong", ['{"opnai": {}}', '{"openai": {"jobs": 2}}', '{"openai": {"jobs_at_once": 0}}', "{"]
)
def test_wrong_limits_are_refused_by_name(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("EXTRACTION_LIMITS", wrong)
    with pytest.raises(ConfigurationError, match="EXTRACTION_LIMITS"):
        load_settings()


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
        ("gemini", "GOOGLE_API_KEY"),
        ("gemini", "EXTRACTION_GEMINI_API_KEY"),
        ("infrai", "INFRAI_API_KEY"),
    ],
)
def test_a_key_is_read_by_its_usual_name_and_never_shows(
    monkeypatch: pytest.MonkeyPatch, name: str, variable: str
) -> None:
    monkeypatch.setenv(variable, "sk-secret")
    settings = load_settings()
    assert endpoint_of(settings, ProviderName(name)).api_key == "sk-secret"
    assert "sk-secret" not in repr(settings)


def test_a_providers_way_of_speaking_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXTRACTION_ANTHROPIC_OUTPUT", "tool")
    monkeypatch.setenv("EXTRACTION_GEMINI_SCHEMA_FIELD", "response_json_schema")
    monkeypatch.setenv("EXTRACTION_INFRAI_CAPABILITY", "ai.chat.v2")
    endpoint = endpoint_of(load_settings(), ProviderName.GEMINI)
    assert endpoint.anthropic_output is AnthropicOutput.TOOL
    assert endpoint.gemini_schema_field is GeminiSchemaField.RESPONSE_JSON_SCHEMA
    assert endpoint.infrai_capability == "ai.chat.v2"
    monkeypatch.setenv("EXTRACTION_ANTHROPIC_OUTPUT", "loud")
    with pytest.raises(ConfigurationError, match=r"ANTHROPIC_OUTPUT: .*'tool'"):
        load_settings()
