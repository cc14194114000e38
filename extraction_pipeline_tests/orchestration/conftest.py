"""One batch server for all tests here, and an installation of its own for each."""

from collections.abc import Iterator

import pytest
from dagster import DagsterInstance

from extraction_pipeline.definitions import build_definitions
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.settings import load_settings
from extraction_pipeline_tests.batch_server.process import ServerProcess, running_server
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.proxy import Proxy, running_proxy
from extraction_pipeline_tests.orchestration.installed import Installed, forget_pipeline

HELD_SECONDS = 60.0


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


@pytest.fixture
def proxy(installed: Installed) -> Iterator[Proxy]:
    """A proxy that every process of this test has for its provider."""
    with running_proxy(installed.server.base_url) as running:
        installed.workplace.environment.setenv("EXTRACTION_LOCAL_BASE_URL", running.base_url)
        forget_pipeline()
        yield running


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that wait for as long as a test holds a call of theirs."""
    monkeypatch.setenv("EXTRACTION_READ_TIMEOUT", str(2 * HELD_SECONDS))
