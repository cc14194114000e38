"""The ends of batches are announced in each provider's words, until somebody takes it."""

import json
import threading
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests
from click.testing import CliRunner
from starlette.datastructures import Headers

from extraction_pipeline.batch_server.command import batch_server
from extraction_pipeline.batch_server.config import ServerConfig
from extraction_pipeline.batch_server.webhooks import sender
from extraction_pipeline.batch_server.webhooks.targets import read_targets
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.webhooks.refusal import Refused
from extraction_pipeline.webhooks.shared_secret import SharedSecret
from extraction_pipeline.webhooks.standard import StandardSignature
from extraction_pipeline_tests.batch_server.client import Client, jsonl, line
from extraction_pipeline_tests.batch_server.in_process import served
from extraction_pipeline_tests.batch_server.process import wait_until
from extraction_pipeline_tests.batch_server.wire_clients import (
    AnthropicClient,
    GeminiClient,
    InfraiClient,
)
from extraction_pipeline_tests.webhooks.signing import OLD_SECRET, SECRET, SHOWN

STANDARD = StandardSignature([SECRET], 300.0)


@dataclass
class Inbox:
    """Somebody who is told. `says` are the statuses of the next answers; then it is 204."""

    taken: list[tuple[str, Headers, bytes]] = field(default_factory=list)
    says: list[int] = field(default_factory=list)
    url: str = ""

    def events(self):
        return [json.loads(body) for _, _, body in self.taken]

    def ids(self):
        return [headers["webhook-id"] for _, headers, _ in self.taken]

    def about(self):
        """The ids of batches, in the order in which they were announced."""
        return [event["data"]["id"] for event in self.events()]


