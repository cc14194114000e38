"""One batch server for all tests here, and an installation of its own for each."""

from collections.abc import Iterator

import pytest
from dagster import DagsterInstance

from extraction_pipeline.definitions import build_definitions
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.settings import load_settings
from extraction_pipeline_tests.batch_server.process import ServerProcess, running_server
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.orchestration.installed import Installed, forget_pipeline


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("orchestration") / "batch_server") as running:
        yield running


@pytest.fixture
def installed(
    workplace: Workplace, pipeline: Pipeline, instance: DagsterInstance, server: ServerProcess
) -> Iterator[Installed]:
    """An installation with one empty collection, `notes`."""
    forget_pipeline()
    yield Installed(workplace, pipeline, instance, build_definitions(load_settings()), server)
    forget_pipeline()
