"""`extraction-pipeline dev` as a data engineer uses it: a second version, backfilled in the UI."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import requests

from extraction_pipeline_tests.batch_server.process import wait_until

V1 = "  v1: {provider: local, model: rules-baseline, max_attempts: 2}\n"
V2 = "  v2: {provider: local, model: rules-baseline, max_attempts: 2, max_output_tokens: 2048}\n"
COLLECTION = """\
name: letters
description: Fictional letters.
document_type: discharge_summary
source: {{kind: folder, path: "{documents}"}}
active_version: v1
extraction_versions:
"""
SUBMISSIONS = {"path": ["letters", "batch_submissions"]}


class Installation:
    """A home, a collection of twelve letters in it, and the commands of a person."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.yaml = root / "collections" / "letters.yaml"
        documents = root / "documents"
        documents.mkdir()
        self.yaml.parent.mkdir()
        for number in range(12):
            (documents / f"letter-{number:02}.txt").write_text(
                f"DISCHARGE SUMMARY\n\nRecord {number}\n\nDISCHARGE DIAGNOSES:\n"
                f"1. Fictional condition {number}.\n"
            )
        self.yaml.write_text(COLLECTION.format(documents=documents) + V1)
        self.environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("EXTRACTION_", "DAGSTER_", "OPENAI_"))
            },
            "EXTRACTION_HOME": str(self.home),
            "EXTRACTION_COLLECTIONS": str(self.yaml.parent),
            "EXTRACTION_POLL_SECONDS": "0.5",
        }

    def command(self, *words: str) -> str:
        """Run a command to its good end; its standard output."""
        done = subprocess.run(
            [sys.executable, "-m", "extraction_pipeline.cli", *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def dev(self) -> Iterator["Dev"]:
        """The command, left running; whatever it left behind at the end of a test is killed."""
        port = free_port()
        log = self.home.parent / "dev.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "extraction_pipeline.cli", "dev", "--port", str(port)],
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            yield Dev(process, f"http://127.0.0.1:{port}", log)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(60)
            for pid in self.processes():
                os.kill(pid, signal.SIGKILL)

    def processes(self) -> list[int]:
        """Every process of this machine that was started with, or in, this home."""
        mark = str(self.home).encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                of_process = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
                zombie = b") Z " in (entry / "stat").read_bytes()
            except OSError:
                continue  # it has ended meanwhile
            if mark in of_process and not zombie and int(entry.name) != os.getpid():
                found.append(int(entry.name))
        return found


class Dev:
    """A running `dev`, and what the UI asks of it."""

    def __init__(self, process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
        self.process = process
        self._url = url
        self._log = log

    def ready(self) -> bool:
        assert self.process.poll() is None, self._log.read_text()[-3000:]
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


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks processes up in /proc")
def test_a_second_version_is_backfilled_from_the_ui_and_ctrl_c_ends_everything(
    tmp_path: Path,
) -> None:
    installation = Installation(tmp_path)
    installation.command("run", "--collection", "letters", "--wait")
    installation.yaml.write_text(installation.yaml.read_text() + V2)
    with installation.dev() as dev:
        wait_until(dev.ready, 60)
        jobs_before = dev.provider_jobs()
        documents = dev.documents()
        # Scattered over the documents, and half of it done before, at v1.
        chosen = sorted(f"{one}|v2" for one in (*documents[1:3], *documents[6:8]))
        done_before = [f"{one}|v1" for one in documents[3:7]]
        backfill = dev.backfill(chosen + done_before)
        wait_until(lambda: dev.runs(backfill) == ["SUCCESS"] * 3, 90)
        wait_until(lambda: set(chosen) <= set(dev.materialized("extractions")), 60)
        assert dev.provider_jobs() - jobs_before == 1
        of_v2 = [one for one in dev.materialized("extractions") if one.endswith("|v2")]
        assert of_v2 == chosen, "one record for each document of the backfill"
        installation.yaml.write_text(
            installation.yaml.read_text().replace("active_version: v1", "active_version: v2")
        )
        told = orjson.loads(installation.command("status", "--json"))["collections"]["letters"]
        assert (told["published"], told["waiting"]) == (len(chosen), 12 - len(chosen))
        started = installation.processes()
        assert len(started) >= 5, "the search for processes finds those that run"
        dev.process.send_signal(signal.SIGINT)
        assert dev.process.wait(60) == 0
        wait_until(lambda: not installation.processes(), 15)
