"""One batch server and one database for the tests of this folder.

What a test asks of the server, it asks by job key; the database it leaves is emptied."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline_tests.batch_server.process import ServerProcess, running_server
from extraction_pipeline_tests.conftest import TEMPLATE, Workplace
from extraction_pipeline_tests.faults.proxy import Proxy, running_proxy
from extraction_pipeline_tests.ledger.databases import database, emptied
from extraction_pipeline_tests.lifecycle.driving import Driven


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A batch server that no test stops."""
    with running_server(tmp_path_factory.mktemp("shared") / "batch_server") as running:
        yield running


@pytest.fixture(scope="session")
def shared_database(postgres_url: str) -> Iterator[str]:
    """A database for the tests of this folder."""
    with database(postgres_url, TEMPLATE) as url:
        yield url


@pytest.fixture
def database_url(shared_database: str) -> Iterator[str]:
    """The shared database, with all tables and without a row."""
    yield shared_database
    emptied(shared_database)


@pytest.fixture
def proxy(shared_server: ServerProcess) -> Iterator[Proxy]:
    """A proxy of the test's own in front of the shared server."""
    with running_proxy(shared_server.base_url) as running:
        yield running


@pytest.fixture
def connected(workplace: Workplace, proxy: Proxy) -> Iterator[Pipeline]:
    """A pipeline over the workplace that reaches the shared server through the proxy."""
    opened = workplace.open(
        proxy.base_url, READ_TIMEOUT="1", CONNECT_TIMEOUT="1", POLL_MAX_SECONDS="0.05"
    )
    yield opened
    opened.engine.dispose()


@pytest.fixture
def driven(connected: Pipeline, shared_server: ServerProcess) -> Driven:
    """The collection `notes` of that pipeline, with the steps that tests take."""
    return Driven(connected, shared_server)


@pytest.fixture
def notes(workplace: Workplace) -> Path:
    """The folder of the collection `notes`."""
    return workplace.documents / "notes"


@pytest.fixture
def local(driven: Driven) -> Driven:
    """The collection as it is; nothing here calls a provider."""
    return driven
