"""How long to wait before a job is looked at again. Pure."""

import random

SUBMIT_RETRY_SECONDS = 30.0

RUN_AGAIN_SECONDS = 7.5
"""Doubled with each run that was asked for, until another one is, where the last left its job
undone."""
LONGEST_RUN_AGAIN_SECONDS = 900.0

READINGS_PER_INTERVAL = 15
"""Of all jobs of one account, in each first interval: one a second, with the default one."""


def next_poll(
    polls: int,
    troubles: int,
    *,
    first: float,
    longest: float,
    retry_after: float | None = None,
    open_jobs: int = 1,
) -> float:
    """Seconds to the next reading of a job after `polls` readings.

    The interval grows by half with each reading and doubles with each failed call in a row, up to
    `longest`; a tenth of jitter keeps jobs apart. Where `open_jobs` of an account are waited for,
    it is at least what keeps their readings together within `READINGS_PER_INTERVAL`. What the
    provider asks for is a lower bound.
    """
    grown = first * (1.5 ** min(polls, 40)) * (2.0 ** min(troubles, 20))
    spread = min(first, longest) * open_jobs / READINGS_PER_INTERVAL
    wait = max(min(grown, longest), spread) * random.uniform(0.9, 1.1)
    return max(wait, retry_after or 0.0)
