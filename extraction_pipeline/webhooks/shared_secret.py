"""A secret that the sender shows in a header, for senders without a scheme of signatures.

It may come as `X-Webhook-Secret`, as a bearer token, or as the password of basic authentication:
what is left to a sender that can only be given a URL (`https://any:secret@host/…`).
"""

import base64
import hashlib
import hmac
from collections.abc import Sequence

from starlette.datastructures import Headers

from extraction_pipeline.webhooks.refusal import Refused, Why
from extraction_pipeline.webhooks.signature import DELIVERY_ID, LetIn, only, usable_id

SECRET = "x-webhook-secret"
AUTHORIZATION = "authorization"


class SharedSecret:
    """The secrets of one sender; during a rotation there are two."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._secrets = [secret.encode() for secret in secrets]

    def check(self, headers: Headers, body: bytes) -> LetIn:
        """Raises `Refused`. Without an id of the sender's, the same bytes are the same delivery,
        and whether it is sent once more or announced once more nobody can tell."""
        shown = _shown(headers)
        fits = False
        for secret in self._secrets:
            fits |= hmac.compare_digest(shown, secret)  # all of them, so that time tells nothing
        if not fits:
            raise Refused(Why.WRONG_SECRET)
        given = usable_id(headers.get(DELIVERY_ID))
        if given is not None:
            return LetIn(given)
        return LetIn(f"sha256:{hashlib.sha256(body).hexdigest()}", by_content=True)


def _shown(headers: Headers) -> bytes:
    if SECRET in headers:
        return only(headers, SECRET).encode("latin-1")
    scheme, _, value = only(headers, AUTHORIZATION).partition(" ")
    match scheme.lower():
        case "bearer":
            return value.encode("latin-1")
        case "basic":
            try:
                return base64.b64decode(value, validate=True).partition(b":")[2]
            except ValueError:
                pass
    raise Refused(Why.NOT_SIGNED)
