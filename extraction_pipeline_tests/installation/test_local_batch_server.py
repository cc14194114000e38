"""The local batch server: shared by those who use it, and never taken for another."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import requests

from extraction_pipeline.batch_server.state_folder import Holder, holder
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.installation.ending import is_alive
from extraction_pipeline.installation.local_batch_server import local_batch_server
from extraction_pipeline_tests.batch_server.process import running_server, wait_until

USE_IT = """
import os, sys
from pathlib import Path
from extraction_pipeline.installation.local_batch_server import local_batch_server
with local_batch_server(Path(sys.argv[1])) as url:
    print(url, flush=True)
    sys.stdin.read()
"""


def answers(base_url: str) -> bool:
    return requests.get(f"{base_url}/models", timeout=5).status_code < 500


def held(state: Path) -> Holder:
    found = holder(state)
    assert found is not None
    return found


@contextmanager
def foreign_server() -> Iterator[int]:
    """The port of a server that says of itself what a batch server could."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"status": "ok", "jobs_created": 0, "instance": "f" * 32}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def test_who_leaves_first_does_not_stop_it_for_the_other(tmp_path: Path) -> None:
    state = tmp_path / "batch_server"
    with local_batch_server(state) as one:
        with local_batch_server(state) as other:
            assert one == other
        assert answers(one)
        server = held(state).pid
    assert not is_alive(server)
    assert not (tmp_path / "batch_server.port").exists()


def test_a_killed_user_s_server_is_taken_over_and_ended(tmp_path: Path) -> None:
    state = tmp_path / "batch_server"
    user = subprocess.Popen(
        [sys.executable, "-c", USE_IT, str(state)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert user.stdout is not None
    assert user.stdout.readline().startswith(b"http")
    user.kill()
    user.communicate()
    left = held(state)
    with local_batch_server(state) as url:
        assert answers(url)
        assert held(state) == left
    assert not is_alive(left.pid)


def test_an_old_port_that_another_server_has_is_not_used(tmp_path: Path) -> None:
    state = tmp_path / "batch_server"
    with foreign_server() as port:
        (tmp_path / "batch_server.port").write_text(f"{port}\n")
        with local_batch_server(state) as url:
            assert url != f"http://127.0.0.1:{port}/v1"


def test_a_server_that_answers_no_more_is_replaced(tmp_path: Path) -> None:
    state = tmp_path / "batch_server"
    with local_batch_server(state):
        stuck = held(state).pid
        os.kill(stuck, signal.SIGSTOP)
        # SIGTERM waits for a stopped process to go on; SIGKILL does not.
        threading.Timer(3.0, os.kill, (stuck, signal.SIGCONT)).start()
        with local_batch_server(state) as url:
            assert answers(url)
            assert held(state).pid != stuck
        wait_until(lambda: not is_alive(stuck))


def test_a_server_that_a_person_started_is_left_alone_and_named_as_the_cause(
    tmp_path: Path,
) -> None:
    state = tmp_path / "batch_server"
    with running_server(state) as server:
        with (
            pytest.raises(ConfigurationError, match="Another batch server is using"),
            local_batch_server(state),
        ):
            pass
        assert server.statistics()
