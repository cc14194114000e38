"""`extraction-pipeline webhooks` as a process, and what it refuses."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from extraction_pipeline.cli.group import commands
from extraction_pipeline.errors import ExtractionPipelineError
from extraction_pipeline_tests.batch_server.process import wait_until
from extraction_pipeline_tests.webhooks.conftest import SECRETS, Desk

COMMAND = [sys.executable, "-m", "extraction_pipeline.cli", "webhooks"]


def environment(**variables: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("EXTRACTION_", "OPENAI_"))
    }
    return kept | variables


def test_a_process_receives_until_it_is_told_to_end(
    receiver: Desk, receivers_url: str, tmp_path: Path
) -> None:
    port_file = tmp_path / "port"
    process = subprocess.Popen(
        [*COMMAND, "--port", "0", "--port-file", str(port_file)],
        env=environment(EXTRACTION_DATABASE_URL=receivers_url, **SECRETS),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(port_file.exists)
        desk = Desk(f"http://127.0.0.1:{int(port_file.read_text())}", receiver.engine)
        job_id = receiver.submitted()
        assert desk.announce(job_id) == 200
        assert desk.post("openai", b"Mrs Doe", {}).status_code == 401
    finally:
        process.send_signal(signal.SIGTERM)
        output, told = process.communicate(timeout=30)
    assert process.returncode == 0, told
    assert output == f"listening on {desk.url}\n"
    assert "Webhooks are taken from: gemini, infrai, openai." in told
    assert "refused a delivery for openai: it is not signed" in told
    assert "Doe" not in told
    assert "Traceback" not in told
    assert receiver.is_due(job_id)
    assert not list(tmp_path.glob("port.*"))


@pytest.mark.parametrize(
    ("variables", "code", "said"),
    [
        ({}, 2, "Error: No provider has a secret for its webhooks"),
        ({"EXTRACTION_OPENAI_WEBHOOK_SECRET": "short"}, 2, "fewer than 16 characters"),
        ({"EXTRACTION_OPENAI_WEBHOOK_SECRET": "whsec_" + "?" * 20}, 2, "what is no base64"),
        (
            {"EXTRACTION_WEBHOOK_TOLERANCE_SECONDS": "301"},
            2,
            "EXTRACTION_WEBHOOK_TOLERANCE_SECONDS: should be less than or equal to 300",
        ),
    ],
)
def test_what_cannot_work_is_one_line_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    variables: dict[str, str],
    code: int,
    said: str,
) -> None:
    monkeypatch.setenv("EXTRACTION_HOME", str(tmp_path))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ExtractionPipelineError) as raised:
        commands.main(["webhooks", "--port", "0"], standalone_mode=False)
    assert raised.value.exit_code == code
    assert said in f"Error: {raised.value}"
    assert not any(value in str(raised.value) for value in variables.values() if len(value) > 4)
