"""How batches come to their end, whatever happens on the way."""

import sqlite3
import time
from contextlib import closing
from typing import Any

import pytest

from extraction_pipeline_tests.batch_server.client import Client, jsonl, line
from extraction_pipeline_tests.batch_server.process import running_server, wait_until


def many(number: int) -> bytes:
    return jsonl(line(f"id-{n}") for n in range(number))


def ids(client: Client, batch: dict[str, Any], kind: str) -> list[str]:
    return [row["custom_id"] for row in client.rows(batch[f"{kind}_file_id"])]


@pytest.fixture
def slow(tmp_path):
    """A server whose batches take half a minute, and a client of it."""
    with running_server(tmp_path / "state", delay=30) as server:
        yield server, Client(server.base_url)


def answered(client: Client, batch_id: str, number: int) -> None:
    wait_until(
        lambda: client.get_batch(batch_id)["request_counts"]["completed"] == number, seconds=20
    )


def test_a_batch_takes_at_least_its_delay(tmp_path):
    with running_server(tmp_path / "state", delay=0.6) as server:
        client = Client(server.base_url)
        start = time.monotonic()
        first = client.batch_of(many(3))
        second = client.batch_of(many(3))
        assert client.ended(first)["status"] == client.ended(second)["status"] == "completed"
        # Both wait at the same time.
        assert 0.6 <= time.monotonic() - start < 3


def test_an_accepted_batch_is_not_forgotten_by_a_killed_server(slow):
    server, client = slow
    file = client.upload(many(5)).json()["id"]
    batch_id = client.create(file, metadata={"extraction_job_key": "k"}).json()["id"]
    server.restart(delay=0)
    batch = client.ended(batch_id)
    assert batch["status"] == "completed"
    assert len(set(ids(client, batch, "output"))) == 5
    statistics = server.statistics()
    assert (statistics["jobs_created"], statistics["requests_accepted"]) == (1, 5)
    assert statistics["files_uploaded"] == 1
    assert statistics["jobs_by_metadata"] == {"extraction_job_key": {"k": 1}}


@pytest.mark.parametrize("pause", [0.0, 0.15])
def test_a_batch_in_the_middle_goes_on_after_a_kill(tmp_path, pause):
    with running_server(tmp_path / "state") as server:
        client = Client(server.base_url)
        batch_id = client.batch_of(many(1000))
        time.sleep(pause)
        server.restart()
        batch = client.ended(batch_id)
        assert batch["request_counts"] == {"total": 1000, "completed": 1000, "failed": 0}
        found = ids(client, batch, "output")
        assert sorted(found) == sorted(f"id-{n}" for n in range(1000))
        wait_until(lambda: not list((server.state / "progress").iterdir()))
        left = {path.name for path in (server.state / "files").iterdir()}
        assert left == {batch["input_file_id"], batch["output_file_id"]}


def test_a_cancelled_batch_keeps_its_answers_and_names_the_rest(slow):
    _, client = slow
    batch_id = client.batch_of(many(4))
    answered(client, batch_id, 4)
    cancelling = client.call("POST", f"/batches/{batch_id}/cancel").json()
    assert cancelling["status"] in ("cancelling", "cancelled")
    batch = client.ended(batch_id)
    assert batch["status"] == "cancelled"
    assert len(ids(client, batch, "output")) == 4
    assert batch["cancelling_at"] <= batch["cancelled_at"]
    assert client.call("POST", f"/batches/{batch_id}/cancel").json() == batch


def test_a_server_killed_while_cancelling_still_cancels(slow):
    server, client = slow
    batch_id = client.batch_of(many(4))
    answered(client, batch_id, 4)
    client.call("POST", f"/batches/{batch_id}/cancel")
    server.restart()
    batch = client.ended(batch_id)
    assert batch["status"] == "cancelled"
    assert len(ids(client, batch, "output")) == 4


