"""Faults on demand, as a client of the wire sees them. What they do to the pipeline is in
`lifecycle/test_faults_on_demand.py`."""

import json
import time
from email.utils import parsedate_to_datetime

import pytest
import requests
from click.testing import CliRunner

from extraction_pipeline.batch_server.command import batch_server
from extraction_pipeline.batch_server.config import ServerConfig
from extraction_pipeline.batch_server.faults.plan import load_plan
from extraction_pipeline.batch_server.questions import question_digest
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline_tests.batch_server.client import Client, jsonl, line
from extraction_pipeline_tests.batch_server.in_process import served
from extraction_pipeline_tests.batch_server.wire_clients import (
    WIRE_CLIENTS,
    AnthropicClient,
    GeminiClient,
    InfraiClient,
)

MARKS = ["k-0", "k-1", "k-2"]


@pytest.fixture(scope="module")
def root_url(tmp_path_factory):
    with served(ServerConfig(tmp_path_factory.mktemp("faults") / "state", port=0)) as url:
        yield url


@pytest.fixture(autouse=True)
def no_faults_afterwards(root_url):
    yield
    put(root_url)


@pytest.fixture
def client(root_url):
    return Client(f"{root_url}/v1")


def put(root_url, *faults):
    answer = requests.put(f"{root_url}/faults", json={"faults": faults}, timeout=5)
    assert answer.status_code == 200, answer.text


def statistics(root_url):
    return requests.get(f"{root_url}/statistics", timeout=5).json()


def test_an_id_in_the_prompt_makes_no_other_question():
    def body(mark):
        return {"model": "m", "messages": [{"role": "user", "content": f'Copy "{mark}". Text.'}]}

    marks = ['first"-0123456789abcdef', 'second"-0123456789abcdef']
    alike = {question_digest(body(mark), json.dumps({"key": mark})) for mark in marks}
    assert len(alike) == 1
    assert len({question_digest(body(mark), mark) for mark in ("Text", "text")}) == 2


def test_a_plan_is_shown_as_it_was_put(root_url):
    plan = [{"kind": "drop", "call": "create", "accepted": True, "first": 1, "name": "lost"}]
    put(root_url, *plan)
    assert requests.get(f"{root_url}/faults", timeout=5).json() == {"faults": plan}


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ('{"faults": [{"kind": "drip"}]}', "faults.0"),
        ('{"faults": [{"kind": "slow"}]}', "faults.0.slow.seconds"),
        ('{"faults": [{"kind": "slow", "seconds": 1, "when": 1}]}', "faults.0.slow.when"),
        ('{"faults": [{"kind": "drop", "call": "create", "job": 1}]}', "about one batch"),
        ('{"fault": []}', "fault"),
        ("[", "JSON"),
    ],
)
def test_a_wrong_plan_is_refused_with_the_place(root_url, tmp_path, content, place):
    answer = requests.put(f"{root_url}/faults", data=content, timeout=5)
    assert answer.status_code == 400 and place in answer.json()["error"]["message"]
    path = tmp_path / "plan.json"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=place) as refusal:
        load_plan(path)
    assert refusal.value.remedy and "\n" not in str(refusal.value)


