"""Pausing: what one call is told (429, 503, 529) holds for all calls of its account.

Only decisions of a person (cancelling, adopting) call a provider all the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.ledger import pauses
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.providers.base import FailureKind
from extraction_pipeline.providers.errors import CallFailed, ProviderError
from extraction_pipeline.providers.names import ProviderName

ASKS_TO_WAIT = frozenset({429, 503, 529})

LONGEST_PAUSE_SECONDS = 3600.0
"""A provider may ask one job to wait for a day; its account is tried again after this."""


def asks_to_wait(error: ProviderError) -> bool:
    """Whether an answer speaks of the load or the rate of all calls, and not of this one."""
    return error.http_status in ASKS_TO_WAIT and error.kind is not FailureKind.ACCOUNT


@contextmanager
def heeding(pipeline: Pipeline, provider_name: str) -> Iterator[None]:
    """Make calls to a provider; an error that asks to wait pauses the account, and is passed on."""
    try:
        yield
    except ProviderError as error:
        if asks_to_wait(error):
            _pause(pipeline, provider_name, error)
        raise


def _pause(pipeline: Pipeline, provider_name: str, error: ProviderError) -> None:
    provider, settings = pipeline.provider(provider_name), pipeline.settings
    with pipeline.engine.begin() as connection:
        pauses.pause(
            connection,
            provider.account,
            provider.name,
            provider.base_url,
            error.http_status,
            asked=min(error.retry_after or 0.0, LONGEST_PAUSE_SECONDS),
            first=settings.poll_seconds,
            longest=settings.poll_max_seconds,
        )


def accounts(pipeline: Pipeline) -> list[str]:
    """The accounts that this process would call; a provider that is not set up has none."""
    found = []
    for name in ProviderName:
        try:
            found.append(pipeline.provider(name).account)
        except ConfigurationError:
            continue
    return found


def pauses_of(pipeline: Pipeline) -> list[str]:
    """The pauses that go on, in words."""
    with pipeline.engine.connect() as connection:
        return [told(one) for one in pauses.pauses(connection, accounts(pipeline))]


def paused(connection: Connection, pipeline: Pipeline, provider_name: str) -> str | None:
    """Why no call of this provider's account may begin now; `None` if one may."""
    provider = pipeline.provider(provider_name)
    found = pauses.pauses(connection, [provider.account])
    return told(found[0]) if found else None


def require_no_pause(pipeline: Pipeline, provider_name: str) -> None:
    """Raise `CallFailed` where no call may begin now."""
    with pipeline.engine.connect() as connection:
        why = paused(connection, pipeline, provider_name)
    if why is not None:
        raise CallFailed(f"{why[0].upper()}{why[1:]}.", kind=FailureKind.TRANSPORT)


def told(pause: pauses.Pause) -> str:
    """A pause in words."""
    return (
        f"{pause.provider} asked to wait (HTTP {pause.http_status}, {pause.refusals} in a row): no "
        f"call of this account before {pause.until:%Y-%m-%d %H:%M:%S %Z}"
    )
