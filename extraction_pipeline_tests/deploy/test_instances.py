"""The instance files, as Dagster takes them."""

from pathlib import Path

import pytest
import yaml
from dagster import DagsterInstance, DefaultRunLauncher
from dagster._config import process_config, resolve_to_config_type
from dagster._core.instance.config import dagster_instance_config
from dagster_celery.launcher import CeleryRunLauncher
from dagster_k8s import K8sRunLauncher

from extraction_pipeline.orchestration.jobs import SOURCES, scan_documents
from extraction_pipeline_tests.deploy.files import INSTANCES, SHIPPED


@pytest.mark.usefixtures("surroundings")
@pytest.mark.parametrize(
    ("name", "launcher"), [("compose", CeleryRunLauncher), ("kubernetes", K8sRunLauncher)]
)
def test_dagster_takes_the_instance_and_finds_our_storage(
    name: str, launcher: type[DefaultRunLauncher], tmp_path: Path
) -> None:
    config, _ = dagster_instance_config(str(INSTANCES[name].parent))
    assert config["run_launcher"]["class"] == launcher.__name__
    checked = process_config(
        resolve_to_config_type(launcher.config_type()), config["run_launcher"]["config"]
    )
    assert checked.success, checked.errors
    assert scan_documents.pool == SOURCES
    assert config["concurrency"]["pools"]["default_limit"] > 0
    # All but the launcher, which looks for its cluster, is made for real.
    rest = yaml.safe_load(INSTANCES[name].read_text())
    del rest["run_launcher"]
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(rest))
    with DagsterInstance.from_config(str(tmp_path)) as instance:
        assert instance.get_runs_count() == 0
        assert instance.run_monitoring_enabled
        assert instance.get_concurrency_config().pool_config.default_pool_limit == 8


@pytest.mark.parametrize("name", INSTANCES)
def test_an_instance_differs_from_the_shipped_one_in_what_is_meant_alone(name: str) -> None:
    here = yaml.safe_load(INSTANCES[name].read_text())
    for part in ("run_retries", "sensors", "schedules", "retention", "telemetry"):
        assert here[part] == SHIPPED[part], part
    meant = {"start_timeout_seconds"}
    for key, value in SHIPPED["run_monitoring"].items():
        assert key in meant or here["run_monitoring"][key] == value, key
    mine, theirs = here["storage"]["custom"], SHIPPED["storage"]["custom"]
    assert {**mine, "config": 0} == {**theirs, "config": 0}