def test_a_plan_file_is_read_at_the_start(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_plan(tmp_path / "none.json")
    refused = CliRunner().invoke(
        batch_server, ["--state", str(tmp_path / "state"), "--faults", str(tmp_path / "none.json")]
    )
    assert isinstance(refused.exception, ConfigurationError)
    assert not (tmp_path / "state").exists()
    path = tmp_path / "plan.json"
    path.write_text('{"faults": [{"kind": "answer", "call": "list", "status": 503}]}')
    with served(ServerConfig(tmp_path / "state", port=0, faults=load_plan(path))) as url:
        assert Client(f"{url}/v1").call("GET", "/batches").status_code == 503


def test_the_plan_is_behind_the_key(tmp_path):
    with served(ServerConfig(tmp_path / "state", port=0, api_key="k")) as url:
        assert requests.get(f"{url}/faults", timeout=5).status_code == 401
        assert requests.put(f"{url}/faults", json={"faults": []}, timeout=5).status_code == 401
        other_host = {"Host": "evil.example.org", "Authorization": "Bearer k"}
        answer = requests.put(f"{url}/faults", json={}, headers=other_host, timeout=5)
        assert answer.status_code == 400


def test_an_accepted_create_whose_answer_is_lost_is_counted(root_url, client):
    content = jsonl([line("a")])
    before = statistics(root_url)
    put(
        root_url,
        {"kind": "drop", "call": "create", "accepted": True, "first": 1, "name": "lost"},
        {"kind": "drop", "call": "create", "first": 1, "name": "never heard"},
    )
    file_id = client.upload(content).json()["id"]
    for _ in range(2):
        with pytest.raises(requests.ConnectionError):
            client.create(file_id)
    assert client.create(file_id).status_code == 200
    after = statistics(root_url)
    assert after["jobs_created"] - before["jobs_created"] == 2
    assert (after["faults_applied"]["lost"], after["faults_applied"]["never heard"]) == (1, 1)


def test_errors_have_each_wire_formats_own_form(root_url, client):
    put(root_url, {"kind": "answer", "call": "list", "status": 429, "retry_after": 7})
    openai = client.call("GET", "/batches")
    anthropic = AnthropicClient(root_url).call("GET", "/v1/messages/batches")
    gemini = GeminiClient(root_url).call("GET", "/v1beta/batches")
    assert {one.headers["retry-after"] for one in (openai, anthropic, gemini)} == {"7"}
    assert openai.json()["error"]["type"] and openai.headers["x-request-id"]
    assert anthropic.json()["error"]["type"] == "rate_limit_error"
    assert gemini.json()["error"]["status"] == "RESOURCE_EXHAUSTED"
    put(root_url, {"kind": "answer", "status": 529}, {"kind": "no_credit"})
    answer = AnthropicClient(root_url).ask(MARKS)
    assert (answer.status_code, answer.json()["error"]["type"]) == (529, "overloaded_error")
    put(root_url, {"kind": "no_credit"})
    answer = InfraiClient(root_url).ask(MARKS)
    assert (answer.status_code, answer.json()["error"]["code"]) == (402, "INSUFFICIENT_CREDIT")
    refused = client.create(client.upload(jsonl([line("a")])).json()["id"])
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "insufficient_quota")


def test_a_wait_can_be_told_as_a_date_or_not_at_all(root_url, client):
    put(
        root_url,
        {"kind": "answer", "status": 429, "first": 1},
        {"kind": "answer", "status": 429, "retry_after": 60, "retry_after_as": "date"},
    )
    assert "retry-after" not in client.call("GET", "/batches").headers
    until = parsedate_to_datetime(client.call("GET", "/batches").headers["retry-after"])
    assert 50 < until.timestamp() - time.time() < 61


def test_occurrences_are_counted_by_plan_and_by_batch(root_url, client):
    put(root_url, {"kind": "answer", "call": "list", "status": 503, "skip": 1, "every": 2})
    codes = [client.call("GET", "/batches").status_code for _ in range(5)]
    assert codes == [200, 200, 503, 200, 503]
    put(root_url, {"kind": "answer", "call": "list", "status": 503, "probability": 0.5, "seed": 3})
    drawn = [client.call("GET", "/batches").status_code for _ in range(12)]
    put(root_url, {"kind": "answer", "call": "list", "status": 503, "probability": 0.5, "seed": 3})
    again = [client.call("GET", "/batches").status_code for _ in range(12)]
    assert drawn == again and {*drawn} == {200, 503}
    put(
        root_url,
        {"kind": "answer", "call": "status", "status": 404, "first": 1, "each_batch": True},
        {"kind": "answer", "call": "status", "status": 500, "job": 2},
    )
    ids = [client.batch_of(jsonl([line("a")])) for _ in range(2)]
    codes = [client.call("GET", f"/batches/{one}").status_code for one in ids * 2]
    assert codes == [404, 404, 200, 500]


