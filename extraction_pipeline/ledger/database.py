"""Connections to the one PostgreSQL: engines, errors without contents, and advisory locks."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import InterfaceError, OperationalError

from extraction_pipeline.errors import ConfigurationError, DatabaseUnavailable, LedgerError
from extraction_pipeline.ledger.database_url import parse_database_url
from extraction_pipeline.ledger.dead_peers import CLIENT, end_with_client_alone
from extraction_pipeline.ledger.lost_database import PASSING, told
from extraction_pipeline.ledger.plans import plan_by_index
from extraction_pipeline.ledger.server_log import keep_out_of_log
from extraction_pipeline.ledger.unreachable import place_of, why_unreachable

# First half of the two-integer advisory lock keys, so that they never meet those of Dagster.
JOB_LOCK = 0x65787074
CLAIM_LOCK = 0x65787063
SCAN_LOCK = 0x65787073
RECORD_LOCK = 0x65787065
PRICE_LOCK = 0x65787070
QUEUE_LOCK = 0x65787071
JOB_ID_LOCK = 0x65787069
RUN_LOCK = 0x65787072
"""Held by a run of Dagster for as long as its process lives."""

LOCK_PAUSE_SECONDS = 0.2

NOT_ALLOWED = "42501"
"""PostgreSQL's code for a privilege that is lacking."""


CONNECT_SECONDS = 10.0


def open_engine(url: str, *, pool_size: int = 2, patience: float | None = None) -> Engine:
    """An engine that keeps `pool_size` connections. Raises `ConfigurationError`.

    More are opened where more threads work at once and closed after: one that holds a job's lock
    needs two further ones, and threads that wait for each other's would wait for ever. With
    `patience` there are never more, and none of a connection, a lock and a statement is waited for
    longer than these seconds.

    A server that is gone is noticed, and lets go of what a client held that is gone, as
    `dead_peers` says.

    Errors of the database leave it as `LedgerError` with the code and the constraint's name alone:
    PostgreSQL's own sentence can hold a file's path or a record's values. For the same reason the
    server is told to log no statements of ours, where the role may.
    """
    parsed = parse_database_url(url)
    engine = create_engine(
        parsed.set(drivername="postgresql+psycopg2"),
        pool_size=pool_size,
        max_overflow=-1 if patience is None else 0,
        pool_timeout=CONNECT_SECONDS if patience is None else patience,
        pool_pre_ping=True,
        hide_parameters=True,
        connect_args={
            "application_name": "extraction-pipeline",
            "connect_timeout": math.ceil(patience or CONNECT_SECONDS),
            **{name: value for name, value in CLIENT.items() if name not in parsed.query},
            **({} if patience is None else {"tcp_user_timeout": int(patience * 1000)}),
        },
    )
    event.listen(engine, "connect", keep_out_of_log)
    event.listen(engine, "connect", end_with_client_alone)
    event.listen(engine, "connect", plan_by_index)
    if patience is not None:
        event.listen(engine, "connect", partial(_bound_waits, patience))
    event.listen(engine, "handle_error", partial(_without_contents, parsed))
    return engine


def _bound_waits(seconds: float, connection: Any, _record: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config(name, %s, false) FROM unnest(%s) AS bound (name)",
            (f"{int(seconds * 1000)}ms", ["statement_timeout", "lock_timeout"]),
        )
    connection.commit()


def _without_contents(url: URL, context: ExceptionContext) -> None:
    original = context.original_exception
    if not isinstance(original, Exception):
        return  # Ctrl-C or the end of the process, which no statement is to blame for
    code = getattr(original, "pgcode", None)
    constraint = getattr(getattr(original, "diag", None), "constraint_name", None)
    connected = context.connection is not None
    why = None if connected or code else why_unreachable(url, str(original))
    # The driver's error stays in the chain, and with it in a stack trace: its sentence must not.
    original.args = (f"{type(original).__name__}, code {code}",)
    lost = isinstance(context.sqlalchemy_exception, OperationalError | InterfaceError)
    if context.is_disconnect or (code or ("08" if lost else "")).startswith(PASSING):
        if context.is_pre_ping:
            return  # the pool replaces the connection by itself
        if why is not None:
            raise DatabaseUnavailable(why.message, remedy=why.remedy) from None
        raise told(code, place_of(url)) from None
    if not connected and code is None:
        raise ConfigurationError(
            "EXTRACTION_DATABASE_URL has a parameter that PostgreSQL's driver does not know.",
            remedy="Correct what stands behind its question mark, as in ?sslmode=require.",
        ) from None
    if code == NOT_ALLOWED:
        raise LedgerError(
            f"The role of EXTRACTION_DATABASE_URL may not do this in {place_of(url)} ({code}).",
            remedy="Name the role that owns the tables, or grant it what it lacks.",
        ) from None
    named = f", constraint {constraint}" if constraint else ""
    raise LedgerError(f"The database refused a statement (code {code or 'none'}{named}).") from None


T = TypeVar("T")


@dataclass(frozen=True)
class JobLock:
    """The lock of a batch job; true where this process holds it."""

    held: bool
    _connection: Connection

    def __bool__(self) -> bool:
        return self.held

    def ask(self, question: Callable[[Connection], T]) -> T:
        """Put a question on the session that the lock belongs to. Raises `DatabaseUnavailable`
        where that is gone, and the lock with it: nothing was asked on it since, so the question is
        what finds out."""
        try:
            answer = question(self._connection)
            self._connection.commit()
        except DatabaseUnavailable:
            self._connection.rollback()
            raise
        return answer


@contextmanager
def job_lock(engine: Engine, job: int, *, patience: float = 0.0) -> Iterator[JobLock]:
    """Hold the lock of one batch job while a process works on it; yields whether it was free, or
    became so within `patience` seconds.

    It belongs to the session, so PostgreSQL frees it the moment that the process dies.
    """
    until = time.monotonic() + patience
    with engine.connect() as connection:
        while not (held := _try_lock(connection, job)) and time.monotonic() < until:
            time.sleep(LOCK_PAUSE_SECONDS)  # its holder talks to a provider, for seconds
        try:
            yield JobLock(held, connection)
        finally:
            if held:
                _unlock(connection, job)


def _try_lock(connection: Connection, job: int) -> bool:
    held = connection.execute(
        text("SELECT pg_try_advisory_lock(:kind, hashint8(:job))"), {"kind": JOB_LOCK, "job": job}
    ).scalar_one()
    connection.commit()
    return bool(held)


def _unlock(connection: Connection, job: int) -> None:
    try:
        connection.execute(
            text("SELECT pg_advisory_unlock(:kind, hashint8(:job))"),
            {"kind": JOB_LOCK, "job": job},
        )
        connection.commit()
    except DatabaseUnavailable:
        # The session broke off, and the lock went with it: what the work did stands.
        return
    except BaseException:
        connection.invalidate()  # back in the pool, the session would keep the lock
        raise


def lock_until_commit(
    connection: Connection, kind: int, name: str, *, shared: bool = False
) -> None:
    """Wait for, and hold to the end of the transaction, the lock `name` of `kind`; `shared` with
    others who take it so."""
    function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    connection.execute(
        text(f"SELECT {function}(:kind, hashtext(:name))"), {"kind": kind, "name": name}
    )
