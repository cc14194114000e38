"""The receiver while its database is away, locked or full: senders try again, nothing is half
there."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import create_engine, make_url, text

from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.settings import load_settings
from extraction_pipeline.webhooks import server
from extraction_pipeline.webhooks.senders import senders
from extraction_pipeline.webhooks.server import receiving
from extraction_pipeline_tests.conftest import TEMPLATE
from extraction_pipeline_tests.ledger.databases import database
from extraction_pipeline_tests.webhooks.conftest import LOOPBACK, SECRETS, Desk
from extraction_pipeline_tests.webhooks.signing import batch_event, fresh_id, headers


@pytest.fixture
def impatient(
    receivers_url: str, receiver: Desk, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Desk]:
    """A receiver that waits a third of a second for its database."""
    monkeypatch.setattr(server, "DATABASE_SECONDS", 0.3)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    with receiving(senders(load_settings()), receivers_url, LOOPBACK, 0) as running:
        yield Desk(running.url, receiver.engine)


def test_a_database_that_goes_and_comes_back_costs_no_delivery(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    admin = create_engine(
        make_url(postgres_url).set(drivername="postgresql+psycopg2"), isolation_level="AUTOCOMMIT"
    )
    with (
        database(postgres_url, TEMPLATE) as url,
        receiving(senders(load_settings()), url, LOOPBACK, 0) as running,
        admin.connect() as connection,
    ):
        desk, name = Desk(running.url, open_engine(url)), str(make_url(url).database)
        job_id, delivery_id, body = desk.submitted(), fresh_id(), batch_event("x")
        assert desk.announce(job_id) == 200
        connection.execute(text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false"))
        connection.execute(
            text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"),
            {"name": name},
        )
        with ThreadPoolExecutor(10) as threads:
            said = list(threads.map(lambda _: desk.announce(job_id, delivery_id), range(10)))
        assert said == [503] * 10
        assert "a delivery could not be kept: DatabaseUnavailable" in caplog.messages
        answer = desk.post("openai", body, headers(body))
        assert (answer.headers["Retry-After"], answer.json()) == ("5", {"error": "try again"})
        # Strangers learn nothing of it, and get no further.
        assert desk.post("openai", body, headers(body, key=b"x")).status_code == 401
        connection.execute(text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true"))
        assert desk.outcomes(job_id) == [("made_due", 1)]
        assert desk.announce(job_id, delivery_id) == 200
        assert desk.outcomes(job_id) == [("made_due", 1)] * 2
        desk.engine.dispose()
    admin.dispose()


def test_a_receiver_may_start_before_its_database(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    with socket.create_server((LOOPBACK, 0)) as nothing:  # it takes connections and says nothing
        url = f"postgresql://nobody@{LOOPBACK}:{nothing.getsockname()[1]}/nothing"
        monkeypatch.setattr(server, "DATABASE_SECONDS", 0.3)
        with receiving(senders(load_settings()), url, LOOPBACK, 0) as running:
            start = time.monotonic()
            assert Desk(running.url, open_engine(url)).announce("batch_1") == 503
            assert time.monotonic() - start < 4
            assert running.runs()


def test_a_job_that_is_locked_for_long_is_not_waited_for(impatient: Desk) -> None:
    job_id = impatient.submitted()
    delivery_id = fresh_id()
    with impatient.engine.connect() as other:
        other.execute(
            text("SELECT id FROM extraction.batch_jobs WHERE job_id = :job_id FOR UPDATE"),
            {"job_id": job_id},
        )
        assert impatient.announce(job_id, delivery_id) == 503
        assert impatient.outcomes(job_id) == []  # neither half
        other.rollback()
    assert impatient.announce(job_id, delivery_id) == 200
    assert impatient.outcomes(job_id) == [("made_due", 1)]
    assert impatient.is_due(job_id)


def test_a_flood_opens_no_more_connections_than_it_may(impatient: Desk) -> None:
    with impatient.engine.connect() as other:
        other.execute(text("LOCK TABLE extraction.webhook_deliveries"))
        with ThreadPoolExecutor(24) as threads:
            flood = [threads.submit(impatient.announce, "batch_flood") for _ in range(24)]
            time.sleep(0.2)
            (row,) = other.execute(
                text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
            )
            said = {one.result() for one in flood}
        other.rollback()
    assert row[0] <= 4
    assert said == {503}
    assert impatient.announce("batch_flood") == 200


def test_tables_of_another_version_are_no_reason_to_die(impatient: Desk) -> None:
    impatient.rows(
        "ALTER TABLE extraction.webhook_deliveries RENAME COLUMN event TO kind; SELECT 1"
    )
    try:
        assert impatient.announce("batch_2") == 503
    finally:
        impatient.rows(
            "ALTER TABLE extraction.webhook_deliveries RENAME COLUMN kind TO event; SELECT 1"
        )
    assert impatient.announce("batch_2") == 200
