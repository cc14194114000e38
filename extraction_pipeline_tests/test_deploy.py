"""The files of `deploy/`: they name what there is, run what there is, and hold no secret.

Docker and Kubernetes are not needed: commands are parsed by the programs that they name, instance
files are read by Dagster.
"""

import importlib
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from shutil import copytree, ignore_patterns
from types import SimpleNamespace
from typing import Any

import click
import pytest
import requests
import yaml
from celery.bin.celery import celery
from dagster import DagsterInstance, DefaultRunLauncher
from dagster._cli import create_dagster_cli
from dagster._config import process_config, resolve_to_config_type
from dagster._core.instance.config import dagster_instance_config
from dagster._daemon.cli import create_dagster_daemon_cli
from dagster_celery.app import app
from dagster_celery.launcher import CeleryRunLauncher
from dagster_k8s import K8sRunLauncher
from dagster_webserver.cli import create_dagster_webserver_cli
from sqlalchemy.pool import QueuePool

from extraction_pipeline.cli.group import commands as extraction_pipeline
from extraction_pipeline.dagster_storage.engines import CONNECTIONS_AT_MOST
from extraction_pipeline.documents.readable import ReadLimits
from extraction_pipeline.installation.dagster_processes import MEMORY_KEPT
from extraction_pipeline.orchestration.jobs import SOURCES, scan_documents
from extraction_pipeline.settings import variables
from extraction_pipeline.webhooks.app import CONNECTIONS

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())
VALUES: dict[str, Any] = yaml.safe_load((DEPLOY / "kubernetes" / "values.yaml").read_text())
INSTANCES = {name: DEPLOY / name / "dagster.yaml" for name in ("compose", "kubernetes")}
SHIPPED = yaml.safe_load((ROOT / "extraction_pipeline" / "dagster.yaml").read_text())
EXAMPLE = dict(
    line.split("=", 1)
    for line in (DEPLOY / "compose" / "settings.env.example").read_text().splitlines()
    if line and not line.startswith("#")
)
PRODUCTION = (ROOT / "docs" / "production.md").read_text()
FILES = [path for path in DEPLOY.rglob("*") if path.is_file()]

OTHERS = frozenset(
    {
        *("POSTGRES_USER", "POSTGRES_PASSWORD", "POSTGRES_DB"),
        *("MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD"),
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL_S3"),
        *("AWS_DEFAULT_REGION", "CELERY_BROKER_URL", "RUN_NAMESPACE", "PYTHONPATH"),
        *("COLLECTIONS", "DOCUMENTS"),
        *("DAGSTER_HOME", "DAGSTER_REDACT_USER_CODE_ERRORS"),
    }
)
"""Variables of other programs: Compose, the database's image, the object store and its client,
Dagster."""

TRIAL = "batch-server"
"""The service that only a first try needs."""

PROGRAMS: Mapping[str, click.Command] = {
    "extraction-pipeline": extraction_pipeline,
    "dagster": create_dagster_cli(),
    "dagster-daemon": create_dagster_daemon_cli(),
    "dagster-webserver": create_dagster_webserver_cli(),
    "celery": celery,
}

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


def _ours() -> dict[str, dict[str, Any]]:
    """Services of our own image."""
    services: dict[str, dict[str, Any]] = COMPOSE["services"]
    return {name: one for name, one in services.items() if "extraction-pipeline" in one["image"]}


def _containers() -> Iterator[dict[str, Any]]:
    """Containers of our own in the values of the chart."""
    for deployment in VALUES["dagster-user-deployments"]["deployments"]:
        yield from deployment["initContainers"]
    for manifest in VALUES["extraManifests"]:
        if manifest["kind"] == "Deployment":
            yield from manifest["spec"]["template"]["spec"]["containers"]


COMMANDS = [
    *([str(word) for word in one["command"]] for one in _ours().values()),
    *([str(word) for word in one["command"]] for one in _containers()),
    ["dagster", "code-server", "start", "-p", "4266"]
    + VALUES["dagster-user-deployments"]["deployments"][0]["codeServerArgs"],
]


MOUNTED = {"/opt/dagster/workspace.yaml": str(DEPLOY / "workspace.yaml")}
"""Files of containers, where they come from."""


