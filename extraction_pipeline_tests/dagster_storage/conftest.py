"""An instance with Dagster's own storage, over a database of its own, beside the project's."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import DagsterInstance

from extraction_pipeline_tests.conftest import TEMPLATE, _named, _sql


@pytest.fixture
def stock_url(postgres_url: str) -> Iterator[str]:
    name = f"stock_{uuid.uuid4().hex[:12]}"
    _sql(postgres_url, f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
    yield _named(postgres_url, name)
    _sql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def stock(stock_url: str, tmp_path: Path) -> Iterator[DagsterInstance]:
    home = tmp_path / "stock"
    home.mkdir()
    (home / "dagster.yaml").write_text(
        f"storage:\n  postgres:\n    postgres_url: {stock_url}\ntelemetry:\n  enabled: false\n"
    )
    with DagsterInstance.from_config(str(home)) as opened:
        yield opened
