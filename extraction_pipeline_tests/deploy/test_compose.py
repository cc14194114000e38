"""The Compose file: its services, what they keep, and what each of them is given."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import requests
import yaml

from extraction_pipeline.ledger.tables import SCHEMA
from extraction_pipeline_tests.deploy.files import (
    COMPOSE,
    DEPLOY,
    EXAMPLE,
    INSTANCES,
    ROOT,
    TRIAL,
    VALUES,
    ours,
    plain_environment,
)


def test_the_services_are_those_of_production() -> None:
    commands = {name: " ".join(map(str, one["command"])) for name, one in ours().items()}
    daemons = [name for name, words in commands.items() if words.startswith("dagster-daemon")]
    assert len(daemons) == 1
    assert COMPOSE["services"][daemons[0]]["deploy"]["replicas"] == 1
    webservers = {name for name, words in commands.items() if "dagster-webserver" in words}
    assert {name for name in webservers if "--read-only" in commands[name]} == {"reviewers"}
    assert len(webservers) == 2
    workspace = yaml.safe_load((DEPLOY / "workspace.yaml").read_text())
    server = workspace["load_from"][0]["grpc_server"]
    assert f"-p {server['port']}" in commands[server["host"]]


def test_runs_wait_in_the_queue_and_not_at_the_broker() -> None:
    worker = COMPOSE["services"]["worker"]
    words = list(map(str, worker["command"]))
    processes = int(words[words.index("--concurrency") + 1])
    runs = yaml.safe_load(INSTANCES["compose"].read_text())["concurrency"]["runs"]
    assert runs["max_concurrent_runs"] == worker["deploy"]["replicas"] * processes


def test_nothing_of_ours_is_kept_on_a_disk() -> None:
    for name, service in ours().items():
        if name == TRIAL:
            continue
        for volume in service["volumes"]:
            assert volume.endswith(":ro"), (name, volume)
        assert service["environment"]["EXTRACTION_STORE_URL"].startswith("s3://")


def test_a_first_try_has_collections_and_a_provider_and_yours_are_mounted() -> None:
    assert EXAMPLE["EXTRACTION_COLLECTIONS"] == "shipped"
    words = list(map(str, COMPOSE["services"][TRIAL]["command"]))
    port = words[words.index("--port") + 1]
    for name, service in ours().items():
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
        env={**plain_environment(), "EXTRACTION_LOCAL_API_KEY": "a-word"},
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
        if name in ours() and name != TRIAL:
            servers = needed["postgres"] | needed["store"]
            assert {one for one in servers if given.get(one) == ""} == servers, name
            continue
        assert not service.get("env_file"), name
        assert {one for one in given if secret.search(one)} == needed.get(name, set()), name
    for name, given in ((one, COMPOSE["services"][one]["environment"]) for one in needed):
        for variable, value in given.items():
            assert value.startswith(f"${{{variable}:?"), name  # refused where it is empty


def test_the_database_is_used_by_a_role_whose_tables_are_not_among_the_ledgers() -> None:
    user = EXAMPLE["POSTGRES_USER"]
    assert user == VALUES["postgresql"]["postgresqlUsername"] != SCHEMA
    told = (DEPLOY / "compose" / "settings.env.example").read_text()
    database = EXAMPLE["POSTGRES_DB"]
    assert f"# postgresql://{user}:PASSWORD@postgres:5432/{database}\n" in told


def test_the_user_of_the_store_may_use_one_bucket() -> None:
    policy = json.loads((DEPLOY / "compose" / "store_policy.json").read_text())
    resources = {one for statement in policy["Statement"] for one in statement["Resource"]}
    (bucket,) = {ours()[name]["environment"]["EXTRACTION_STORE_URL"] for name in ("code", "worker")}
    name = bucket.removeprefix("s3://")
    assert resources == {f"arn:aws:s3:::{name}", f"arn:aws:s3:::{name}/*"}
    script = DEPLOY / "compose" / "make_bucket.sh"
    assert f"mc mb --ignore-existing root/{name}" in script.read_text()
    subprocess.run(["sh", "-n", str(script)], check=True)
