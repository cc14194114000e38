"""Commands that are told to end, at whatever moment: an exit code, one line, and nothing left."""

import os
import signal
import time
from pathlib import Path

import pytest

from extraction_pipeline_tests.cli.installation import Installation


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_nothing_stays_when_a_run_is_told_to_end(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    installation = Installation(tmp_path, letters=1)
    with installation.started("run", "--collection", "letters", "--wait") as process:
        installation.wait_for("extraction_pipeline.batch_server")
        process.send_signal(number)
        if number == signal.SIGHUP:
            process.send_signal(number)  # as closing terminals do
        assert process.wait(60) == code
        assert not installation.processes()
    assert installation.log.read_text().splitlines()[-1].startswith("Interrupted. ")
    assert "Traceback" not in installation.log.read_text()


@pytest.mark.parametrize("seconds", [0.3, 0.6, 0.9, 1.2, 1.6])
def test_ctrl_c_at_any_moment_of_the_start_is_no_traceback(tmp_path: Path, seconds: float) -> None:
    installation = Installation(tmp_path, letters=1)
    with installation.started_from_nothing("run", "--collection", "letters", "--wait") as process:
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert not installation.processes()
    assert installation.log.read_text().splitlines()[-1].startswith("Interrupted. ")
    assert "Traceback" not in installation.log.read_text()


def test_a_run_that_ends_first_leaves_the_services_to_the_other(tmp_path: Path) -> None:
    installation = Installation(tmp_path, letters=2)
    with installation.started("dev", "--port", "0"):
        installation.wait_for("extraction_pipeline.installation.tether")
        server = installation.process_of("extraction_pipeline.batch_server")
        done = installation.command("run", "--collection", "letters", "--wait")
        assert "2 documents, 2 published" in done
        assert installation.process_of("extraction_pipeline.batch_server") == server
        assert installation.process_of("postgres")
    assert not installation.processes()


def test_a_home_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    installation = Installation(tmp_path, letters=0)
    (tmp_path / "file").touch()
    installation.environment["EXTRACTION_HOME"] = str(tmp_path / "file" / "home")
    for words in (["demo"], ["status"], ["dev", "--port", "0"]):
        done = installation.try_command(*words)
        assert done.returncode == 2
        assert done.stderr == (
            f"Error: The state folder {tmp_path}/file/home cannot be written: Not a directory. "
            "Set EXTRACTION_HOME to a folder that can.\n"
        )


def test_a_home_that_nobody_can_look_for_is_one_line(tmp_path: Path) -> None:
    """As one below a folder that this account may not enter."""
    installation = Installation(tmp_path, letters=0)
    home = tmp_path / ("x" * 300)
    installation.environment["EXTRACTION_HOME"] = str(home)
    for words in (["status"], ["dev", "--port", "0"], ["contract", "openai"]):
        done = installation.try_command(*words)
        assert done.returncode == 2
        assert done.stderr == (
            f"Error: The state folder {home} cannot be written: File name too long. "
            "Set EXTRACTION_HOME to a folder that can.\n"
        )


def test_help_and_slips_are_answered_at_once(tmp_path: Path) -> None:
    installation = Installation(tmp_path, letters=0)
    for words, code in ((["--help"], 0), (["demo", "--help"], 0), (["run", "--wrong"], 2)):
        before = os.times()
        assert installation.try_command(*words).returncode == code
        after = os.times()
        # Of the processor, so that a busy machine does not count.
        assert after.children_user - before.children_user < 1.0
