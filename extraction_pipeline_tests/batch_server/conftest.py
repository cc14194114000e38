"""One server for the tests that leave nothing behind which others would see."""

import pytest

from extraction_pipeline_tests.batch_server.client import Client
from extraction_pipeline_tests.batch_server.process import running_server


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    with running_server(tmp_path_factory.mktemp("shared") / "state") as running:
        yield running


@pytest.fixture
def client(server) -> Client:
    return Client(server.base_url)
