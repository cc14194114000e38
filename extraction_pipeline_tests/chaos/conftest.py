"""The world that processes die in, or are cut off from, one for all tests of a file."""

from collections.abc import Iterator

import pytest
from dagster import DagsterInstance

from extraction_pipeline.ledger import answers, items
from extraction_pipeline.lifecycle.opening import open_pipeline
from extraction_pipeline.orchestration import event_log
from extraction_pipeline.orchestration.resource import opened_pipeline
from extraction_pipeline.settings import load_settings
from extraction_pipeline_tests.batch_server.process import running_server
from extraction_pipeline_tests.chaos.ground import Ground
from extraction_pipeline_tests.chaos.roles import PIECE
from extraction_pipeline_tests.chaos.world import PROVIDERS, World
from extraction_pipeline_tests.conftest import TEMPLATE
from extraction_pipeline_tests.ledger.databases import database


@pytest.fixture(scope="module")
def ground(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """One world for all points."""
    root = tmp_path_factory.mktemp("chaos")
    with (
        pytest.MonkeyPatch.context() as patch,
        database(postgres_url, TEMPLATE) as url,
        running_server(root / "batch_server") as server,
    ):
        world = World(root, PROVIDERS, int(server.root_url.rsplit(":", 1)[1]))
        for name, value in world.variables(url).items():
            patch.setenv(name, value)
        patch.setenv("EXTRACTION_READ_TIMEOUT", "0.6")
        patch.setenv("EXTRACTION_SEND_TIMEOUT", "0.3")
        patch.setenv("EXTRACTION_CONNECT_TIMEOUT", "0.3")
        for module, name in ((items, "CHUNK"), (answers, "CHUNK"), (event_log, "BATCH")):
            patch.setattr(module, name, PIECE)
        opened_pipeline.cache_clear()
        pipeline = open_pipeline(load_settings())
        with DagsterInstance.from_config(str(world.dagster_home)) as instance:
            yield Ground(world, pipeline, instance, server)
        pipeline.engine.dispose()
        opened_pipeline.cache_clear()
