"""Standard Webhooks, as OpenAI and Gemini (for hooks of a whole project) sign: an HMAC over id,
time and the exact bytes of the body, with one of several secrets."""

import re
import time
from collections.abc import Sequence

from standardwebhooks.webhooks import Webhook, WebhookVerificationError
from starlette.datastructures import Headers

from extraction_pipeline.webhooks.refusal import Refused, Why
from extraction_pipeline.webhooks.secret import keys_of
from extraction_pipeline.webhooks.signature import DELIVERY_ID, LetIn, only, usable_id

TIMESTAMP = "webhook-timestamp"
SIGNATURES = "webhook-signature"
MOST_SIGNATURES = 16

_SECONDS = re.compile(r"[0-9]{1,11}")
_V1 = re.compile(r"v1,[A-Za-z0-9+/]{43}=")


class StandardSignature:
    """The secrets of one sender; during a rotation there are two. `tolerance` is in seconds, and
    at most the five minutes of the scheme, which its package holds to."""

    def __init__(self, secrets: Sequence[str], tolerance: float) -> None:
        self._hooks = [Webhook(key) for secret in secrets for key in keys_of(secret)]
        self._tolerance = tolerance

    def check(self, headers: Headers, body: bytes) -> LetIn:
        """Raises `Refused`."""
        delivery_id = usable_id(only(headers, DELIVERY_ID))
        sent_at = only(headers, TIMESTAMP)
        # What is of another version or no signature at all is passed over, as in a rotation.
        signatures = [one for one in only(headers, SIGNATURES).split(" ") if _V1.fullmatch(one)]
        if delivery_id is None or not _SECONDS.fullmatch(sent_at) or not signatures:
            raise Refused(Why.NOT_SIGNED)
        if abs(time.time() - int(sent_at)) > self._tolerance:
            raise Refused(Why.STALE)
        signed = {
            DELIVERY_ID: delivery_id,
            TIMESTAMP: sent_at,
            SIGNATURES: " ".join(signatures[:MOST_SIGNATURES]),
        }
        fits = False
        for hook in self._hooks:
            fits |= _fits(hook, body, signed)  # all of them: how long it takes tells nothing
        if not fits:
            raise Refused(Why.WRONG_SIGNATURE)
        return LetIn(delivery_id)


def _fits(hook: Webhook, body: bytes, signed: dict[str, str]) -> bool:
    try:
        hook.verify(body, signed, json_parse=False)
    except (WebhookVerificationError, UnicodeDecodeError):
        return False  # it signs texts: what is no UTF-8 was signed by nobody
    return True
