"""The environment that instance files ask for."""

import pytest


@pytest.fixture
def surroundings(monkeypatch: pytest.MonkeyPatch, database_url: str) -> None:
    monkeypatch.setenv("EXTRACTION_DATABASE_URL", database_url)
    monkeypatch.setenv("CELERY_BROKER_URL", "redis://127.0.0.1:9/0")
    monkeypatch.setenv("RUN_NAMESPACE", "wards")
