"""The campaign's PostgreSQL: started, broken off, and its waiting times cut short."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine, NullPool, create_engine, make_url, text

from extraction_pipeline.installation.dagster_tables import make_dagster_tables
from extraction_pipeline.installation.embedded_postgres import EmbeddedPostgres, embedded_postgres
from extraction_pipeline.installation.postmaster import read_postmaster
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.ledger.migrate import migrate

_HURRY = (
    # Only what is waited for by the clock alone. The doubt about a create call is never cut short.
    "UPDATE extraction.batch_jobs SET due_at = now()"
    " WHERE state IN ('preparing', 'prepared', 'submitting') AND due_at > now()"
    " AND updated_at < now() - interval '3 seconds'",
    "UPDATE extraction.batch_jobs SET run_requested_at = now() - interval '1 hour'"
    " WHERE run_requested_at BETWEEN now() - interval '1 hour' AND now() - interval '4 seconds'"
    " AND results_recorded_at IS NULL",
    "UPDATE extraction.batch_jobs SET submitted_at = submitted_at - interval '1 minute'"
    " WHERE submission_recorded_at IS NULL AND submitted_at < now() - interval '2 seconds'",
    "UPDATE runs SET update_timestamp = update_timestamp - interval '6 minutes'"
    " WHERE status IN ('STARTED', 'STARTING', 'NOT_STARTED')"
    " AND update_timestamp < (now() AT TIME ZONE 'utc') - interval '6 seconds'",
)


@dataclass(frozen=True)
class Database:
    """A running server; `url` stays the same over its restarts."""

    folder: Path
    url: str
    engine: Engine

    def restart(self) -> None:
        """An immediate shutdown, as by a power cut, and a start."""
        running = read_postmaster(self.folder)
        if running is not None and running.alive:
            os.kill(running.pid, signal.SIGQUIT)
            while running.alive:
                time.sleep(0.02)
        with self.folder.with_name("restart.lock").open("ab") as mutex:
            EmbeddedPostgres(self.folder).start(mutex.fileno())

    def hurry(self) -> None:
        """Let waiting times that only keep calls apart be over."""
        with self.engine.begin() as connection:
            for statement in _HURRY:
                connection.execute(text(statement))


@contextmanager
def database(folder: Path) -> Iterator[Database]:
    """A server with all tables, ended with the block."""
    with embedded_postgres(folder) as url:
        owner = open_engine(url)
        migrate(owner)
        owner.dispose()
        make_dagster_tables(url)
        engine = create_engine(
            make_url(url).set(drivername="postgresql+psycopg2"), poolclass=NullPool
        )
        yield Database(folder, url, engine)
