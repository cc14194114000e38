"""What a failed HTTP call means: pure functions from statuses, headers and exceptions to kinds."""

import math
import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import requests
import urllib3

from extraction_pipeline.providers.base import FailureKind
from extraction_pipeline.providers.errors import bounded_wait

LONGEST_CODE = 64
_CODE = re.compile(
    r"[a-z][a-z0-9]*(?:[_.-][a-z0-9]+)*|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*|(?:[A-Z][a-z0-9]+)+|[0-9]{1,9}"
)
_TOKEN = re.compile(r"[A-Za-z0-9_.:/+=-]{1,200}")

# Statuses that tell, whoever sent them, that the request as such was turned down. Any other 4xx on
# a create call is not trusted to (409 and 425 may speak of a twin request that did go through).
_REFUSALS = frozenset({400, 401, 402, 403, 404, 405, 406, 410, 411, 413, 414, 415, 422, 429, 431})


def proves_refusal(status: int) -> bool:
    """Whether this answer to a create call proves that nothing was created."""
    return status in _REFUSALS


def failure_kind(status: int, code: str | None, account_codes: frozenset[str]) -> FailureKind:
    """Who may act next after an answer that is not a success.

    `account_codes` are the provider's codes for "no credit" and the like, which some send with
    statuses that mean something else (OpenAI: `insufficient_quota` with 429).
    """
    if code in account_codes or status in (401, 402, 403):
        return FailureKind.ACCOUNT
    if status in (408, 409, 425, 429) or status < 400 or status >= 500:
        return FailureKind.TRANSPORT
    return FailureKind.REJECTED


def remedy_for(status: int, kind: FailureKind) -> str | None:
    """What a person can do about it, where there is something."""
    if 300 <= status < 400:
        return "Redirects are not followed; set the provider's base URL to the final address."
    if status == 401:
        return "Check the provider's API key."
    if status == HTTPStatus.PAYMENT_REQUIRED:
        return "Check the account's credit with the provider."
    if kind is FailureKind.ACCOUNT:
        return "Check the provider's API key, and the account's credit, limits and permissions."
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return "Send fewer documents in a job, or leave out the largest."
    return None


def safe_token(value: object) -> str | None:
    """An id for logs: as it is if it looks like one, else `None` (it may be free text)."""
    return value if isinstance(value, str) and _TOKEN.fullmatch(value) else None


def safe_code(value: object) -> str | None:
    """A code or state for logs, in one of the forms in which these are written: `rate_limit`,
    `RATE_LIMIT`, `RateLimit` or a number. Anything else may be a name, and is `None`."""
    fits = isinstance(value, str) and len(value) <= LONGEST_CODE and _CODE.fullmatch(value)
    return value if isinstance(value, str) and fits else None


def retry_after_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds until the provider wants to be asked again: `retry-after-ms`, else `Retry-After` in
    seconds or as a date. `None` without a usable wish; never negative, at most a day."""
    seconds = _number(headers.get("retry-after-ms"), scale=0.001)
    value = headers.get("retry-after")
    if seconds is None:
        seconds = _number(value, scale=1.0)
    if seconds is None and value:
        try:
            date = parsedate_to_datetime(value)
            if date.tzinfo is None:
                date = date.replace(tzinfo=UTC)
            seconds = (date - now).total_seconds()
        except (ValueError, OverflowError):
            return None
    return bounded_wait(seconds)


def _number(value: str | None, scale: float) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number * scale if math.isfinite(number) else None


def nothing_was_sent(error: BaseException) -> bool:
    """Whether this exception proves that the request never left: no connection came about.

    True for a name that does not resolve, a refused or timed-out TCP connect, a certificate that
    was not accepted, and a proxy that could not be reached or did not open the tunnel. A time-out
    in the TLS handshake is reported by urllib3 like one after sending, so it proves nothing.
    """
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return True
    reason = _reason(error)
    if isinstance(error, requests.exceptions.ProxyError):
        return isinstance(reason, urllib3.exceptions.ProxyError)
    if isinstance(error, requests.exceptions.SSLError):
        return any(isinstance(part, ssl.SSLCertVerificationError) for part in _parts(reason))
    return isinstance(reason, urllib3.exceptions.NewConnectionError)


def describe(error: BaseException) -> str:
    """The failure in a few fixed words. The exception's own text holds the URL and is not used."""
    reason = _reason(error)
    if isinstance(error, requests.exceptions.ConnectTimeout):
        return "no connection within the time-out"
    if isinstance(error, requests.exceptions.Timeout):
        return "no answer within the time-out"
    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy could not be used"
    if isinstance(error, requests.exceptions.SSLError):
        return "the TLS connection failed"
    if isinstance(reason, urllib3.exceptions.NameResolutionError):
        return "the host name does not resolve"
    if isinstance(reason, urllib3.exceptions.NewConnectionError):
        return "no connection could be made"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the answer was cut short"
    return "the connection broke"


def _reason(error: BaseException) -> object:
    """urllib3's own error, which requests wraps."""
    inner = error.args[0] if error.args else None
    return inner.reason if isinstance(inner, urllib3.exceptions.MaxRetryError) else inner


def _parts(error: object) -> tuple[object, ...]:
    return (error, *error.args) if isinstance(error, BaseException) else ()
