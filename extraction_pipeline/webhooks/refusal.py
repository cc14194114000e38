"""Why a delivery is not let in. The sender is never told which of these it was."""

import logging
import time
from collections import Counter
from enum import StrEnum

NOTED_SECONDS = 60.0

log = logging.getLogger(__name__)


class Why(StrEnum):
    """For our own log."""

    UNKNOWN_PROVIDER = "no such provider"
    NO_SECRET = "no secret is set for this provider"
    NOT_SIGNED = "it is not signed, or not in the form that is expected"
    WRONG_SIGNATURE = "its signature fits none of the secrets"
    WRONG_SECRET = "its secret is none of those that are set"
    STALE = "its time is too far from now"
    WRONG_TOKEN = "its token is not valid"


class Refused(Exception):
    """This delivery is not from whom it should be, or nobody can tell."""

    def __init__(self, why: Why) -> None:
        super().__init__(why.value)
        self.why = why


class CannotTell(Exception):
    """Whether it is genuine cannot be told now; the sender is asked to try again."""


class RefusalLog:
    """Lines about refusals: one a minute for each kind, whatever a stranger sends."""

    def __init__(self) -> None:
        self._said_at: dict[tuple[str, Why], float] = {}
        self._since: Counter[tuple[str, Why]] = Counter()

    def note(self, provider: str, why: Why) -> None:
        """Say it, or count it for the next line."""
        kind, now = (provider, why), time.monotonic()
        if now - self._said_at.get(kind, -NOTED_SECONDS) < NOTED_SECONDS:
            self._since[kind] += 1
            return
        self._said_at[kind] = now
        before = self._since.pop(kind, 0)
        more = f" (and {before} more since the last such line)" if before else ""
        log.warning("refused a delivery for %s: %s%s", provider, why.value, more)
