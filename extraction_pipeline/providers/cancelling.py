"""Cancelling a job that is at its end already, which providers refuse in their own ways."""

from collections.abc import Callable

from extraction_pipeline.providers.base import JobStatus
from extraction_pipeline.providers.errors import CallRefused

_NOTHING_TO_CANCEL = (400, 409)


def end_instead(refusal: CallRefused, read: Callable[[], JobStatus]) -> JobStatus:
    """The job's end, where its cancel was refused because there was nothing left to cancel.

    Raises the refusal where that is not so.
    """
    if refusal.http_status not in _NOTHING_TO_CANCEL:
        raise refusal
    status = read()
    if not status.phase.is_end:
        raise refusal
    return status
