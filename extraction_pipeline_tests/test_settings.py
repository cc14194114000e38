"""The environment: every variable is read, and a wrong one is named."""

from pathlib import Path

import pytest

from extraction_pipeline.cli.environment import unknown_variables
from extraction_pipeline.collections.loader import load_collections
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.lifecycle.opening import endpoint_of
from extraction_pipeline.providers.endpoint import (
    AnthropicOutput,
    GeminiSchemaField,
    ProviderEndpoint,
)
from extraction_pipeline.providers.registry import ProviderName, build_provider
from extraction_pipeline.settings import (
    NEVER_EMPTY,
    SHIPPED_COLLECTIONS,
    load_settings,
    variables,
)


def test_defaults_need_no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_settings()
    assert settings.home == tmp_path / ".extraction_pipeline"
    assert settings.store_location == str(tmp_path / ".extraction_pipeline" / "store")
    assert settings.collections == (SHIPPED_COLLECTIONS,)
    assert settings.prices is None
    monkeypatch.setenv("EXTRACTION_PRICES", "prices.yaml")
    assert load_settings().prices == tmp_path / "prices.yaml"


def test_a_fourth_collection_beside_the_shipped_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "letters.yaml").write_text(
        "name: letters\ndocument_type: payer_note\nsource: {kind: folder, path: .}\n"
        "active_version: v1\nextraction_versions:\n  v1: {provider: local, model: rules-baseline}\n"
    )
    monkeypatch.setenv("EXTRACTION_COLLECTIONS", f"shipped:{tmp_path}")
    collections = load_collections(load_settings().collections, {})
    assert [collection.name for collection in collections] == [
        "care_protocols",
        "discharge_summaries",
        "letters",
        "payer_notes",
    ]


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
    ("wrong", "said"),
    [
        ('{"opnai": {}}', "EXTRACTION_LIMITS: opnai should be 'local'"),
        ('{"openai": {"jobs": 2}}', "EXTRACTION_LIMITS: openai.jobs is not known"),
        ('{"openai": {"jobs_at_once": 0}}', "EXTRACTION_LIMITS: openai.jobs_at_once should be"),
        ("{", "EXTRACTION_LIMITS: is not JSON"),
        ("[]", "EXTRACTION_LIMITS: should be a"),
    ],
)
def test_wrong_limits_are_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, wrong: str, said: str
) -> None:
    monkeypatch.setenv("EXTRACTION_LIMITS", wrong)
    with pytest.raises(ConfigurationError) as error:
        load_settings()
    assert str(error.value).startswith(said)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("EXTRACTION_NIGHTLY_CRON", "61 2 * * *"),
        ("EXTRACTION_NIGHTLY_CRON", "0 2 * *"),
        ("EXTRACTION_TIMEZONE", "Mars/Olympus"),
        ("EXTRACTION_NIGHTLY_START", "2026-13-45"),
        ("EXTRACTION_POLL_SECONDS", "soon"),
        ("EXTRACTION_POLL_SECONDS", "0"),
        ("EXTRACTION_POLL_MAX_SECONDS", "inf"),
        ("EXTRACTION_RESOLVE_GRACE_SECONDS", "nan"),
        ("EXTRACTION_READ_TIMEOUT", "-1"),
        ("EXTRACTION_LOCAL_BASE_URL", "127.0.0.1:8765"),
        ("EXTRACTION_OPENAI_BASE_URL", "https://secret@host/v1"),
        ("EXTRACTION_GEMINI_BASE_URL", "http://[::1"),
        ("EXTRACTION_STORE_URL", "s4://bucket"),
        ("EXTRACTION_STORE_URL", "memory://texts"),
        ("EXTRACTION_OUTSIDE_FOLDER", "s4://bucket"),
        ("EXTRACTION_OUTSIDE_FOLDER", "sftp://me:secret@host/shared"),
        ("EXTRACTION_COLLECTIONS", ":"),
        ("EXTRACTION_GEMINI_SCHEMA_FIELD", "somewhere"),
    ],
)
def test_each_wrong_value_is_one_line_that_names_its_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    monkeypatch.setenv("EXTRACTION_CONNECT_TIMEOUT", "x")
    with pytest.raises(ConfigurationError) as error:
        load_settings()
    lines = sorted(str(error.value).splitlines())
    assert [line.partition(": ")[0] for line in lines] == sorted(
        ["EXTRACTION_CONNECT_TIMEOUT", variable]
    )
    assert "secret" not in str(error.value)


