"""Gemini's hooks of a single job: a token that Google signs, in place of a signature.

No source says whether its claims hold the event or the body does, nor which issuer it names. So an
event in the claims is preferred, and the issuer is compared where the operator gives it. A token
says for whom it is, always; without an end of its own it must be fresh.
"""

import hashlib
import re
import time
from typing import Any

import jwt
from jwt.exceptions import PyJWTError
from starlette.datastructures import Headers

from extraction_pipeline.webhooks.key_set import KeySet
from extraction_pipeline.webhooks.refusal import Refused, Why
from extraction_pipeline.webhooks.signature import LetIn, only, usable_id
from extraction_pipeline.webhooks.standard import SIGNATURES

ALGORITHM = "RS256"
LONGEST = 8 * 1024
_TOKEN = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)


class SignedToken:
    """Tokens by the keys of a set, for an audience. `tolerance` is in seconds."""

    def __init__(self, keys: KeySet, audience: str, issuer: str | None, tolerance: float) -> None:
        self._keys = keys
        self._audience = audience
        self._issuer = issuer
        self._tolerance = tolerance

    def check(self, headers: Headers, body: bytes) -> LetIn:
        """Raises `Refused`, or `CannotTell` while the keys cannot be read."""
        token = only(headers, SIGNATURES)
        if not is_token(token):
            raise Refused(Why.NOT_SIGNED)
        claims = self._claims(token)
        self._require_fresh(claims)
        # With the body: two jobs that end in one second may come with the same token.
        digest = hashlib.sha256(token.encode() + b"." + body).hexdigest()
        return LetIn(
            delivery_id=usable_id(claims.get("jti")) or f"sha256:{digest}",
            claims=claims if isinstance(claims.get("data"), dict) else None,
        )

    def _claims(self, token: str) -> dict[str, Any]:
        try:
            header = jwt.get_unverified_header(token)
            name = header.get("kid")
            # Before a key is looked for: what is signed otherwise is no reason to read any.
            if header.get("alg") != ALGORITHM or not isinstance(name, str):
                raise Refused(Why.NOT_SIGNED)
            key = self._keys.key(name)
            if key is None:
                raise Refused(Why.WRONG_TOKEN)
            return jwt.decode(
                token,
                key,
                algorithms=[ALGORITHM],
                audience=self._audience,
                issuer=self._issuer,
                leeway=self._tolerance,
                options={"require": ["aud"]},
            )
        except (PyJWTError, ValueError, TypeError, RecursionError):
            raise Refused(Why.WRONG_TOKEN) from None

    def _require_fresh(self, claims: dict[str, Any]) -> None:
        """The package has looked at the end, where there is one."""
        made_at = claims.get("iat")
        if "exp" in claims:
            return
        if not isinstance(made_at, int | float) or not (time.time() - made_at <= self._tolerance):
            raise Refused(Why.STALE)


def is_token(value: str) -> bool:
    """Whether a signature has the form of a token."""
    return len(value) <= LONGEST and _TOKEN.fullmatch(value) is not None