def _parse(command: click.Command, words: list[str], parent: click.Context | None = None) -> None:
    """Parse a command as its program does, and run nothing. Raises `click.UsageError`."""
    context = command.make_context(command.name, list(words), parent=parent)
    if command is celery:
        context.obj = SimpleNamespace(app=app)
    if isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        _, found, rest = command.resolve_command(context, rest)
        assert found is not None
        _parse(found, rest, context)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_is_one_that_its_program_takes(words: list[str]) -> None:
    assert (Path(sys.prefix) / "bin" / words[0]).exists()
    _parse(PROGRAMS[words[0]], [MOUNTED.get(word, word) for word in words[1:]])
    if "-m" in words:
        module = importlib.import_module(words[words.index("-m") + 1])
        assert callable(module.defs)


def test_a_command_with_a_slip_is_found() -> None:
    with pytest.raises(click.UsageError):
        _parse(PROGRAMS["dagster-webserver"], ["--readonly"])
    with pytest.raises(click.UsageError):
        _parse(extraction_pipeline, ["webhook"])


def test_every_variable_is_a_setting_or_somebody_elses() -> None:
    named = set(EXAMPLE)
    for service in COMPOSE["services"].values():
        named |= set(service.get("environment", {}))
    for path in FILES:
        named |= set(re.findall(r"\bEXTRACTION_[A-Z_]+\b", path.read_text()))
        named |= set(re.findall(r"\{?env: ([A-Z_]+)", path.read_text()))
    assert named <= variables() | OTHERS, named - variables() - OTHERS


def test_the_image_gives_memory_back_as_a_laptop_does() -> None:
    for name, value in MEMORY_KEPT.items():
        assert f"{name}={value}" in (DEPLOY / "Dockerfile").read_text()


def test_what_instances_read_from_the_environment_is_set() -> None:
    given = set(EXAMPLE).union(*(one.get("environment", {}) for one in _ours().values()))
    asked = set(re.findall(r"env: ([A-Z_]+)", INSTANCES["compose"].read_text()))
    assert asked <= given
    assert "RUN_NAMESPACE" in (DEPLOY / "kubernetes" / "values.yaml").read_text()


def test_the_services_are_those_of_production() -> None:
    commands = {name: " ".join(map(str, one["command"])) for name, one in _ours().items()}
    daemons = [name for name, words in commands.items() if words.startswith("dagster-daemon")]
    assert len(daemons) == 1
    assert COMPOSE["services"][daemons[0]]["deploy"]["replicas"] == 1
    webservers = {name for name, words in commands.items() if "dagster-webserver" in words}
    assert {name for name in webservers if "--read-only" in commands[name]} == {"reviewers"}
    assert len(webservers) == 2
    assert VALUES["dagsterWebserver"]["enableReadOnly"] is True
    workspace = yaml.safe_load((DEPLOY / "workspace.yaml").read_text())
    server = workspace["load_from"][0]["grpc_server"]
    assert f"-p {server['port']}" in commands[server["host"]]


def test_the_server_has_the_connections_that_are_stated() -> None:
    stated = _stated_connections()
    assert int(stated["daemon"]) == CONNECTIONS_AT_MOST
    assert int(stated["webhook receiver"]) == CONNECTIONS
    here = {"run worker": 20, "webserver": 2, "code server": 1, "daemon": 1, "webhook receiver": 2}
    most = re.search(r"max_connections=(\d+)", str(COMPOSE["services"]["postgres"]["command"]))
    assert most is not None
    total = sum(count * int(stated[kind]) for kind, count in here.items())
    assert total < int(most[1])
    assert f"= {total}, so\n`max_connections = {most[1]}`" in PRODUCTION
    larger = sum(count * int(stated[kind]) for kind, count in {**here, "run worker": 32}.items())
    runs = yaml.safe_load(INSTANCES["kubernetes"].read_text())["concurrency"]["runs"]
    assert runs["max_concurrent_runs"] == 32
    assert f"= {larger}, so" in (ROOT / "docs" / "ten_million.md").read_text()


