"""Errors of calls to a provider. Messages hold a status, a code and a request id, no bodies."""

import math

from extraction_pipeline.errors import ExtractionPipelineError
from extraction_pipeline.providers.base import FailureKind

GONE = frozenset({404, 410})
"""Statuses of a provider that does not know, or not any more, what it was asked for."""

LONGEST_RETRY_AFTER = 24 * 3600.0
"""Seconds. A provider's longer wish is cut to this: a broken one must not park work for good."""


def bounded_wait(seconds: float | None) -> float | None:
    """A wish to be asked again later, in bounds; `None` for one that is no number."""
    if seconds is None or math.isnan(seconds):
        return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER)


class ProviderError(ExtractionPipelineError):
    """A call failed. `kind` says who may act next, `retry_after` (seconds) when, if the provider
    said so. `code` is the provider's own error code, never its message about a document."""

    exit_code = 5

    def __init__(
        self,
        message: str,
        *,
        kind: FailureKind,
        remedy: str | None = None,
        http_status: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.kind = kind
        self.http_status = http_status
        self.code = code
        self.request_id = request_id
        self.retry_after = bounded_wait(retry_after)

    @property
    def gone(self) -> bool:
        """Whether the provider says that it does not know what it was asked for."""
        return self.http_status in GONE


class CallRefused(ProviderError):
    """The provider answered that it did not do it (400, 401, 402, 403, 404, 409, 413, 429)."""


class CallFailed(ProviderError):
    """No usable answer to a call that is safe to repeat (time-out, dropped connection, 5xx)."""


class OutcomeUnknown(ProviderError):
    """A create call whose outcome is not known. The job may exist; only a search can tell."""
