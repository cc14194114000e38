"""What an account may do with a provider, beside what the provider allows everybody."""

from dataclasses import replace

from pydantic import BaseModel, ConfigDict, PositiveInt

from extraction_pipeline.providers.base import ProviderLimits

BYTES_PER_TOKEN = 3
"""Of a payload, for what it counts for in the provider's queue: English text has about four, and
requests for more than was counted are refused, while a smaller job only waits less."""


class AccountLimits(BaseModel):
    """Limits that depend on the account; none is known where nothing is set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    requests_per_job: PositiveInt | None = None
    bytes_per_job: PositiveInt | None = None
    queued_tokens: PositiveInt | None = None
    """Input tokens in all jobs that have not ended."""
    jobs_at_once: PositiveInt | None = None
    """Jobs that have not ended."""


def narrowed(limits: ProviderLimits, account: AccountLimits) -> ProviderLimits:
    """The provider's limits with those of the account: the smaller of each two."""
    tokens = account.queued_tokens
    queued = _smaller(limits.queued_bytes, None if tokens is None else tokens * BYTES_PER_TOKEN)
    size = _smaller(_smaller(account.bytes_per_job, queued), limits.bytes_per_job)
    requests = _smaller(account.requests_per_job, limits.requests_per_job)
    return replace(
        limits,
        requests_per_job=requests or limits.requests_per_job,
        bytes_per_job=size or limits.bytes_per_job,
        queued_bytes=queued,
        jobs_at_once=_smaller(limits.jobs_at_once, account.jobs_at_once),
    )


def _smaller(one: int | None, other: int | None) -> int | None:
    return min((each for each in (one, other) if each is not None), default=None)