def test_a_webserver_opens_the_connections_that_are_stated(
    surroundings: None, tmp_path: Path
) -> None:
    overflow = {
        int(words[words.index("--db-pool-max-overflow") + 1])
        for one in _ours().values()
        if "dagster-webserver" in (words := list(map(str, one["command"])))
    }
    assert overflow == {VALUES["dagsterWebserver"]["dbPoolMaxOverflow"]}
    rest = yaml.safe_load(INSTANCES["compose"].read_text())
    del rest["run_launcher"]
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(rest))
    with DagsterInstance.from_config(str(tmp_path)) as instance:
        first = _pool(instance.run_storage)
        instance.optimize_for_webserver(15000, 3600, overflow.pop())
        storages = (instance.run_storage, instance.event_log_storage, instance.schedule_storage)
        pools = [_pool(one) for one in storages]
        assert len({id(one) for one in (first, *pools)}) == 4
        # What it had opened before it was told that it is a webserver would stay open.
        assert first.checkedin() + first.checkedout() == 0
        most = sum(pool.size() + pool._max_overflow for pool in pools)
    assert most == int(_stated_connections()["webserver"])


def _pool(storage: Any) -> QueuePool:
    pool = getattr(storage, "_storage", storage)._engine.pool
    assert isinstance(pool, QueuePool)
    return pool


def _stated_connections() -> dict[str, str]:
    """How many connections the page says that a process of each kind opens at most."""
    return dict(re.findall(r"^\| ([a-z ]+) \| (\d+) \|", PRODUCTION, re.M))


def test_runs_wait_in_the_queue_and_not_at_the_broker() -> None:
    worker = COMPOSE["services"]["worker"]
    words = list(map(str, worker["command"]))
    processes = int(words[words.index("--concurrency") + 1])
    runs = yaml.safe_load(INSTANCES["compose"].read_text())["concurrency"]["runs"]
    assert runs["max_concurrent_runs"] == worker["deploy"]["replicas"] * processes


def test_nothing_of_ours_is_kept_on_a_disk() -> None:
    for name, service in _ours().items():
        if name == TRIAL:
            continue
        for volume in service["volumes"]:
            assert volume.endswith(":ro"), (name, volume)
        assert service["environment"]["EXTRACTION_STORE_URL"].startswith("s3://")
    kinds = {next(key for key in one if key != "name") for one in _volumes()}
    assert kinds == {"configMap"}


def _volumes() -> list[dict[str, Any]]:
    return [
        *VALUES["dagsterWebserver"]["volumes"],
        *VALUES["dagsterDaemon"]["volumes"],
        *VALUES["dagster-user-deployments"]["deployments"][0]["volumes"],
    ]


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


def test_a_first_try_has_collections_and_a_provider_and_yours_are_mounted() -> None:
    assert EXAMPLE["EXTRACTION_COLLECTIONS"] == "shipped"
    words = list(map(str, COMPOSE["services"][TRIAL]["command"]))
    port = words[words.index("--port") + 1]
    for name, service in _ours().items():
        if name == TRIAL:
            continue
        url = service["environment"]["EXTRACTION_LOCAL_BASE_URL"]
        assert url == f"http://{TRIAL}:{port}/v1", name
        mounts = {one.removesuffix(":ro").rpartition(":")[2] for one in service["volumes"]}
        assert {"/etc/extraction/collections", "/srv/documents"} <= mounts, name
    told = (DEPLOY / "compose" / "settings.env.example").read_text()
    for place in ("EXTRACTION_COLLECTIONS=/etc/extraction/collections", "below /srv/documents"):
        assert place in told
    # How a first try becomes production is said where it is started, and on the page.
    for path in (DEPLOY / "compose" / "compose.yaml", ROOT / "docs" / "production.md"):
        assert f"--scale {TRIAL}=0" in path.read_text(), path
    assert not any(TRIAL in str(one.get("depends_on")) for one in COMPOSE["services"].values())


def test_the_batch_server_of_a_first_try_starts_and_asks_for_its_key(tmp_path: Path) -> None:
    words = list(map(str, COMPOSE["services"][TRIAL]["command"]))
    port = tmp_path / "port"
    for option, value in (("--port", "0"), ("--state", str(tmp_path / "state"))):
        words[words.index(option) + 1] = value
    program = str(Path(sys.prefix) / "bin" / words[0])
    process = subprocess.Popen(
        [program, *words[1:], "--port-file", str(port)],
        env={**_plain_environment(), "EXTRACTION_LOCAL_API_KEY": "a-word"},
    )
    try:
        while not port.exists():
            assert process.poll() is None, "it has ended"
            time.sleep(0.05)
        url = f"http://127.0.0.1:{port.read_text().strip()}/v1/batches"
        answers = [
            requests.get(url, headers={"Authorization": f"Bearer {word}"}, timeout=10).status_code
            for word in ("a-word", "another")
        ]
        assert answers == [200, 401]
    finally:
        process.terminate()
        process.wait()


