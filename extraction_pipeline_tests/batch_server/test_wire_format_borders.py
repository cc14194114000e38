"""The wire formats of one server keep apart, each with its own key, files and jobs."""

from collections.abc import Callable

import pytest
import requests

from extraction_pipeline_tests.batch_server.client import Client, jsonl, line
from extraction_pipeline_tests.batch_server.process import running_server
from extraction_pipeline_tests.batch_server.wire_clients import (
    WIRE_CLIENTS,
    AnthropicClient,
    GeminiClient,
    InfraiClient,
    WireClient,
)

MARKS = [f"k-{number}" for number in range(20)]


@pytest.fixture(params=WIRE_CLIENTS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


def wires(server) -> tuple[AnthropicClient, GeminiClient, InfraiClient]:
    """A client of every wire format."""
    url = server.root_url
    return AnthropicClient(url), GeminiClient(url), InfraiClient(url)


def test_the_wire_formats_do_not_see_one_another(tmp_path):
    with running_server(tmp_path / "state") as server:
        openai = Client(server.base_url)
        anthropic, gemini, infrai = wires(server)
        file = gemini.upload(gemini.file_of(["a"]))["name"].removeprefix("files/")
        batch_id = openai.batch_of(jsonl([line("a")]), metadata={"job": "k1"})
        made = {
            "openai": batch_id,
            "anthropic": anthropic.create(["k2-a", "k2-b"]),
            "gemini": gemini.create(["a"], display_name="k3"),
            "infrai": infrai.create(["a"], key="k4"),
        }
        openai.ended(made["openai"])
        anthropic.ended(made["anthropic"])
        gemini.ended(made["gemini"])
        infrai.ended(made["infrai"])

        def reads(name: str, identifier: str) -> int:
            path = {
                "openai": f"/v1/batches/{identifier}",
                "anthropic": f"/v1/messages/batches/{identifier}",
                "gemini": f"/v1beta/batches/{identifier}",
                "infrai": f"/v1/ai/batch/status/{identifier}",
            }[name]
            return anthropic.call("GET", path).status_code

        seen = {(a, b): reads(a, made[b]) for a in made for b in made}
        assert seen == {(a, b): 200 if a == b else 404 for a in made for b in made}
        assert openai.call("GET", f"/files/{file}").status_code == 404
        assert len(openai.call("GET", "/files").json()["data"]) == 2
        assert len(openai.call("GET", "/batches").json()["data"]) == 1

        statistics = server.statistics()
        assert statistics["jobs_created"] == 4
        assert statistics["files_uploaded"] == 2
        assert statistics["requests_accepted"] == 5
        assert statistics["jobs_by_metadata"] == {"job": {"k1": 1}}
        dialects = statistics["dialects"]
        assert isinstance(dialects, dict)
        assert {name: each["jobs_by_key"] for name, each in dialects.items()} == {
            "openai": {"k1": 1},
            "anthropic": {"k2": 1},
            "gemini": {"k3": 1},
            "infrai": {"k4": 1},
        }
        for count in ("requests_accepted", "requests_completed"):
            assert [each[count] for each in dialects.values()] == [2, 1, 1, 1]
        assert dialects["gemini"]["jobs_by_state"] == {"completed": 1}


def test_each_format_has_its_own_way_to_carry_a_key(tmp_path):
    environment = {"TEST_BATCH_KEY": "right"}
    with running_server(
        tmp_path / "state", environment=environment, api_key_variable="TEST_BATCH_KEY"
    ) as server:
        paths: dict[Callable[..., WireClient], str] = {
            AnthropicClient: "/v1/messages/batches",
            GeminiClient: "/v1beta/batches",
            InfraiClient: "/v1/ai/batch/status/none",
        }
        statuses = {
            kind: [
                kind(server.root_url, key).call("GET", path).status_code
                for key in (None, "wrong", "right")
            ]
            for kind, path in paths.items()
        }
        assert statuses == {
            AnthropicClient: [401, 401, 200],
            GeminiClient: [403, 400, 200],
            InfraiClient: [401, 401, 404],
        }
        error = GeminiClient(server.root_url, "wrong").call("GET", "/v1beta/batches").json()
        assert error["error"]["details"][0]["reason"] == "API_KEY_INVALID"
        gemini = GeminiClient(server.root_url, None)
        assert gemini.call("GET", "/v1beta/batches?key=right").status_code == 200
        assert gemini.call("GET", "/upload/v1beta/files?upload_id=x").status_code == 405
        assert gemini.call("POST", "/upload/v1beta/files?upload_id=x").status_code == 404
        assert gemini.call("POST", "/upload/v1beta/files").status_code == 403
        # A key of one format does not open another.
        anthropic = AnthropicClient(server.root_url, "right")
        assert anthropic.call("GET", "/v1/batches").status_code == 401
        # The upload's own address stands for the key.
        gemini = GeminiClient(server.root_url, "right")
        assert gemini.upload(b"{}\n")["sizeBytes"] == "3"
        # What the API is, anybody may read.
        assert requests.get(f"{server.root_url}/v1/discovery", timeout=5).status_code == 200
