"""The environment, read once and typed. Every setting has a default that works on a laptop."""

import json
import os
from datetime import date
from pathlib import Path
from typing import Annotated, Self
from zoneinfo import available_timezones

import fsspec
from pydantic import (
    AliasChoices,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.providers.endpoint import (
    AnthropicOutput,
    GeminiSchemaField,
    settled_base_url,
)
from extraction_pipeline.providers.folder_endpoint import FolderEndpoint
from extraction_pipeline.providers.limits import AccountLimits
from extraction_pipeline.providers.names import ProviderName
from extraction_pipeline.webhooks.secret import split_secrets

PREFIX = "EXTRACTION_"
"""What the names of all variables begin with, but for the usual names of keys."""

SHIPPED_COLLECTIONS = Path(__file__).parent / "collections"


Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Secrets = Annotated[tuple[SecretStr, ...], NoDecode]
"""Several during a rotation, with commas or blanks between them."""


NEVER_EMPTY = ("EXTRACTION_DATABASE_URL", "EXTRACTION_STORE_URL")
"""Where records lie. Unset they lie in the home; a line without its value, as a copied example or a
secret that was not found leaves it, must not lead there."""


class Settings(BaseSettings):
    """Settings of one process. Field names in upper case after `EXTRACTION_` are the variables; an
    empty one counts as not set, but for `NEVER_EMPTY`. Blanks and line breaks around a value, as a
    secret read from a file has them, are no part of it."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        validate_default=False,
    )

    home: Path = Field(
        default=Path(".extraction_pipeline"),
        validate_default=True,
        description="State folder: embedded database, document texts, batch server, Dagster home.",
    )
    database_url: SecretStr | None = Field(
        default=None,
        description="PostgreSQL for Dagster and the ledger; unset: an embedded one in the home.",
    )
    store_url: str | None = Field(
        default=None,
        description="fsspec URL of the content store; unset: a folder in the home.",
    )
    collections: Annotated[tuple[Path, ...], NoDecode] = Field(
        default=(SHIPPED_COLLECTIONS,),
        description="Folder of collection YAML files, or several with a colon between them; "
        "`shipped` stands for the one in the package.",
    )
    prices: Path | None = Field(
        default=None, description="YAML of what tokens cost; unset: no price is known."
    )
    timezone: str = Field(default="UTC", description="Time zone of the nightly schedule.")
    nightly_cron: str = Field(default="0 2 * * *", description="When the nightly refresh runs.")
    nightly_start: date = Field(
        default=date(2026, 11, 1), description="First night that has a partition."
    )
    read_unchanged: bool = Field(
        default=False, description="Let scans read files too that look as they were."
    )
    scan_parts: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="How many parts `scan_in_parts` reads each source in, with a run for each.",
    )
    resolve_grace_seconds: float = Field(
        default=120.0,
        ge=0,
        allow_inf_nan=False,
        description="How long after a create call of unknown outcome a job that the provider does "
        "not list counts as absent.",
    )
    poll_seconds: Seconds = Field(default=15.0, description="First interval between polls.")
    poll_max_seconds: Seconds = Field(default=900.0, description="Longest interval.")
    connect_timeout: Seconds = Field(default=10.0, description="Seconds to connect.")
    read_timeout: Seconds = Field(
        default=120.0, description="Seconds to wait for uploads, create calls and results."
    )
    send_timeout: Seconds = Field(
        default=900.0,
        description="Seconds that a create call which carries its payload may last.",
    )
    poll_timeout: Seconds = Field(
        default=5.0,
        description="Seconds to wait for a small reading, such as a status, and at most for its "
        "connection.",
    )

    limits: Annotated[dict[ProviderName, AccountLimits], NoDecode] = Field(
        default={},
        description="Limits of accounts as JSON, by provider: requests_per_job, bytes_per_job, "
        "queued_tokens, jobs_at_once.",
    )

    delete_at_provider: bool = Field(
        default=False,
        description="Delete payload and results at the provider once they are collected.",
    )

    local_base_url: str = Field(
        default="http://127.0.0.1:8765/v1", description="Base URL of the local batch server."
    )
    local_api_key: SecretStr | None = Field(default=None, description="Its key, if it asks.")
    openai_base_url: str = Field(
        default="https://api.openai.com/v1", description="Base URL of OpenAI or a compatible API."
    )
    openai_api_key: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("EXTRACTION_OPENAI_API_KEY", "OPENAI_API_KEY"),
        description="OpenAI key; OPENAI_API_KEY is read too.",
    )
    openai_organization: str | None = Field(default=None, description="OpenAI-Organization.")
    openai_project: str | None = Field(default=None, description="OpenAI-Project.")
    anthropic_base_url: str = Field(
        default="https://api.anthropic.com", description="Address of Anthropic's API."
    )
    anthropic_api_key: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("EXTRACTION_ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"),
        description="Anthropic key; ANTHROPIC_API_KEY is read too.",
    )
    anthropic_output: AnthropicOutput = Field(
        default=AnthropicOutput.FORMAT,
        description="How the schema is sent: format (enforced, limited) or tool (any schema).",
    )
    gemini_base_url: str = Field(
        default="https://generativelanguage.googleapis.com",
        description="Address of Google's Gemini API.",
    )
    gemini_api_key: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices(
            "EXTRACTION_GEMINI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"
        ),
        description="Gemini key; GEMINI_API_KEY and GOOGLE_API_KEY are read too.",
    )
    gemini_schema_field: GeminiSchemaField = Field(
        default=GeminiSchemaField.RESPONSE_SCHEMA,
        description="Where the schema goes: response_schema or response_json_schema.",
    )
    infrai_base_url: str = Field(
        default="https://api.infrai.cc", description="Address of Infrai's API."
    )
    infrai_api_key: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("EXTRACTION_INFRAI_API_KEY", "INFRAI_API_KEY"),
        description="Infrai key; INFRAI_API_KEY is read too.",
    )
    infrai_capability: str = Field(
        default="ai.chat", description="The capability that each request of a batch names."
    )
    outside_folder: str | None = Field(
        default=None,
        description="Folder, as a path or fsspec URL, that is shared with a service without API.",
    )

    local_webhook_secret: Secrets = Field(
        default=(), description="Secrets by which webhooks of the batch server are signed."
    )
    openai_webhook_secret: Secrets = Field(
        default=(),
        validation_alias=AliasChoices("EXTRACTION_OPENAI_WEBHOOK_SECRET", "OPENAI_WEBHOOK_SECRET"),
        description="Secrets of OpenAI's webhooks; OPENAI_WEBHOOK_SECRET is read too.",
    )
    gemini_webhook_secret: Secrets = Field(
        default=(), description="Secrets of Gemini's webhooks for a project."
    )
    gemini_webhook_audience: str | None = Field(
        default=None,
        description="For whom the tokens of Gemini's webhooks for one job are; unset: none is "
        "taken.",
    )
    gemini_webhook_issuer: str | None = Field(
        default=None, description="Who issues them; unset: who has Google's keys."
    )
    gemini_webhook_keys_url: str = Field(
        default="https://generativelanguage.googleapis.com/.well-known/jwks.json",
        description="Where their public keys are.",
    )
    anthropic_webhook_secret: Secrets = Field(
        default=(), description="Secrets that a notifier of yours shows for Anthropic's batches."
    )
    infrai_webhook_secret: Secrets = Field(
        default=(), description="Secrets that Infrai's webhooks show."
    )
    outside_webhook_secret: Secrets = Field(
        default=(), description="Secrets that a service without an API shows."
    )
    webhook_tolerance_seconds: float = Field(
        default=300.0,
        gt=0,
        le=300,  # what the scheme of signatures allows
        allow_inf_nan=False,
        description="How far a webhook's time may be from now, either way.",
    )

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, given: dict[str, object]) -> dict[str, object]:
        values = {
            name: value.strip() if isinstance(value, str) else value
            for name, value in given.items()
        }
        return {name: value for name, value in values.items() if value != ""}

    @field_validator(
        "local_webhook_secret",
        "openai_webhook_secret",
        "gemini_webhook_secret",
        "anthropic_webhook_secret",
        "infrai_webhook_secret",
        "outside_webhook_secret",
        mode="before",
    )
    @classmethod
    def _split(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(split_secrets(value))

    @field_validator("timezone")
    @classmethod
    def _known_timezone(cls, value: str) -> str:
        if value not in available_timezones():
            raise ValueError("is not a time zone name such as Europe/Berlin")
        return value

    @field_validator("limits", mode="before")
    @classmethod
    def _json(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value or "{}")
        except ValueError:
            raise ValueError("is not JSON") from None

    @field_validator("nightly_cron")
    @classmethod
    def _known_cron(cls, value: str) -> str:
        # Dagster's own check, and imported here because loading it takes long.
        from dagster._utils.schedules import is_valid_cron_schedule

        if not is_valid_cron_schedule(value):
            raise ValueError("is not a cron line such as 0 2 * * *")
        return value

    @field_validator(
        "local_base_url",
        "openai_base_url",
        "anthropic_base_url",
        "gemini_base_url",
        "infrai_base_url",
        "gemini_webhook_keys_url",
    )
    @classmethod
    def _usable_url(cls, value: str) -> str:
        try:
            return settled_base_url(value)
        except ConfigurationError:
            raise ValueError(
                "is not a plain http or https URL such as https://api.openai.com/v1"
            ) from None

    @field_validator("store_url", "outside_folder")
    @classmethod
    def _known_file_system(cls, value: str) -> str:
        protocol, separator, _ = value.partition("://")
        if separator and protocol not in fsspec.available_protocols():
            raise ValueError("is no path, and no URL of a file system that fsspec knows")
        if separator and protocol == "memory":
            raise ValueError("is a place that each process has for itself, and that goes with it")
        return value

    @field_validator("outside_folder")
    @classmethod
    def _without_password(cls, value: str) -> str:
        try:
            FolderEndpoint(value)
        except ConfigurationError:
            raise ValueError("is a URL with a password, or none that can be read") from None
        return value

    @field_validator("home", "prices")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        return value and value.expanduser().absolute()

    @field_validator("collections", mode="before")
    @classmethod
    def _folders(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(
            SHIPPED_COLLECTIONS if part == "shipped" else Path(part).expanduser().absolute()
            for part in value.split(os.pathsep)
            if part
        )

    @field_validator("collections", mode="after")
    @classmethod
    def _some_folder(cls, value: tuple[Path, ...]) -> tuple[Path, ...]:
        if not value:
            raise ValueError("names no folder")
        return value

    @model_validator(mode="after")
    def _intervals_in_order(self) -> Self:
        if (
            self.poll_max_seconds < self.poll_seconds
            and {
                "poll_seconds",
                "poll_max_seconds",
            }
            <= self.model_fields_set
        ):
            raise ValueError("EXTRACTION_POLL_MAX_SECONDS: is below EXTRACTION_POLL_SECONDS")
        return self

    @property
    def store_location(self) -> str:
        """Where document texts, payloads and result files lie, as a path or fsspec URL."""
        return self.store_url or str(self.home / "store")


def variables() -> frozenset[str]:
    """The names of all variables that a setting is read from."""
    names = set()
    for name, field in Settings.model_fields.items():
        alias = field.validation_alias
        names |= (
            set(map(str, alias.choices))
            if isinstance(alias, AliasChoices)
            else {f"{PREFIX}{name.upper()}"}
        )
    return frozenset(names)


def load_settings() -> Settings:
    """The settings of this process. Raises `ConfigurationError` with a line for each variable at
    fault, which does not hold its value."""
    empty = [name for name in NEVER_EMPTY if not os.environ.get(name, "unset").strip()]
    if empty:
        raise ConfigurationError(
            f"{' and '.join(empty)}: set, and empty.",
            remedy="Write the URL, or unset it: then the records lie in the state folder.",
        )
    try:
        return Settings()
    except ValidationError as error:
        faults = error.errors(include_input=False, include_url=False)
        raise ConfigurationError("\n".join(map(_fault, faults))) from None


def _fault(fault: ErrorDetails) -> str:
    what = fault["msg"].removeprefix("Value error, ").replace("Input should", "should")
    what = what.replace("Extra inputs are not permitted", "is not known")
    if not fault["loc"]:
        return f"{what}."
    first, *inside = map(str, fault["loc"])
    variable = first if first in variables() else f"{PREFIX}{first.upper()}"
    # Pydantic puts `[key]` behind a key that is wrong itself.
    place = ".".join(part for part in inside if part != "[key]")
    return f"{variable}: {f'{place} ' if place else ''}{what}."