def test_each_container_gets_the_secrets_that_it_needs_alone() -> None:
    secret = re.compile("PASSWORD|KEY|SECRET|DATABASE_URL|ROOT_USER")
    needed = {
        "postgres": {"POSTGRES_PASSWORD"},
        "store": {"MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD"},
        "bucket": {"MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD"}
        | {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"},
        TRIAL: {"EXTRACTION_LOCAL_API_KEY"},
    }
    for name, service in COMPOSE["services"].items():
        given = service.get("environment", {})
        if name in _ours() and name != TRIAL:
            servers = needed["postgres"] | needed["store"]
            assert {one for one in servers if given.get(one) == ""} == servers, name
            continue
        assert not service.get("env_file"), name
        assert {one for one in given if secret.search(one)} == needed.get(name, set()), name
    for name, given in ((one, COMPOSE["services"][one]["environment"]) for one in needed):
        for variable, value in given.items():
            assert value.startswith(f"${{{variable}:?"), name  # refused where it is empty


def test_the_user_of_the_store_may_use_one_bucket() -> None:
    policy = json.loads((DEPLOY / "compose" / "store_policy.json").read_text())
    resources = {one for statement in policy["Statement"] for one in statement["Resource"]}
    (bucket,) = {
        _ours()[name]["environment"]["EXTRACTION_STORE_URL"] for name in ("code", "worker")
    }
    name = bucket.removeprefix("s3://")
    assert resources == {f"arn:aws:s3:::{name}", f"arn:aws:s3:::{name}/*"}
    script = DEPLOY / "compose" / "make_bucket.sh"
    assert f"mc mb --ignore-existing root/{name}" in script.read_text()
    subprocess.run(["sh", "-n", str(script)], check=True)


def test_no_file_holds_a_secret() -> None:
    for name, value in EXAMPLE.items():
        if re.search("PASSWORD|KEY|SECRET|DATABASE_URL|ROOT_USER", name):
            assert value == "", name
    for path in FILES:
        found = re.findall(r"://[^\s/:@]+:([^\s/@]+)@|\b(sk-\w+|whsec_\w+)", path.read_text())
        assert all(word in ("", "PASSWORD") for one in found for word in one), path


@pytest.fixture
def surroundings(monkeypatch: pytest.MonkeyPatch, database_url: str) -> None:
    monkeypatch.setenv("EXTRACTION_DATABASE_URL", database_url)
    monkeypatch.setenv("CELERY_BROKER_URL", "redis://127.0.0.1:9/0")
    monkeypatch.setenv("RUN_NAMESPACE", "wards")


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


@pytest.mark.long
def test_the_wheel_is_all_that_a_container_needs(tmp_path: Path) -> None:
    source, wheels, installed = tmp_path / "source", tmp_path / "wheels", tmp_path / "installed"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    copytree(
        ROOT / "extraction_pipeline",
        source / "extraction_pipeline",
        ignore=ignore_patterns("__pycache__"),
    )
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(wheels), str(source)],
        check=True,
        capture_output=True,
    )
    (wheel,) = wheels.iterdir()
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        packed.extractall(installed)
    assert not any(name.startswith(("extraction_pipeline_tests", "benchmarks")) for name in names)
    assert {f"extraction_pipeline/{one}" for one in ("dagster.yaml", "py.typed")} <= names
    assert {one for one in names if "/samples/" in one or "/collections/" in one} == {
        str(one.relative_to(ROOT))
        for folder in ("samples", "collections")
        for one in (ROOT / "extraction_pipeline" / folder).rglob("*")
        if one.is_file() and "__pycache__" not in one.parts and one.name[0] != "."
    }
    loaded = subprocess.run(
        [
            *(sys.executable, "-P", "-c"),
            "import extraction_pipeline.definitions as found, extraction_pipeline.ledger.migrate;"
            "found.defs().resolve_job_def('scan_in_parts'); print(found.__file__)",
        ],
        cwd=tmp_path,
        env={**_plain_environment(), "PYTHONPATH": str(installed)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert loaded.stdout.strip().startswith(str(installed))


def _plain_environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("EXTRACTION_", "DAGSTER_"))
    }
