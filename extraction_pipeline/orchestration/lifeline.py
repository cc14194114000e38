"""The lifeline of this process: one session of the database that holds a lock for each of its runs.

A lock is taken before a run's first step and held for as long as the process lives, so it outlasts
the run's last event. PostgreSQL frees it when the process dies, or when its host is cut off (see
`dead_peers`). If only the session dies (a restart, a broken network), the locks are taken again
within moments.

A process that could not do so in time finds its run ended by somebody else, and perhaps started
again elsewhere. It ends at once then, without a further word: what it could still write would be
said of a run that is over.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from functools import cache

from dagster_postgres.utils import DagsterPostgresException
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from extraction_pipeline.errors import DatabaseUnavailable, LedgerError
from extraction_pipeline.ledger.database import RUN_LOCK, open_engine

PULSE_SECONDS = 1.0
PATIENCE_SECONDS = 30.0
"""How long a lock may be in somebody else's hand: the one who looks whether a run is alive."""

_log = logging.getLogger(__name__)


def take_run_lock(session: Connection, run_id: str) -> bool:
    """Take the lock of a run, if it is free; it belongs to the session until its end."""
    return bool(
        session.execute(
            text("SELECT pg_try_advisory_lock(:kind, hashtext(:run))"),
            {"kind": RUN_LOCK, "run": run_id},
        ).scalar_one()
    )


def lock_engine(url: str) -> Engine:
    """An engine for sessions that hold locks; no transaction stays open in them."""
    return open_engine(url, pool_size=1).execution_options(isolation_level="AUTOCOMMIT")


def _never() -> bool:
    return False


class Lifeline:
    """Locks of the runs of this process; see the module. Safe to use from several threads."""

    def __init__(self, url: str) -> None:
        self._engine = lock_engine(url)
        self._guard = threading.RLock()
        self._runs: dict[str, Callable[[], bool]] = {}
        self._held: set[str] = set()
        self._session: Connection | None = None
        self._pulse: threading.Thread | None = None

    def hold(self, run_id: str, ended: Callable[[], bool] = _never) -> None:
        """Hold the lock of this run until `let_go`, or until the process ends.

        `ended` says whether somebody has ended the run; it is asked whenever the lock was lost.
        Raises `DatabaseUnavailable`, and `LedgerError` where another process holds it.
        """
        until = time.monotonic() + PATIENCE_SECONDS
        while not self._taken(run_id, ended):
            if time.monotonic() > until:
                raise LedgerError(
                    f"Run {run_id} is executed by another process.", remedy="Start a new run."
                )
            time.sleep(0.2)  # it is being looked at, which takes moments

    def let_go(self, run_id: str) -> None:
        """Free the lock of a run whose last event is written."""
        with self._guard:
            if run_id in self._runs:
                del self._runs[run_id]
                self._free(run_id)

    def let_go_of_all(self) -> None:
        """Free the locks of all runs."""
        with self._guard:
            for run_id in tuple(self._runs):
                self.let_go(run_id)

    def _taken(self, run_id: str, ended: Callable[[], bool]) -> bool:
        with self._guard:
            if run_id in self._runs:
                return True
            if not take_run_lock(self._open(), run_id):
                return False
            self._held.add(run_id)
            self._runs[run_id] = ended
            if self._pulse is None:
                self._pulse = threading.Thread(target=self._beat, name="lifeline", daemon=True)
                self._pulse.start()
            return True

    def _open(self) -> Connection:
        if self._session is None or self._session.invalidated:
            self._held.clear()
            self._session = self._engine.connect()
        return self._session

    def _free(self, run_id: str) -> None:
        if self._session is None or run_id not in self._held:
            return
        self._held.discard(run_id)
        try:
            self._session.execute(
                text("SELECT pg_advisory_unlock(:kind, hashtext(:run))"),
                {"kind": RUN_LOCK, "run": run_id},
            )
        except LedgerError:
            self._session = None  # it broke off, and the lock went with it

    def _beat(self) -> None:
        """Take the locks again whenever the session is lost, for as long as there are any."""
        while True:
            time.sleep(PULSE_SECONDS)
            with self._guard:
                if not self._runs:
                    self._pulse = None
                    return
                try:
                    self._open().execute(text("SELECT 1"))
                    for run_id in self._runs.keys() - self._held:
                        self._take_again(run_id)
                except (LedgerError, DBAPIError, DagsterPostgresException):
                    self._session = None  # the next beat opens another one

    def _take_again(self, run_id: str) -> None:
        """Take a lock that was lost, unless its run is over: then end this process."""
        if not take_run_lock(self._open(), run_id):
            return  # it is being looked at; the next beat comes again
        self._held.add(run_id)
        # Asked under the lock: nobody takes the run for lost from here on.
        try:
            over = self._runs[run_id]()
        except BaseException:
            self._held.discard(run_id)
            raise
        if over:
            _end_process(run_id)


def _end_process(run_id: str) -> None:
    _log.error(
        "Run %s was taken for lost and ended, because this process was cut off from the database. "
        "The process ends now; nothing is lost, and the work is carried on by others.",
        run_id,
    )
    logging.shutdown()
    os._exit(DatabaseUnavailable.exit_code)


@cache
def lifeline(url: str) -> Lifeline:
    """The lifeline of this process at this database."""
    return Lifeline(url)
