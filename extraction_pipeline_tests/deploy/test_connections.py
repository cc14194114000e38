"""The connections to PostgreSQL that the pages state are those that there can be."""

import re
from pathlib import Path
from typing import Any

import yaml
from dagster import DagsterInstance
from sqlalchemy.pool import QueuePool

from extraction_pipeline.dagster_storage.engines import CONNECTIONS_AT_MOST
from extraction_pipeline.webhooks.app import CONNECTIONS
from extraction_pipeline_tests.deploy.files import (
    COMPOSE,
    INSTANCES,
    PRODUCTION,
    ROOT,
    VALUES,
    ours,
)


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
        for one in ours().values()
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
