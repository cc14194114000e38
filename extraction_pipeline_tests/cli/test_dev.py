"""`extraction-pipeline dev` as a data engineer uses it: a second version, backfilled in the UI."""

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
import requests

from extraction_pipeline.cli.development import WATCH_SECONDS
from extraction_pipeline_tests.batch_server.process import wait_until
from extraction_pipeline_tests.cli.installation import Installation

DAGSTER = "extraction_pipeline.installation.quiet_dagster"
ASK_SECONDS = 0.5
"""Between two questions to the UI, which has its work to do on the same machine."""
SUBMISSIONS = {"path": ["letters", "batch_submissions"]}


class Dev:
    """A running `dev`, and what the UI asks of it."""

    def __init__(self, process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
        self._process = process
        self._url = url
        self._log = log

    def ready(self) -> bool:
        assert self._process.poll() is None, self._log.read_text()[-3000:]
        try:
            answer = self.ask("{workspaceOrError{... on Workspace{locationEntries{loadStatus}}}}")
        except requests.RequestException:
            return False
        entries = answer["workspaceOrError"].get("locationEntries") or []
        return [entry["loadStatus"] for entry in entries] == ["LOADED"]

    def provider_jobs(self) -> int:
        """How many batch jobs the server that `dev` started has ever accepted."""
        said = re.search(r"^Batch server: (http://\S+)/v1$", self._log.read_text(), re.MULTILINE)
        assert said is not None
        return int(requests.get(f"{said[1]}/statistics", timeout=10).json()["jobs_created"])

    def ask(self, query: str, variables: Mapping[str, object] | None = None) -> dict[str, Any]:
        """The data of a GraphQL answer."""
        answer = requests.post(
            f"{self._url}/graphql",
            json={"query": query, "variables": dict(variables or {})},
            timeout=30,
        )
        answer.raise_for_status()
        body = answer.json()
        assert "errors" not in body, body["errors"]
        return dict(body["data"])

    def documents(self) -> list[str]:
        dimensions = self.ask(
            "query($key:AssetKeyInput!){assetNodeOrError(assetKey:$key){... on AssetNode"
            "{partitionKeysByDimension{name partitionKeys}}}}",
            {"key": SUBMISSIONS},
        )["assetNodeOrError"]["partitionKeysByDimension"]
        return next(list(one["partitionKeys"]) for one in dimensions if one["name"] == "document")

    def backfill(self, partitions: list[str]) -> str:
        launched = self.ask(
            "mutation($asked:LaunchBackfillParams!){launchPartitionBackfill(backfillParams:$asked)"
            "{__typename ... on LaunchBackfillSuccess{backfillId} ... on PythonError{message}}}",
            {"asked": {"assetSelection": [SUBMISSIONS], "partitionNames": partitions, "tags": []}},
        )["launchPartitionBackfill"]
        assert "backfillId" in launched, launched
        return str(launched["backfillId"])

    def runs(self, backfill: str) -> list[str]:
        """How the runs of a backfill stand: one for each contiguous range."""
        found = self.ask(
            "query($id:String!){partitionBackfillOrError(backfillId:$id)"
            "{... on PartitionBackfill{runs(limit:100){status}}}}",
            {"id": backfill},
        )["partitionBackfillOrError"]
        return [one["status"] for one in found["runs"]]

    def materialized(self, asset: str) -> list[str]:
        """Partitions of the materializations of an asset, as its page lists them."""
        found = self.ask(
            "query($key:AssetKeyInput!){assetOrError(assetKey:$key){... on Asset"
            "{assetMaterializations(limit:1000){partition}}}}",
            {"key": {"path": ["letters", asset]}},
        )["assetOrError"]
        return sorted(one["partition"] for one in found["assetMaterializations"])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.mark.long
def test_a_second_version_is_backfilled_from_the_ui_and_ctrl_c_ends_everything(
    tmp_path: Path,
) -> None:
    """All in a folder whose files hide nothing, and with a document type that is found there."""
    installation = Installation(tmp_path, letters=8)
    files_of_mine(installation)
    installation.command("run", "--collection", "letters", "--wait")
    installation.declare_second_version()
    port = free_port()
    with installation.started_from_nothing("dev", "--port", str(port)) as process:
        dev = Dev(process, f"http://127.0.0.1:{port}", installation.log)
        wait_until(dev.ready, 60, ASK_SECONDS)
        jobs_before = dev.provider_jobs()
        documents = dev.documents()
        # Scattered over the documents: two runs at once, and one batch job.
        chosen = sorted(f"{documents[one]}|v2" for one in (1, 2, 6))
        backfill = dev.backfill(chosen)
        wait_until(lambda: dev.runs(backfill) == ["SUCCESS"] * 2, 90, ASK_SECONDS)
        wait_until(lambda: set(chosen) <= set(dev.materialized("extractions")), 60, ASK_SECONDS)
        assert dev.provider_jobs() - jobs_before == 1
        of_v2 = [one for one in dev.materialized("extractions") if one.endswith("|v2")]
        assert of_v2 == chosen, "one record for each document of the backfill"
        installation.activate_second_version()
        status = orjson.loads(installation.command("status", "--json"))
        told = status["collections"]["letters"]
        assert (told["published"], told["waiting"]) == (len(chosen), 8 - len(chosen))
        # Its own batch server announced the job, and nobody else's receiver was told.
        assert sum(status["webhooks"].values()) == 1
        assert set(status["webhooks"]) <= {"made_due", "settled"}
        started = installation.processes()
        assert len(started) >= 5, "the search for processes finds those that run"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        installation.wait_for_none()
    assert "a file of mine" not in installation.log.read_text()


def files_of_mine(installation: Installation) -> None:
    """Files named as modules that `dev` imports, and the module of the collection's type."""
    for module in ("gql", "requests", "sqlalchemy", "email"):
        (installation.folder / f"{module}.py").write_text("raise RuntimeError('a file of mine')\n")
    (installation.folder / "ward_types.py").write_text(
        "from extraction_pipeline.schemas.discharge_summary import DOCUMENT_TYPE as LETTER\n"
    )
    declared = installation.yaml.read_text()
    installation.yaml.write_text(declared.replace("discharge_summary", "ward_types:LETTER"))


def test_dev_is_refused_where_it_cannot_run(tmp_path: Path) -> None:
    installation = Installation(tmp_path, letters=0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = str(listener.getsockname()[1])
        for port, cause in ((taken, "cannot listen on"), ("70000", "70000 is no port")):
            done = installation.try_command("dev", "--port", port)
            assert done.returncode == 2
            assert len(done.stderr.splitlines()) == 1
            assert cause in done.stderr
    assert not installation.home.exists(), "nothing was started"


@pytest.mark.long
def test_dev_ends_when_a_part_of_it_does_and_says_which(tmp_path: Path) -> None:
    installation = Installation(tmp_path, letters=0)
    with installation.started("dev", "--port", "0") as process:
        installation.wait_for("dagster._daemon")
        with socket.create_server(("127.0.0.1", 0)) as listener:  # as the first one's UI does
            taken = str(listener.getsockname()[1])
            second = installation.try_command("dev", "--port", taken)
        assert second.returncode == 2
        assert second.stderr.startswith("Error: Another `dev` runs over ")
        time.sleep(2 * WATCH_SECONDS)
        os.kill(installation.process_of("dagster._daemon"), signal.SIGKILL)
        assert process.wait(60) == 1
        assert not installation.processes()
    told = installation.log.read_text()
    assert "What ended by itself is the Dagster daemon;" in told
    assert "Launching Dagster services" in told
    assert "superseded" not in told
    assert "dagster.yaml" not in told, "where the tests run there is one, as in a user's clone"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_nothing_stays_when_dev_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    installation = Installation(tmp_path, letters=0)
    with installation.started("dev", "--port", "0") as process:
        installation.wait_for(DAGSTER)
        process.send_signal(number)
        assert process.wait(60) == 0
        assert not installation.processes()
    assert "Traceback" not in installation.log.read_text()


def test_what_a_killed_dev_leaves_is_ended_by_the_next_command(tmp_path: Path) -> None:
    installation = Installation(tmp_path, letters=0)
    with installation.started("dev", "--port", "0") as process:
        installation.wait_for("dagster._daemon")
        process.kill()
        process.wait()
        installation.wait_for_none("dagster", DAGSTER)
        assert installation.process_of("postgres"), "nobody is there to end it"
        assert installation.process_of("extraction_pipeline.batch_server")
        installation.command("status")
        assert not installation.processes()


def test_dev_names_a_service_that_ended(tmp_path: Path) -> None:
    installation = Installation(tmp_path, letters=0)
    with installation.started("dev", "--port", "0") as process:
        installation.wait_for("extraction_pipeline.batch_server")
        installation.wait_for("extraction_pipeline.installation.tether")
        os.kill(installation.process_of("extraction_pipeline.batch_server"), signal.SIGKILL)
        assert process.wait(60) == 1
        assert not installation.processes()
    assert "What ended by itself is the batch server;" in installation.log.read_text()
