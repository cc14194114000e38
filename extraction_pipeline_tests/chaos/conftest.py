"""The world that processes die in, or are cut off from, one for all tests of a file."""

from collections.abc import Iterator

import pytest

from extraction_pipeline_tests.batch_server.process import running_server
from extraction_pipeline_tests.chaos.ground import Ground, open_ground
from extraction_pipeline_tests.chaos.world import PROVIDERS
from extraction_pipeline_tests.conftest import TEMPLATE
from extraction_pipeline_tests.ledger.databases import database


@pytest.fixture(scope="module")
def ground(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """One world for all points."""
    root = tmp_path_factory.mktemp("chaos")
    with (
        database(postgres_url, TEMPLATE) as url,
        running_server(root / "batch_server") as server,
        open_ground(root, PROVIDERS, url, server.root_url) as opened,
    ):
        yield opened