def test_a_body_is_cut_with_and_without_a_trace(root_url):
    client = AnthropicClient(root_url)
    batch_id = client.create(MARKS)
    client.ended(batch_id)
    path = f"/v1/messages/batches/{batch_id}/results"
    whole = client.call("GET", path).content
    put(root_url, {"kind": "cut", "at": "line_end"})
    assert client.call("GET", path).content == b"".join(whole.splitlines(keepends=True)[:2])
    put(root_url, {"kind": "cut"})
    cut = client.call("GET", path)
    assert cut.status_code == 200 and whole.startswith(cut.content) and cut.content[-1:] != b"\n"
    put(root_url, {"kind": "cut", "announced": True})
    with pytest.raises((requests.ConnectionError, requests.exceptions.ChunkedEncodingError)):
        client.call("GET", path)
    put(root_url, {"kind": "garbled", "line": 1})
    lines = client.call("GET", path).content.splitlines(keepends=True)
    assert [lines[0], lines[2]] == whole.splitlines(keepends=True)[::2]
    with pytest.raises(ValueError):
        json.loads(lines[1])


def test_a_server_that_hangs_has_done_it_or_not(root_url, client):
    file_id = client.upload(jsonl([line("a")])).json()["id"]
    before = statistics(root_url)["jobs_created"]
    body = {
        "input_file_id": file_id,
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
    }
    for accepted, made in ((True, 1), (False, 1)):
        put(root_url, {"kind": "hang", "call": "create", "accepted": accepted})
        with pytest.raises(requests.Timeout):
            requests.post(f"{client.base_url}/batches", json=body, timeout=0.3)
        assert statistics(root_url)["jobs_created"] - before == made
    put(root_url, {"kind": "hang", "call": "create", "seconds": 0.1})
    assert client.create(file_id).status_code == 200
    put(root_url, {"kind": "slow", "call": "list", "seconds": 0.2})
    start = time.monotonic()
    assert client.call("GET", "/batches").json()["data"]
    assert time.monotonic() - start > 0.2


def test_lists_lag(root_url, client):
    anthropic = AnthropicClient(root_url)
    put(root_url, {"kind": "list_lags", "seconds": 0.5})
    made, other = client.batch_of(jsonl([line("a")])), anthropic.create(MARKS)

    def listed():
        first = {batch["id"] for batch in client.call("GET", "/batches").json()["data"]}
        second = anthropic.call("GET", "/v1/messages/batches").json()["data"]
        return {made, other} & (first | {batch["id"] for batch in second})

    assert listed() == set()
    assert client.get_batch(made)["id"] == made
    time.sleep(0.5)
    assert listed() == {made, other}


def test_a_key_is_replaced(root_url, client):
    put(root_url, {"kind": "key_rotated", "skip": 1})
    old, new = Client(client.base_url, "old"), Client(client.base_url, "new")
    codes = [one.call("GET", "/batches").status_code for one in (old, old, new)]
    assert codes == [200, 401, 200]


@pytest.mark.parametrize("kind", WIRE_CLIENTS)
def test_a_batch_ends_early_with_what_was_answered(root_url, kind):
    client = kind(root_url)
    for how in ("expired", "cancelled"):
        put(root_url, {"kind": "ends", "how": how, "after": 2})
        batch_id = client.create(MARKS)
        client.ended(batch_id)
        if kind is GeminiClient and how == "expired":
            assert client.outcomes(batch_id) == []
            continue
        answers = [outcome.text is not None for outcome in client.outcomes(batch_id)]
        assert sorted(answers) == [False, True, True]


def test_a_batch_is_stuck_until_another_plan(root_url, client):
    put(root_url, {"kind": "stuck", "at": "finalizing"})
    batch_id = client.batch_of(jsonl([line("a")]))
    time.sleep(0.2)
    assert client.get_batch(batch_id)["status"] == "finalizing"
    put(root_url)
    assert client.ended(batch_id)["status"] == "completed"


def test_what_was_paid_twice_can_be_read(root_url):
    def paid(dialect):
        counts = statistics(root_url)["dialects"][dialect]
        return counts["distinct_requests_answered"], counts["requests_answered_again"]

    for client in (kind(root_url) for kind in WIRE_CLIENTS):
        dialect = type(client).__name__.removesuffix("Client").lower()
        client.ended(client.create(["p-0"], text=f"{dialect} one"))
        first = paid(dialect)
        client.ended(client.create(["p-1"], text=f"{dialect} two"))
        second = paid(dialect)
        client.ended(client.create(["p-2"], text=f"{dialect} one"))
        third = paid(dialect)
        assert (second[0] - first[0], second[1] - first[1]) == (1, 0)
        assert (third[0] - second[0], third[1] - second[1]) == (0, 1)
