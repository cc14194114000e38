"""The values for Dagster's own Helm chart."""

import re
from collections.abc import Mapping

import yaml

from extraction_pipeline.documents.readable import ReadLimits
from extraction_pipeline_tests.deploy.files import DEPLOY, INSTANCES, ROOT, VALUES

CHART: Mapping[str, frozenset[str]] = {
    "global": frozenset({"postgresqlSecretName", "serviceAccountName"}),
    "serviceAccount": frozenset({"create"}),
    "generatePostgresqlPasswordSecret": frozenset(),
    "postgresql": frozenset(
        {"enabled", "postgresqlHost", "postgresqlUsername", "postgresqlDatabase", "service"}
    ),
    "dagsterWebserver": frozenset(
        {
            *("replicaCount", "image", "enableReadOnly", "env", "envConfigMaps", "envSecrets"),
            *("volumes", "volumeMounts", "dbPoolMaxOverflow", "service", "readinessProbe"),
        }
    ),
    "dagsterDaemon": frozenset(
        {"enabled", "image", "env", "envConfigMaps", "envSecrets", "volumes", "volumeMounts"}
    ),
    "dagster-user-deployments": frozenset({"enabled", "enableSubchart", "deployments"}),
    "runLauncher": frozenset({"type"}),
    "telemetry": frozenset({"enabled"}),
    "extraManifests": frozenset(),
}
"""Keys of the chart that are used, each read in its own values. Helm takes any other in silence."""

OF_A_DEPLOYMENT = frozenset(
    {
        *("name", "image", "codeServerArgs", "port", "env", "envConfigMaps", "envSecrets"),
        *("volumes", "volumeMounts", "includeConfigInLaunchedRuns", "initContainers"),
        "readinessProbe",
    }
)


def test_the_values_are_keys_of_the_chart() -> None:
    assert VALUES.keys() <= CHART.keys()
    for name, inside in VALUES.items():
        if isinstance(inside, dict):
            assert inside.keys() <= CHART[name], name
    for deployment in VALUES["dagster-user-deployments"]["deployments"]:
        assert deployment.keys() <= OF_A_DEPLOYMENT
    pinned = re.search(r'"dagster==([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    assert pinned is not None
    assert f"--version {pinned[1]} " in (DEPLOY / "kubernetes" / "values.yaml").read_text()


def test_a_pod_may_open_its_port_and_a_run_has_memory_for_a_parser() -> None:
    webserver = VALUES["dagsterWebserver"]
    port = webserver["service"]["port"]
    assert port == webserver["readinessProbe"]["httpGet"]["port"]
    assert port >= 1024, "the image's user is not root"
    launcher = yaml.safe_load(INSTANCES["kubernetes"].read_text())["run_launcher"]["config"]
    most = re.fullmatch(r"(\d+)Gi", launcher["resources"]["limits"]["memory"])
    assert most is not None
    worker = 400 * 1024**2
    assert ReadLimits().memory_bytes + worker <= int(most[1]) * 1024**3


def test_pods_of_the_chart_and_of_runs_agree() -> None:
    launcher = yaml.safe_load(INSTANCES["kubernetes"].read_text())["run_launcher"]["config"]
    (deployment,) = VALUES["dagster-user-deployments"]["deployments"]
    for kind, there in (("envConfigMaps", "env_config_maps"), ("envSecrets", "env_secrets")):
        assert [one["name"] for one in deployment[kind]] == launcher[there]
    assert VALUES["global"]["serviceAccountName"] == launcher["service_account_name"]
    mounts = {one["name"]: one["mountPath"] for one in deployment["volumeMounts"]}
    assert mounts["collections"] == launcher["volume_mounts"][0]["mount_path"]
    homes = [VALUES[part]["env"] for part in ("dagsterWebserver", "dagsterDaemon")]
    for home in (*homes, deployment["env"]):
        assert home == [
            {"name": "DAGSTER_HOME", "value": mounts["extraction-dagster"]},
            {"name": "EXTRACTION_COLLECTIONS", "value": mounts["collections"]},
        ]
    assert launcher["env_vars"] == [f"EXTRACTION_COLLECTIONS={mounts['collections']}"]
    assert launcher["instance_config_map"] == "extraction-dagster"


def test_pods_mount_config_maps_alone() -> None:
    volumes = [
        *VALUES["dagsterWebserver"]["volumes"],
        *VALUES["dagsterDaemon"]["volumes"],
        *VALUES["dagster-user-deployments"]["deployments"][0]["volumes"],
    ]
    assert {next(key for key in one if key != "name") for one in volumes} == {"configMap"}


def test_a_second_webserver_is_for_readers() -> None:
    assert VALUES["dagsterWebserver"]["enableReadOnly"] is True