def test_an_expired_batch_hands_out_what_was_done(tmp_path):
    with running_server(tmp_path / "state", delay=30, window=0.7) as server:
        client = Client(server.base_url)
        batch = client.ended(client.batch_of(many(3)))
        assert (batch["status"], batch["request_counts"]["completed"]) == ("expired", 3)
        assert len(ids(client, batch, "output")) == 3
        assert batch["expired_at"] >= batch["expires_at"]


def test_a_batch_whose_input_vanished_does_not_hold_up_the_others(tmp_path):
    with running_server(tmp_path / "state", delay=30) as server:
        client = Client(server.base_url)
        lost = client.batch_of(many(2))
        server.kill()
        (server.state / "files" / client_input(server, lost)).unlink()
        for path in (server.state / "progress").iterdir():
            path.unlink()
        server.restart(delay=0)
        good = client.batch_of(many(2))
        assert client.ended(good)["status"] == "completed"
        assert client.get_batch(lost)["status"] in ("validating", "in_progress")
        assert "FileNotFoundError" in server.log.read_text()


def client_input(server, batch_id: str) -> str:
    """The input file of a batch, read from the state of a server that is not running."""
    with closing(sqlite3.connect(server.state / "server.sqlite3")) as database:
        query = "SELECT input_file_id FROM batches WHERE id = ?"
        return str(database.execute(query, (batch_id,)).fetchone()[0])


def test_what_a_killed_server_left_half_done_is_cleaned_up(slow):
    server, client = slow
    file = client.upload(many(1)).json()["id"]
    server.kill()
    (server.state / "files" / "file-without-record").write_bytes(b"{}")
    (server.state / "incoming" / "half").write_bytes(b"{")
    for suffix in ("", "-wal", "-shm"):
        (server.state / "progress" / f"batch_gone.sqlite3{suffix}").write_bytes(b"")
    (server.state / "progress" / "batch_half.sqlite3-wal").write_bytes(b"")
    server.restart()
    left = [path.name for path in server.state.rglob("*") if path.parent != server.state]
    assert left == [file]


OLDER = """
CREATE TABLE files (
    position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, size INTEGER NOT NULL,
    created_at REAL NOT NULL, filename TEXT NOT NULL, purpose TEXT NOT NULL,
    uploaded INTEGER NOT NULL, deleted INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE batches (
    position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, state TEXT NOT NULL,
    endpoint TEXT NOT NULL, completion_window TEXT NOT NULL, input_file_id TEXT NOT NULL,
    metadata TEXT, created_at REAL NOT NULL, expires_at REAL NOT NULL,
    reached TEXT NOT NULL DEFAULT '{}', model TEXT, total INTEGER,
    tally TEXT NOT NULL DEFAULT '{}', faults TEXT NOT NULL DEFAULT '[]',
    output_file_id TEXT, error_file_id TEXT
);
INSERT INTO files (id, size, created_at, filename, purpose, uploaded)
    VALUES ('file-a', 1, 1.0, 'in.jsonl', 'batch', 1);
INSERT INTO batches (id, state, endpoint, completion_window, input_file_id, metadata, created_at,
    expires_at) VALUES ('batch_a', 'validating', '/v1/chat/completions', '24h', 'file-a',
    '{"k": "v"}', 1.0, 9e9);
"""


def test_the_state_of_the_first_release_is_taken_over(tmp_path):
    state = tmp_path / "state"
    (state / "files").mkdir(parents=True)
    (state / "files" / "file-a").write_bytes(many(3))
    with closing(sqlite3.connect(state / "server.sqlite3")) as database:
        database.executescript(OLDER)
    with running_server(state) as server:
        client = Client(server.base_url)
        batch = client.ended("batch_a")
        assert batch["status"] == "completed" and len(ids(client, batch, "output")) == 3
        server.restart()
        assert client.get_batch("batch_a") == batch
        statistics = server.statistics()
        assert statistics["jobs_by_metadata"] == {"k": {"v": 1}}
        assert list(statistics["dialects"]) == ["openai"]  # type: ignore[call-overload]
