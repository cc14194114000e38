"""The server as a process: its start, its end, who may call it, and how much memory it takes."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import requests

from extraction_pipeline.batch_server.config import ServerConfig
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline_tests.batch_server.chat_endpoint import chat_endpoint, completion
from extraction_pipeline_tests.batch_server.client import Client, jsonl, line
from extraction_pipeline_tests.batch_server.process import running_server, wait_until


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "extraction_pipeline.batch_server", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, **environment},
        check=False,
    )


def test_it_tells_its_port_when_it_is_ready(tmp_path):
    port_file = tmp_path / "port"
    with running_server(tmp_path / "state", port_file=port_file) as server:
        assert server.root_url == f"http://127.0.0.1:{int(port_file.read_text())}"
        answer = requests.get(f"{server.root_url}/health", timeout=5)
        assert answer.json()["status"] == "ok"


@pytest.mark.parametrize("busy", [False, True])
def test_it_ends_within_two_seconds(tmp_path, busy):
    def for_ever(body):
        time.sleep(30)
        return completion()

    with (
        chat_endpoint(for_ever) as endpoint,
        running_server(tmp_path / "state", relay_url=endpoint.url) as server,
    ):
        if busy:
            client = Client(server.base_url)
            client.batch_of(jsonl(line(str(n), model="any") for n in range(9)))
            wait_until(lambda: endpoint.requests)
        start = time.monotonic()
        assert server.terminate() == 0
        assert time.monotonic() - start < 2.5
        assert "Traceback" not in server.log.read_text()


def test_one_state_folder_is_one_server_s(tmp_path):
    arriving = tmp_path / "state" / "incoming" / "upload"
    with running_server(tmp_path / "state"):
        arriving.write_bytes(b"{")
        second = run("--state", tmp_path / "state", "--port", 0)
        assert arriving.exists()
    assert second.returncode == 1
    assert re.fullmatch(r"Error: Another batch server is using .*\n", second.stderr)


def test_a_port_in_use_is_told_in_one_line(tmp_path):
    with running_server(tmp_path / "state") as server:
        second = run("--state", tmp_path / "other", "--port", server.root_url.rsplit(":")[-1])
    assert second.returncode == 1
    assert re.fullmatch(r"Error: .* cannot listen on .* --port .*\n", second.stderr)


def test_a_folder_that_cannot_be_used_is_told_in_one_line(tmp_path):
    home = tmp_path / "home"
    (home / "files").mkdir(parents=True)
    (home / "files" / "precious").write_text("")
    (home / "notes.txt").write_text("")
    for state in (home, home / "notes.txt" / "state"):
        answer = run("--state", state, "--port", 0)
        assert answer.returncode == 1
        assert re.fullmatch(r"Error: The (state )?folder .* with --state\.\n", answer.stderr)
    assert (home / "files" / "precious").exists()


def test_a_variable_that_is_not_set_is_told_in_one_line(tmp_path):
    answer = run("--state", tmp_path, "--api-key-variable", "NO_SUCH_VARIABLE")
    assert answer.returncode == 1
    assert re.fullmatch(r"Error: .* NO_SUCH_VARIABLE is not set\. .*\n", answer.stderr)


def test_the_network_is_let_in_only_with_a_key(tmp_path):
    with pytest.raises(ConfigurationError, match="no API key"):
        ServerConfig(state=tmp_path, host="0.0.0.0")
    assert not ServerConfig(state=tmp_path, host="0.0.0.0", api_key="k").is_loopback
    assert "secret" not in repr(ServerConfig(state=tmp_path, api_key="secret"))


def test_a_key_is_asked_for_everywhere(tmp_path):
    environment = {"TEST_BATCH_KEY": "sk-right"}
    with running_server(
        tmp_path / "state", environment=environment, api_key_variable="TEST_BATCH_KEY"
    ) as server:
        for key in (None, "sk-wrong", "", "sk-right "[:-2]):
            answer = Client(server.base_url, key).call("GET", "/batches")
            assert answer.status_code == 401
            assert answer.json()["error"]["code"] == "invalid_api_key"
            assert answer.headers["x-request-id"]
        assert requests.get(f"{server.root_url}/statistics", timeout=5).status_code == 401
        assert requests.get(f"{server.root_url}/health", timeout=5).status_code == 200
        assert Client(server.base_url, "sk-right").call("GET", "/batches").status_code == 200


def test_a_page_under_another_name_does_not_reach_it(server):
    answer = requests.get(
        f"{server.base_url}/batches", headers={"Host": "evil.example.org"}, timeout=5
    )
    assert answer.status_code == 400
    answer = requests.get(f"{server.base_url}/batches", headers={"Host": "localhost"}, timeout=5)
    assert answer.status_code == 200


def test_logs_hold_nothing_of_a_request(tmp_path):
    secret = "Jane-Doe-has-a-rare-illness"
    with running_server(tmp_path / "state") as server:
        client = Client(server.base_url)
        good = line("a", secret)
        odd = line("b", secret, response_format={"type": secret})
        client.ended(client.batch_of(jsonl([good, odd])))
        client.ended(client.batch_of(jsonl([good | {"method": secret}])))
        client.call("POST", "/batches", json={"input_file_id": secret, "metadata": secret})
        assert secret not in server.log.read_text()
        assert "1 completed, 1 failed" in server.log.read_text()


def peak_memory(pid: int) -> int:
    """Kilobytes."""
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_memory_does_not_grow_with_the_batch(tmp_path):
    with running_server(tmp_path / "state") as server:
        client = Client(server.base_url)
        client.ended(client.batch_of(jsonl(line(str(n)) for n in range(10))))
        before = peak_memory(server.pid)
        content = jsonl(line(str(n), "word " * 8000) for n in range(1500))
        assert len(content) > 60_000_000
        batch = client.ended(client.batch_of(content), seconds=30)
        assert batch["request_counts"]["completed"] == 1500
        assert peak_memory(server.pid) - before < 20_000


def test_an_upload_over_the_limit_is_refused(tmp_path):
    chunk = b"x" * 1_000_000

    def too_much():
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        for _ in range(203):
            yield chunk

    with running_server(tmp_path / "state") as server:
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        try:
            answer = requests.post(
                f"{server.base_url}/files", data=too_much(), headers=headers, timeout=30
            )
        except requests.ConnectionError:
            pass  # the server may close before all is sent
        else:
            assert answer.status_code == 413
            assert answer.json()["error"]["code"] == "file_too_large"
        assert server.statistics()["files_uploaded"] == 0
        assert list((server.state / "incoming").iterdir()) == []
