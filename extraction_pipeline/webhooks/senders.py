"""Whose deliveries are let in: one way to check them for each provider that has a secret."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import SecretStr
from starlette.datastructures import Headers

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.providers.names import ProviderName
from extraction_pipeline.settings import Settings
from extraction_pipeline.webhooks.key_set import KeySet
from extraction_pipeline.webhooks.refusal import Refused, Why
from extraction_pipeline.webhooks.shared_secret import SharedSecret
from extraction_pipeline.webhooks.signature import LetIn, Signature, only
from extraction_pipeline.webhooks.signed_token import SignedToken, is_token
from extraction_pipeline.webhooks.standard import SIGNATURES, StandardSignature


def senders(settings: Settings) -> dict[ProviderName, Signature]:
    """How the deliveries of each provider are checked; one without a secret is not among them.

    Raises `ConfigurationError` if there is none at all.
    """
    tolerance = settings.webhook_tolerance_seconds
    shown = {
        ProviderName.ANTHROPIC: settings.anthropic_webhook_secret,
        ProviderName.INFRAI: settings.infrai_webhook_secret,
        ProviderName.OUTSIDE: settings.outside_webhook_secret,
    }
    signing = {
        ProviderName.LOCAL: settings.local_webhook_secret,
        ProviderName.OPENAI: settings.openai_webhook_secret,
    }
    found: dict[ProviderName, Signature] = {
        **{name: SharedSecret(_plain(secrets)) for name, secrets in shown.items() if secrets},
        **{
            name: StandardSignature(_plain(secrets), tolerance)
            for name, secrets in signing.items()
            if secrets
        },
    }
    gemini = _gemini(settings, tolerance)
    if gemini is not None:
        found[ProviderName.GEMINI] = gemini
    if not found:
        raise ConfigurationError(
            "No provider has a secret for its webhooks, so every delivery would be refused.",
            remedy="Set one, such as EXTRACTION_OPENAI_WEBHOOK_SECRET.",
        )
    return found


@dataclass(frozen=True)
class GeminiSignature:
    """Gemini signs in one of two ways, and which one is seen by the signature's form."""

    project: Signature | None
    job: Signature | None

    def check(self, headers: Headers, body: bytes) -> LetIn:
        """Raises `Refused` or `CannotTell`."""
        chosen = self.job if is_token(only(headers, SIGNATURES)) else self.project
        if chosen is None:
            raise Refused(Why.NO_SECRET)
        return chosen.check(headers, body)


def sender(known: Mapping[ProviderName, Signature], name: str) -> tuple[ProviderName, Signature]:
    """The provider of this name, and how its deliveries are checked. Raises `Refused`."""
    if name not in set(ProviderName):
        raise Refused(Why.UNKNOWN_PROVIDER)
    provider = ProviderName(name)
    if provider not in known:
        raise Refused(Why.NO_SECRET)
    return provider, known[provider]


def _gemini(settings: Settings, tolerance: float) -> GeminiSignature | None:
    secrets, audience = settings.gemini_webhook_secret, settings.gemini_webhook_audience
    if not secrets and audience is None:
        return None
    return GeminiSignature(
        project=StandardSignature(_plain(secrets), tolerance) if secrets else None,
        job=SignedToken(
            KeySet(settings.gemini_webhook_keys_url),
            audience,
            settings.gemini_webhook_issuer,
            tolerance,
        )
        if audience is not None
        else None,
    )


def _plain(secrets: tuple[SecretStr, ...]) -> list[str]:
    return [secret.get_secret_value() for secret in secrets]
