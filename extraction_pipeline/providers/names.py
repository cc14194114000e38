"""The names of the providers."""

from enum import StrEnum


class ProviderName(StrEnum):
    """The names that collections and the ledger use."""

    LOCAL = "local"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
    INFRAI = "infrai"
    OUTSIDE = "outside"
