"""Secrets of webhooks as an operator writes them, and the keys that they stand for."""

import base64
import re
from collections.abc import Sequence

PREFIX = "whsec_"
"""Of a secret in the form of Standard Webhooks; base64 follows."""
SHORTEST = 16
"""Characters, without the prefix."""


def split_secrets(text: str) -> list[str]:
    """The secrets in a setting, with commas or blanks between them. Raises `ValueError`, which
    quotes none, for one that is too short to keep anybody out or cannot be read."""
    secrets = [part for part in re.split(r"[,\s]+", text) if part]
    for secret in secrets:
        bare = secret.removeprefix(PREFIX)
        if not bare.isascii() or not bare.isprintable():
            raise ValueError("holds a secret with characters that no header can carry")
        if len(bare) < SHORTEST:
            raise ValueError(f"holds a secret of fewer than {SHORTEST} characters")
        if not keys_of(secret):
            raise ValueError(f"holds a secret with {PREFIX} before what is no base64")
    return secrets


def keys_of(secret: str) -> Sequence[bytes]:
    """The keys that a secret may stand for. With its prefix it is base64. Without, OpenAI takes it
    as it is, and Gemini for base64: who does not know the secret knows neither."""
    bare = secret.removeprefix(PREFIX)
    decoded = _decoded(bare)
    if bare == secret:
        return [secret.encode(), *decoded]
    return decoded


def _decoded(text: str) -> list[bytes]:
    try:
        return [base64.b64decode(text + "=" * (-len(text) % 4), validate=True)]
    except ValueError:
        return []