@pytest.fixture(scope="module")
def shared_inbox():
    inbox = Inbox()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            inbox.taken.append((self.path, Headers(dict(self.headers.items())), body))
            self.send_response(inbox.says.pop(0) if inbox.says else 204)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            """Not to the test's output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    inbox.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield inbox
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def root_url(tmp_path_factory, shared_inbox):
    folder = tmp_path_factory.mktemp("webhooks")
    (folder / "webhooks.json").write_text(
        json.dumps(
            {
                "openai": {"url": f"{shared_inbox.url}/o", "secret": SECRET},
                "gemini": {"url": f"{shared_inbox.url}/g", "secret": SECRET},
                "infrai": {"url": f"{shared_inbox.url}/i", "secret": SHOWN},
            }
        )
    )
    config = ServerConfig(folder / "state", port=0, webhooks=folder / "webhooks.json")
    with served(config) as url:
        yield url


@pytest.fixture
def inbox(shared_inbox, root_url, monkeypatch):
    monkeypatch.setattr(sender, "FIRST_PAUSE", 0.02)
    yield shared_inbox
    put(root_url)
    shared_inbox.taken.clear()
    shared_inbox.says.clear()


@pytest.fixture
def client(root_url):
    return Client(f"{root_url}/v1")


def put(root_url, *faults):
    answer = requests.put(f"{root_url}/faults", json={"faults": faults}, timeout=5)
    assert answer.status_code == 200, answer.text


def test_openai_is_told_in_its_words(inbox, client):
    batch_id = client.batch_of(jsonl([line("a")]))
    wait_until(lambda: inbox.taken)
    ((path, headers, body),) = inbox.taken
    event = json.loads(body)
    assert path == "/o"
    assert set(event) == {"id", "object", "type", "created_at", "data"}
    assert (event["object"], event["type"]) == ("event", "batch.completed")
    assert event["data"] == {"id": batch_id}
    assert STANDARD.check(headers, body).delivery_id == headers["webhook-id"]
    with pytest.raises(Refused):
        StandardSignature([OLD_SECRET], 300.0).check(headers, body)


@pytest.mark.parametrize("how", ["expired", "cancelled", "failed"])
def test_every_end_is_told(inbox, client, root_url, how):
    put(root_url, {"kind": "ends", "how": how})
    batch_id = client.batch_of(jsonl([line("a")]))
    wait_until(lambda: inbox.taken)
    (event,) = inbox.events()
    assert (event["type"], event["data"]["id"]) == (f"batch.{how}", batch_id)


def test_gemini_and_infrai_are_told_in_theirs_and_anthropic_is_not(inbox, root_url):
    AnthropicClient(root_url).create(["k-0"])
    gemini = GeminiClient(root_url).create(["k-0"])
    infrai = InfraiClient(root_url).create(["k-0"])
    wait_until(lambda: len(inbox.taken) == 2)
    told = {path: (headers, body) for path, headers, body in inbox.taken}
    event = json.loads(told["/g"][1])
    assert (event["type"], event["version"]) == ("batch.succeeded", "v1")
    assert event["data"]["id"] == gemini
    assert STANDARD.check(*told["/g"])
    assert SharedSecret([SHOWN]).check(*told["/i"])
    assert json.loads(told["/i"][1])["data"]["batch_id"] == infrai


def test_row_59_whoever_does_not_take_it_is_told_again_and_a_redirect_is_no_receipt(inbox, client):
    inbox.says = [500, 302, 429, 200]
    client.batch_of(jsonl([line("a")]))
    wait_until(lambda: len(inbox.taken) == 4)
    assert len(set(inbox.ids())) == 1
    assert {path for path, _, _ in inbox.taken} == {"/o"}
    second = client.batch_of(jsonl([line("a")]))
    wait_until(lambda: second in inbox.about())
    assert len(inbox.taken) == 5


def test_nobody_is_told_for_ever(inbox, client, monkeypatch):
    monkeypatch.setattr(sender, "ATTEMPTS", 3)
    inbox.says = [500] * 3
    first = client.batch_of(jsonl([line("a")]))
    wait_until(lambda: not inbox.says)
    second = client.batch_of(jsonl([line("a")]))
    wait_until(lambda: second in inbox.about())
    assert Counter(inbox.about()) == {first: 3, second: 1}


def test_a_plan_says_how_it_is_announced(inbox, client, root_url):
    put(
        root_url,
        {"kind": "webhook", "what": "repeated", "times": 3, "job": 1},
        {"kind": "webhook", "what": "renumbered", "times": 3, "job": 2},
        {"kind": "webhook", "what": "late", "job": 3},
        {"kind": "webhook", "what": "foreign", "job": 4},
        {"kind": "webhook", "what": "lost", "job": 5},
        {"kind": "webhook", "what": "out_of_order", "job": 6},
    )
    batches = []
    for _ in range(7):
        batches.append(client.batch_of(jsonl([line("a")])))
        client.ended(batches[-1])
    wait_until(lambda: batches[5] in inbox.about())
    about = inbox.about()
    assert Counter(about).most_common(2) == [(batches[0], 3), (batches[1], 3)]
    assert [len(set(inbox.ids()[start : start + 3])) for start in (0, 3)] == [1, 3]
    late = inbox.taken[6]
    assert about[6] == batches[2]
    with pytest.raises(Refused, match="too far from now"):
        STANDARD.check(*late[1:])
    assert about[7] not in batches and about[8] == batches[3]
    assert about[9:] == [batches[6], batches[5]]
    assert batches[4] not in about


def test_a_plan_may_have_it_announced_before_the_client_knows(inbox, client, root_url):
    put(root_url, {"kind": "webhook", "what": "early"}, {"kind": "stuck"})
    batch_id = client.batch_of(jsonl([line("a")]))
    wait_until(lambda: inbox.about() == [batch_id])
    wait_until(lambda: client.get_batch(batch_id)["status"] == "in_progress")
    put(root_url, {"kind": "webhook", "what": "lost"})
    client.ended(batch_id)


def test_targets_may_change_while_the_server_runs(tmp_path, inbox):
    file = tmp_path / "webhooks.json"
    with served(ServerConfig(tmp_path / "state", port=0, webhooks=file)) as url:
        client = Client(f"{url}/v1")
        client.ended(client.batch_of(jsonl([line("a")])))
        assert inbox.taken == []
        file.write_text(json.dumps({"openai": {"url": inbox.url, "secret": SECRET}}))
        second = client.batch_of(jsonl([line("a")]))
        wait_until(lambda: second in inbox.about())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[", "wrong: Invalid JSON"),
        ('{"openai": {"url": "https://x.example/hidden"}}', "wrong at openai.secret"),
        ('{"openai": {"url": "ftp://x", "secret": "s"}}', "wrong at openai.url"),
        ('{"anthropic": {"url": "https://x", "secret": "hidden"}}', "anthropic"),
        ('{"openai": {"url": "https://x", "secret": "whsec_?hidden"}}', "no base64"),
    ],
)
def test_a_wrong_file_is_refused_at_the_start(tmp_path, content, said):
    path = tmp_path / "webhooks.json"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=said) as refusal:
        read_targets(path)
    assert "hidden" not in str(refusal.value)
    refused = CliRunner().invoke(
        batch_server, ["--state", str(tmp_path / "state"), "--webhooks", str(path)]
    )
    assert isinstance(refused.exception, ConfigurationError)
    assert not (tmp_path / "state").exists()