def test_intervals_that_contradict_each_other_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXTRACTION_POLL_SECONDS", "60")
    monkeypatch.setenv("EXTRACTION_POLL_MAX_SECONDS", "30")
    with pytest.raises(ConfigurationError, match="POLL_MAX_SECONDS: is below"):
        load_settings()


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in variables() - set(NEVER_EMPTY):
        monkeypatch.setenv(variable, "")
    assert load_settings().model_fields_set <= {"home"}
    assert load_settings().database_url is None


def test_blanks_around_a_value_are_no_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret that is read from a file mostly ends with a line break."""
    monkeypatch.setenv("EXTRACTION_DATABASE_URL", "postgresql://user@host/name\n")
    monkeypatch.setenv("OPENAI_API_KEY", " sk-key \n")
    monkeypatch.setenv("EXTRACTION_LOCAL_BASE_URL", "http://127.0.0.1:9/v1\n")
    monkeypatch.setenv("EXTRACTION_HOME", " \n")
    settings = load_settings()
    assert settings.database_url is not None and settings.openai_api_key is not None
    assert settings.database_url.get_secret_value() == "postgresql://user@host/name"
    assert settings.openai_api_key.get_secret_value() == "sk-key"
    assert settings.local_base_url == "http://127.0.0.1:9/v1"
    assert settings.home == Path(".extraction_pipeline").absolute()


def test_a_variable_that_is_no_setting_is_told_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "letters.yaml").write_text("source: {path: '${EXTRACTION_WARD:-x}/letters'}\n")
    told = unknown_variables(
        {
            "EXTRACTION_TIMEZON": "UTC",
            "EXTRACTION_WARD": "/data",
            "EXTRACTION_CORPUS": "/data",
            "EXTRACTION_OPENAI_API_KEY": "secret",
            "EXTRACTIONS": "other",
        },
        [tmp_path, tmp_path / "nowhere"],
    )
    assert told == [
        "Warning: EXTRACTION_TIMEZON is no setting and has no effect. "
        "Did you mean EXTRACTION_TIMEZONE?"
    ]


def test_what_kubernetes_tells_of_services_is_no_setting_that_was_misspelt(tmp_path: Path) -> None:
    of_services = {
        f"{service}_{end}": "10.0.0.7"
        for service in ("EXTRACTION", "EXTRACTION_WEBHOOKS")
        for end in (
            *("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_GRPC", "PORT", "PORT_4266_TCP"),
            *("PORT_4266_TCP_ADDR", "PORT_4266_TCP_PORT", "PORT_4266_TCP_PROTO"),
        )
    }
    assert unknown_variables(of_services, [tmp_path]) == []
    (told,) = unknown_variables({**of_services, "EXTRACTION_POLL": "5"}, [tmp_path])
    assert "EXTRACTION_POLL is no setting" in told
    assert unknown_variables({"EXTRACTION_PORT": "80"}, [tmp_path]), "there is no such service"


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
    endpoint = endpoint_of(settings, ProviderName(name))
    assert isinstance(endpoint, ProviderEndpoint) and endpoint.api_key == "sk-secret"
    assert "sk-secret" not in repr(settings)


def test_a_providers_way_of_speaking_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXTRACTION_ANTHROPIC_OUTPUT", "tool")
    monkeypatch.setenv("EXTRACTION_GEMINI_SCHEMA_FIELD", "response_json_schema")
    monkeypatch.setenv("EXTRACTION_INFRAI_CAPABILITY", "ai.chat.v2")
    endpoint = endpoint_of(load_settings(), ProviderName.GEMINI)
    assert isinstance(endpoint, ProviderEndpoint)
    assert endpoint.anthropic_output is AnthropicOutput.TOOL
    assert endpoint.gemini_schema_field is GeminiSchemaField.RESPONSE_JSON_SCHEMA
    assert endpoint.infrai_capability == "ai.chat.v2"
    monkeypatch.setenv("EXTRACTION_ANTHROPIC_OUTPUT", "loud")
    with pytest.raises(ConfigurationError, match=r"ANTHROPIC_OUTPUT: .*'tool'"):
        load_settings()


@pytest.mark.parametrize("name", NEVER_EMPTY)
@pytest.mark.parametrize("value", ["", " "])
def test_an_empty_place_of_the_records_is_not_that_of_the_home(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """A copied example, or a secret that was not found, leaves a line without its value."""
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=f"{name}: set, and empty"):
        load_settings()
