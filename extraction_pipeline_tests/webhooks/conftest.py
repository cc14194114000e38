"""One database and one receiver for the tests of this folder; each test uses ids of its own."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import requests
from sqlalchemy import Engine, Row, text

from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.settings import load_settings
from extraction_pipeline.webhooks.senders import senders
from extraction_pipeline.webhooks.server import receiving
from extraction_pipeline_tests.conftest import TEMPLATE
from extraction_pipeline_tests.ledger.databases import database
from extraction_pipeline_tests.ledger.rows import HASH, insert
from extraction_pipeline_tests.webhooks.signing import (
    OLD_SECRET,
    SECRET,
    SHOWN,
    batch_event,
    fresh_id,
    headers,
)

LOOPBACK = "127.0.0.1"
SECRETS = {
    "EXTRACTION_OPENAI_WEBHOOK_SECRET": f"{SECRET}, {OLD_SECRET}",
    "EXTRACTION_GEMINI_WEBHOOK_SECRET": SECRET,
    "EXTRACTION_INFRAI_WEBHOOK_SECRET": f"another-secret-of-theirs {SHOWN}",
}


@dataclass(frozen=True)
class Desk:
    """A receiver at its address, and the ledger behind it."""

    url: str
    engine: Engine

    def post(self, provider: str, body: Any, sent: dict[str, str]) -> requests.Response:
        return requests.post(f"{self.url}/webhooks/{provider}", data=body, headers=sent, timeout=20)

    def announce(self, job_id: str, delivery_id: str | None = None) -> int:
        """Announce OpenAI's job as OpenAI does; the status of the answer."""
        body = batch_event(job_id)
        return self.post("openai", body, headers(body, delivery_id=delivery_id)).status_code

    def submitted(self, provider: str = "openai", state: str = "submitted") -> str:
        """The provider's id of a job that is not due for long."""
        job_id = fresh_id("batch_" if provider == "openai" else "batches/")
        with self.engine.begin() as connection:
            version = insert(connection, "extraction_versions", name=job_id)
            insert(
                connection,
                "batch_jobs",
                job_key=job_id,
                version_id=version,
                provider=provider,
                state=state,
                job_id=job_id,
                payload_hash=HASH,
                poll_count=30,
                due_at="2100-01-01T00:00:00Z",
            )
        return job_id

    def is_due(self, job_id: str) -> bool:
        """Whether the next tick reads the job, and its interval begins anew."""
        (row,) = self.rows(
            "SELECT due_at <= now() AND poll_count = 0 FROM extraction.batch_jobs"
            " WHERE job_id = :job_id",
            job_id=job_id,
        )
        return bool(row[0])

    def outcomes(self, job_id: str) -> list[tuple[str, int]]:
        """Outcome and count of each delivery about a job, in order."""
        return [
            (row[0], row[1])
            for row in self.rows(
                "SELECT outcome::text, times_received FROM extraction.webhook_deliveries"
                " WHERE job_id = :job_id ORDER BY id",
                job_id=job_id,
            )
        ]

    def kept(self) -> int:
        """How many deliveries there are."""
        return int(self.rows("SELECT count(*) FROM extraction.webhook_deliveries")[0][0])

    def outcome_of(self, delivery_id: str) -> str | None:
        found = self.rows(
            "SELECT outcome::text FROM extraction.webhook_deliveries WHERE delivery_id = :id",
            id=delivery_id,
        )
        return found[0][0] if found else None

    def rows(self, statement: str, **values: object) -> list[Row[Any]]:
        with self.engine.begin() as connection:
            return list(connection.execute(text(statement), values))


@pytest.fixture(scope="package")
def receivers_url(postgres_url: str) -> Iterator[str]:
    """A database for the tests of this folder."""
    with database(postgres_url, TEMPLATE) as url:
        yield url


@pytest.fixture(scope="package")
def receiver(receivers_url: str) -> Iterator[Desk]:
    """A receiver with secrets for OpenAI, Gemini and Infrai."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SECRETS.items():
            patch.setenv(name, value)
        settings = load_settings()
    engine = open_engine(receivers_url)
    with receiving(senders(settings), receivers_url, LOOPBACK, 0) as running:
        yield Desk(running.url, engine)
    engine.dispose()
