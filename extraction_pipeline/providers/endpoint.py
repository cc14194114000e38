"""Where a provider is reached and with which credentials."""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.providers.limits import AccountLimits

_HEADER_VALUE = re.compile(r"[\x21-\x7e]+")
_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")


class AnthropicOutput(StrEnum):
    """How Anthropic is asked for an answer in the form of a schema."""

    FORMAT = "format"
    """`output_config.format`: enforced while the answer is made, for schemas within its limits."""
    TOOL = "tool"
    """The arguments of a tool that must be called: for any schema, and less strictly kept."""


class GeminiSchemaField(StrEnum):
    """Where a request to Gemini carries its schema. Reports disagree on which one works in a batch;
    a trial with the model in question decides."""

    RESPONSE_SCHEMA = "response_schema"
    """Gemini's own subset of OpenAPI, converted."""
    RESPONSE_JSON_SCHEMA = "response_json_schema"
    """The JSON Schema as it is."""


def settled_base_url(url: str) -> str:
    """A base URL in the form in which it is used. Raises `ConfigurationError`."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigurationError(
            "A provider's base URL is not an http or https URL.",
            remedy="Give it as https://host/path, as in https://api.openai.com/v1.",
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigurationError(
            f"The base URL at {host} holds credentials, a query or a fragment.",
            remedy="Give the plain URL, and the key through its own setting.",
        )
    return url.rstrip("/")


@dataclass(frozen=True)
class ProviderEndpoint:
    """Base URL, credentials, time-outs (seconds) and ways of speaking of one provider.

    `poll_timeout` is for small readings, many of which must fit into one sensor tick;
    `read_timeout` for uploads, create calls and results; `send_timeout` bounds a
    create call that carries its payload. `organization` and `project` are OpenAI's;
    `anthropic_output` to `infrai_capability` are those of the providers they are named after.

    Checked here, because the HTTP library quotes a bad header value, which would be the key, in its
    own error. Raises `ConfigurationError`, which quotes neither.
    """

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    organization: str | None = None
    project: str | None = None
    connect_timeout: float = 10.0
    read_timeout: float = 120.0
    poll_timeout: float = 5.0
    send_timeout: float = 900.0
    anthropic_output: AnthropicOutput = AnthropicOutput.FORMAT
    gemini_schema_field: GeminiSchemaField = GeminiSchemaField.RESPONSE_SCHEMA
    infrai_capability: str = "ai.chat"
    limits: AccountLimits = field(default_factory=AccountLimits)

    def __post_init__(self) -> None:
        """Refuse what could not be sent, and settle the base URL's form."""
        object.__setattr__(self, "base_url", settled_base_url(self.base_url))
        host = urlsplit(self.base_url).hostname
        for name in ("api_key", "organization", "project"):
            value: str | None = getattr(self, name) or None  # an empty variable means unset
            if value is not None and not _HEADER_VALUE.fullmatch(value):
                raise ConfigurationError(
                    f"The {name.replace('_', ' ')} for {host} holds a blank, a line break or a "
                    "character outside ASCII.",
                    remedy="Set it again without them.",
                )
            object.__setattr__(self, name, value)
        if min(self.connect_timeout, self.read_timeout, self.poll_timeout, self.send_timeout) <= 0:
            raise ConfigurationError(f"The time-outs for {host} have to be above zero.")

    @property
    def is_loopback(self) -> bool:
        """Whether calls stay on this machine."""
        return _LOOPBACK.fullmatch(urlsplit(self.base_url).hostname or "") is not None
