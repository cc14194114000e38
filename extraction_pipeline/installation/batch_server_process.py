"""The local batch server as a process of this one."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from extraction_pipeline.errors import ConfigurationError

START_SECONDS = 30.0
STOP_SECONDS = 10.0


@contextmanager
def batch_server_process(state: Path) -> Iterator[str]:
    """The base URL of a batch server over `state`: one that runs already, or one started here.

    A server that was started here ends here. It keeps its state, so a batch that was not done goes
    on with the next start. Raises `ConfigurationError` if none can be started.
    """
    state.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Beside the state folder, which is the server's own.
    port_file = state.with_name(f"{state.name}.port")
    running = _running(port_file)
    if running is not None:
        yield running
        return
    port_file.unlink(missing_ok=True)
    log_path = state.with_name(f"{state.name}.log")
    with log_path.open("ab") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "extraction_pipeline.batch_server",
                "--state",
                str(state),
                "--port",
                "0",
                "--port-file",
                str(port_file),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # Its own group: Ctrl-C reaches it through us, after those who use it have ended.
            start_new_session=True,
        )
    try:
        yield _wait_until_ready(process, port_file, log_path)
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _running(port_file: Path) -> str | None:
    try:
        port = int(port_file.read_text())
    except (OSError, ValueError):
        return None
    origin = f"http://127.0.0.1:{port}"
    try:
        answer = requests.get(f"{origin}/statistics", timeout=2)
        answer.raise_for_status()
        known = "jobs_created" in answer.json()
    except (requests.RequestException, ValueError):
        return None
    return f"{origin}/v1" if known else None


def _wait_until_ready(process: "subprocess.Popen[bytes]", port_file: Path, log: Path) -> str:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        base_url = _running(port_file)
        if base_url is not None:
            return base_url
        if process.poll() is not None:
            break
        time.sleep(0.05)  # a process of another session gives no signal when it listens
    raise ConfigurationError(
        "The batch server did not start.",
        remedy=f"Its log is {log}; to use another one, set EXTRACTION_LOCAL_BASE_URL.",
    )
