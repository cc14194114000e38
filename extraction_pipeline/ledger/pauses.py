"""Accounts that asked to be left alone: no call of theirs is begun before a pause has ended.

A pause belongs to the account (provider, address and key, as one hash), not to the job whose call
was refused, and every process reads it in the statement by which it looks for work.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, text

NOT_PAUSED = """NOT EXISTS (
    SELECT FROM extraction.account_pauses p
    WHERE p.provider = j.provider AND p.account = ANY(:accounts) AND p.until > now())"""
"""Condition on a job `j`; `accounts` are those that this process would call."""

LASTING_SECONDS = 3600.0
"""A row of pauses that is older than this needs a person's eye."""


@dataclass(frozen=True)
class Pause:
    """A pause that goes on: since when, in a row of `refusals`, and until when at least."""

    account: str
    provider: str
    base_url: str
    refusals: int
    http_status: int | None
    since: datetime
    until: datetime
    lasting: bool


def pause(
    connection: Connection,
    account: str,
    provider: str,
    base_url: str,
    http_status: int | None,
    *,
    asked: float,
    first: float,
    longest: float,
) -> None:
    """Pause an account for the seconds that it `asked` for, and at least for `first`, which
    doubles with each pause in a row up to `longest`.

    A refusal within a pause is of a call that was under way, and makes it longer only where more is
    asked for. A row ends when nothing was refused for `longest` after a pause.
    """
    connection.execute(
        text("""
            INSERT INTO extraction.account_pauses AS p
                (account, provider, base_url, refusals, http_status, since, until)
            VALUES (:account, :provider, :base_url, 1, :status, now(),
                    now() + greatest(:asked, :first))
            ON CONFLICT (account) DO UPDATE SET
                http_status = excluded.http_status,
                refusals = CASE WHEN p.until > now() THEN p.refusals
                                WHEN p.until > now() - :longest THEN p.refusals + 1 ELSE 1 END,
                since = CASE WHEN p.until > now() - :longest THEN p.since ELSE now() END,
                until = CASE
                    WHEN p.until > now() THEN greatest(p.until, now() + :asked)
                    WHEN p.until > now() - :longest
                        THEN now() + greatest(:asked,
                                              least(:first * 2 ^ least(p.refusals, 20), :longest))
                    ELSE now() + greatest(:asked, :first) END
        """),
        {
            "account": account,
            "provider": provider,
            "base_url": base_url,
            "status": http_status,
            "asked": timedelta(seconds=asked),
            "first": timedelta(seconds=min(first, longest)),
            "longest": timedelta(seconds=longest),
        },
    )


def pauses(connection: Connection, accounts: Sequence[str] | None = None) -> list[Pause]:
    """Pauses that go on, the longest first; of all accounts, or of these."""
    rows = connection.execute(
        text("""
            SELECT account, provider, base_url, refusals, http_status, since, until,
                   since < now() - :lasting AS lasting
            FROM extraction.account_pauses
            WHERE until > now()
              AND (CAST(:accounts AS text[]) IS NULL OR account = ANY(:accounts))
            ORDER BY until DESC, account
        """),
        {
            "accounts": None if accounts is None else list(accounts),
            "lasting": timedelta(seconds=LASTING_SECONDS),
        },
    )
    return [Pause(*row) for row in rows]
