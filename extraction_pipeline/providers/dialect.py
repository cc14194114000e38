"""How one provider speaks on the level of HTTP, for the client that all of them share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from extraction_pipeline.providers.base import FailureKind


@dataclass(frozen=True)
class ErrorReading:
    """What the answer to a failed call says of itself.

    `code` is the provider's error code. `kind` is given where it is not what the status says, such
    as a lack of credit under 429, and `retry_after` (seconds) where the body tells it.
    """

    code: str | None = None
    kind: FailureKind | None = None
    retry_after: float | None = None


def _status_of_http(status: int, body: bytes) -> int:
    return status


def _nothing(body: bytes) -> None:
    return None


@dataclass(frozen=True)
class ProviderDialect:
    """`read_error` takes status, headers and body of a failed call, and never raises.

    `status_within` is for a provider that says "not done" under a good status: it gives the status
    that the answer means. `request_id_within` finds the request id in a body, where no header has
    it. Neither raises.
    """

    provider: str
    headers: Mapping[str, str] = field(repr=False)
    read_error: Callable[[int, Mapping[str, str], bytes], ErrorReading]
    request_id_header: str | None = None
    status_within: Callable[[int, bytes], int] = _status_of_http
    request_id_within: Callable[[bytes], str | None] = _nothing
