"""Commands that are interrupted or killed, or find no provider: nothing goes out twice."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import orjson
import pytest

from extraction_pipeline_tests.batch_server.process import ServerProcess, running_server, wait_until
from extraction_pipeline_tests.cli.installation import Installation
from extraction_pipeline_tests.faults.actions import Hold
from extraction_pipeline_tests.faults.proxy import CONTENT, CREATE, Proxy, running_proxy
from extraction_pipeline_tests.faults.signals import ignore_ctrl_c

RUN = ("run", "--collection", "letters", "--wait")
HELD_SECONDS = 60.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("cli") / "batch_server") as running:
        yield running


@pytest.fixture
def proxy(server: ServerProcess) -> Iterator[Proxy]:
    with running_proxy(server.base_url) as running:
        yield running


@pytest.fixture
def installation(tmp_path: Path, proxy: Proxy) -> Iterator[Installation]:
    """Three letters, and a proxy for the provider; nothing runs in its home after the test."""
    place = Installation(
        tmp_path,
        letters=3,
        EXTRACTION_LOCAL_BASE_URL=proxy.base_url,
        EXTRACTION_RESOLVE_GRACE_SECONDS="0",
    )
    yield place
    place.kill_processes()


def test_ctrl_c_while_a_job_is_created_and_once_more_is_one_job(
    installation: Installation, proxy: Proxy
) -> None:
    hold = Hold(forward=True)
    proxy.plan(CREATE, hold)
    with installation.started(*RUN) as process:
        assert hold.reached.wait(HELD_SECONDS), installation.log.read_text()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert installation.log.read_text().splitlines()[-1] == (
            "Interrupted. What a provider has is kept and found again."
        )
        assert "Traceback" not in installation.log.read_text()
        installation.wait_for_none()
    assert "3 documents, 3 published" in installation.command(*RUN)
    assert proxy.count(CREATE) == 1
    assert not installation.processes()


def test_ctrl_c_at_a_terminal_is_answered_in_one_line(
    installation: Installation, proxy: Proxy
) -> None:
    """It reaches all processes that the command has not set apart, in the middle of a run."""
    hold = Hold(forward=True)
    proxy.plan(CREATE, hold)
    with installation.at_a_terminal(*RUN) as (process, terminal):
        assert hold.reached.wait(HELD_SECONDS)
        os.write(terminal, b"\x03")
        shown = told_at(terminal)
        assert process.wait(30) == 130
    lines = [line for line in shown.splitlines() if line.strip("^C")]
    assert lines == [
        "scanning letters",
        "submitting what letters lacks at v1",
        "Interrupted. What a provider has is kept and found again.",
    ]


def told_at(terminal: int) -> str:
    """Everything that is shown until the last process at the terminal has ended."""
    shown = b""
    with suppress(OSError):  # how a terminal says that nobody is there any more
        while read := os.read(terminal, 65536):
            shown += read
    return shown.decode()


@pytest.mark.long
def test_a_machine_that_goes_down_while_it_collects_goes_on_where_it_was(
    installation: Installation, proxy: Proxy
) -> None:
    hold = Hold(forward=False)
    proxy.plan(CONTENT, hold)
    with installation.started(*RUN):
        assert hold.reached.wait(HELD_SECONDS), installation.log.read_text()
        installation.kill_processes()
    assert "3 documents, 3 published" in installation.command(*RUN)
    assert proxy.count(CREATE) == 1
    told = orjson.loads(installation.command("status", "--json"))
    assert told["open_jobs"] == []


def test_without_a_provider_a_wait_says_what_it_waits_for(tmp_path: Path) -> None:
    """In the background of a script, where Ctrl-C is ignored and SIGTERM must not be: Dagster makes
    one of the other when it has executed a run."""
    nowhere = Installation(tmp_path, 1, EXTRACTION_LOCAL_BASE_URL="http://127.0.0.1:9/v1")
    with nowhere.started_from_nothing(*RUN, beginning=ignore_ctrl_c) as process:
        wait_until(lambda: "no connection could be made" in nowhere.log.read_text(), HELD_SECONDS)
        wait_until(lambda: "open batch jobs: 1 prepared" in nowhere.log.read_text())
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143
        wait_until(lambda: not nowhere.processes())
    told = orjson.loads(nowhere.command("status", "--json"))
    assert [job["state"] for job in told["open_jobs"]] == ["prepared"]
    assert told["collections"]["letters"]["waiting"] == 1


def test_migrating_a_fresh_home_and_again_says_the_version(tmp_path: Path) -> None:
    installation = Installation(tmp_path, letters=0)
    first = installation.command("migrate")
    assert first.startswith("The ledger's tables are at version 0")
    assert installation.command("migrate") == first
