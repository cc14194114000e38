"""`batchGenerateContent`, `/v1beta/batches` and `/v1beta/files` as a client sees them."""

import json
import os
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import requests

from extraction_pipeline.batch_server.config import Limits, ServerConfig
from extraction_pipeline_tests.batch_server.in_process import served
from extraction_pipeline_tests.batch_server.process import running_server, wait_until
from extraction_pipeline_tests.batch_server.wire_clients import GeminiClient

SPEC_VARIABLE = "GEMINI_BATCH_SPEC"
"""Names a description of Gemini's batch API; the shapes are checked against it where it is set."""
CREATE = "/v1beta/models/rules-baseline:batchGenerateContent"
UPLOAD = "/upload/v1beta/files"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z")


def conforms(schema: str, body: dict[str, Any]) -> None:
    path = os.environ.get(SPEC_VARIABLE)
    if path is None:
        return
    spec = json.loads(Path(path).read_text())
    # The description does not know the types that Google puts into operations.
    plain = {name: value for name, value in body.items() if name != "@type"}
    jsonschema.validate(
        plain, {"$ref": f"#/components/schemas/{schema}", "components": spec["components"]}
    )


def operation_conforms(operation: dict[str, Any]) -> None:
    parts = {name: dict(operation.get(name, {})) for name in ("metadata", "response")}
    parts["metadata"].pop("output", None)
    conforms("GenerateContentBatch", parts["metadata"])
    conforms("GenerateContentBatchOutput", parts["response"])
    conforms("LongRunningOperation", operation)


@pytest.fixture
def client(server) -> GeminiClient:
    return GeminiClient(server.root_url)


def test_an_inline_batch_from_creation_to_deletion(client):
    created = client.ask(["a", "b", "c"], display_name="job-1")
    operation = created.json()
    operation_conforms(operation)
    metadata = operation["metadata"]
    assert created.status_code == 200
    assert operation.keys() == {"name", "metadata"}
    assert metadata["name"] == operation["name"] and operation["name"].startswith("batches/")
    assert metadata["@type"].endswith(".GenerateContentBatch")
    assert (metadata["model"], metadata["displayName"]) == ("models/rules-baseline", "job-1")
    assert metadata["state"] == "BATCH_STATE_PENDING"
    assert metadata["batchStats"] == {"requestCount": "3", "pendingRequestCount": "3"}
    assert TIME.fullmatch(metadata["createTime"]) and "endTime" not in metadata

    operation = client.ended(client.id_in(operation))
    operation_conforms(operation)
    metadata = operation["metadata"]
    assert operation["done"] is True
    assert metadata["state"] == "BATCH_STATE_SUCCEEDED"
    assert metadata["batchStats"] == {"requestCount": "3", "successfulRequestCount": "3"}
    assert metadata["createTime"] <= metadata["endTime"] <= metadata["updateTime"]
    assert operation["response"]["@type"].endswith(".GenerateContentBatchOutput")
    assert metadata["output"] == operation["response"]
    responses = operation["response"]["inlinedResponses"]["inlinedResponses"]
    assert sorted(item["metadata"]["key"] for item in responses) == ["a", "b", "c"]
    assert len({item["response"]["responseId"] for item in responses}) == 3
    usage = responses[0]["response"]["usageMetadata"]
    assert usage["totalTokenCount"] == usage["promptTokenCount"] + usage["candidatesTokenCount"]

    path = f"/v1beta/{operation['name']}"
    assert client.call("DELETE", path).json() == {}
    assert client.call("GET", path).status_code == 404
    assert client.call("DELETE", path).status_code == 404


def test_a_file_batch_from_upload_to_download(client, server):
    lines = client.file_of(["a", "b", "c"]) + b"\n"
    bad = {"key": "bad", "request": {"contents": [], "generation_config": {"max_output_tokens": 1}}}
    file = client.upload(lines + json.dumps(bad).encode(), name="job-2")
    conforms("File", file)
    assert file["displayName"] == "job-2" and file["state"] == "ACTIVE"
    assert file["sizeBytes"] == str(len(lines) + len(json.dumps(bad)))
    path = f"/v1beta/{file['name']}"
    assert client.call("GET", path).json() == file
    assert client.call("GET", f"/download{path}:download?alt=media").status_code == 403

    answer = client.submit({"display_name": "job-2", "input_config": {"file_name": file["name"]}})
    batch_id = client.id_in(answer.json())
    # The batch has its requests; the file may go.
    assert client.call("DELETE", path).json() == {}
    assert client.call("GET", path).status_code == 404
    operation = client.ended(batch_id)
    operation_conforms(operation)
    assert operation["metadata"]["inputConfig"] == {"fileName": file["name"]}
    assert operation["metadata"]["batchStats"] == {
        "requestCount": "4",
        "successfulRequestCount": "3",
        "failedRequestCount": "1",
    }
    result_file = operation["response"]["responsesFile"]
    assert result_file == f"files/batch-{batch_id}" and len(result_file) > 46
    responses = {item.pop("key"): item for item in client.responses(batch_id)}
    assert responses.keys() == {"a", "b", "c", "bad"}
    assert responses["bad"]["error"]["code"] == 3
    assert "contents" in responses["bad"]["error"]["message"]
    # The result file is no file that can be asked for, under either address it is downloaded from.
    assert client.call("GET", f"/v1beta/{result_file}").status_code == 400
    download = client.call("GET", f"/v1beta/{result_file}:download?alt=media")
    assert download.content.count(b"\n") == 4
    client.call("DELETE", f"/v1beta/batches/{batch_id}")
    assert client.call("GET", f"/v1beta/{result_file}:download").status_code == 404


def test_requests_without_a_key_keep_their_order(client):
    texts = [f"Note {'x' * number}" for number in range(12)]
    requests_ = [{"request": client.request(text)} for text in texts]
    answer = client.submit({"inputConfig": {"requests": {"requests": requests_}}})
    client.ended(client.id_in(answer.json()))
    responses = client.responses(client.id_in(answer.json()))
    assert all(item.keys() == {"response"} for item in responses)
    tokens = [item["response"]["usageMetadata"]["promptTokenCount"] for item in responses]
    assert tokens == sorted(tokens) and len(set(tokens)) > 1


def test_metadata_comes_back_whatever_it_holds(client):
    metadata = {"key": "é\u2028", "other": {"deep": [1, None]}}
    item = {"request": client.request(), "metadata": metadata}
    answer = client.submit({"inputConfig": {"requests": {"requests": [item]}}})
    client.ended(client.id_in(answer.json()))
    (response,) = client.responses(client.id_in(answer.json()))
    assert response["metadata"] == metadata


def test_the_ends_of_a_cancelled_batch(tmp_path):
    """As recorded of the real service: without any answer it is cancelled, else it succeeds."""
    options: dict[str, Any] = {"relay_url": "http://127.0.0.1:1", "relay_concurrency": 1}
    with running_server(tmp_path / "state", **options) as server:
        client = GeminiClient(server.root_url)
        batch_id = client.create(["a", "b", "c", "d"], model="any")
        wait_until(lambda: client.get(batch_id)["metadata"]["state"] == "BATCH_STATE_RUNNING")
        assert client.cancel(batch_id).json() == {}
        assert client.get(batch_id)["metadata"]["state"] == "BATCH_STATE_RUNNING"
        server.restart()
        operation = client.ended(batch_id)
        operation_conforms(operation)
        assert operation["metadata"]["state"] == "BATCH_STATE_CANCELLED"
        assert operation["metadata"]["batchStats"]["pendingRequestCount"] == "4"
        assert operation["error"]["code"] == 13 and "response" not in operation

        # A request that is refused as such has its answer when the batch begins.
        items = [
            {"request": client.request(), "metadata": {"key": "a"}},
            {"request": {"contents": []}, "metadata": {"key": "bad"}},
        ] + [{"request": client.request(), "metadata": {"key": str(n)}} for n in range(5)]
        answer = client.submit({"inputConfig": {"requests": {"requests": items}}}, "any")
        batch_id = client.id_in(answer.json())
        wait_until(lambda: client.get(batch_id)["metadata"]["state"] == "BATCH_STATE_RUNNING")
        client.cancel(batch_id)
        server.restart()
        operation = client.ended(batch_id)
        assert operation["metadata"]["state"] == "BATCH_STATE_SUCCEEDED"
        assert operation["metadata"]["batchStats"]["failedRequestCount"] == "7"
        errors = {item["metadata"]["key"]: item["error"] for item in client.responses(batch_id)}
        assert errors.pop("bad")["code"] == 3
        assert list(errors.values()) == [{"code": 1}] * 6

        # Deleting a batch that runs stops it, and nothing of it stays.
        batch_id = client.create(["a", "b"], model="any")
        assert client.call("DELETE", f"/v1beta/batches/{batch_id}").json() == {}
        assert client.call("GET", f"/v1beta/batches/{batch_id}").status_code == 404
        server.restart()
        wait_until(lambda: counts(server)["jobs_by_state"] == {"cancelled": 3})
        wait_until(lambda: not list((server.state / "progress").iterdir()))
        assert len(list((server.state / "files").iterdir())) == 2
        assert counts(server)["jobs_created"] == 3


def counts(server) -> dict[str, Any]:
    return dict(server.statistics()["dialects"]["gemini"])


def test_lists_go_on_by_token(tmp_path):
    with served(ServerConfig(state=tmp_path)) as url:
        client = GeminiClient(url)
        for path in ("/v1beta/batches", "/v1beta/files"):
            assert client.call("GET", path).json() == {}
        batches = [f"batches/{client.create(['a'])}" for _ in range(5)]
        files = [client.upload(b"{}\n")["name"] for _ in range(5)]
        for name in batches:
            client.ended(name.removeprefix("batches/"))

        def pages(path: str, kind: str, schema: str, size: int) -> list[list[str]]:
            found: list[list[str]] = []
            query: dict[str, Any] = {"pageSize": size}
            while True:
                page = client.call("GET", path, params=query).json()
                if kind == "files":
                    conforms(schema, page)
                found.append([item["name"] for item in page[kind]])
                for item in page[kind]:
                    assert "inlinedResponses" not in item.get("response", {})
                if "nextPageToken" not in page:
                    return found
                query["pageToken"] = page["nextPageToken"]

        for names, path, kind, schema in (
            (batches, "/v1beta/batches", "operations", "ListBatchesResponse"),
            (files, "/v1beta/files", "files", "ListFilesResponse"),
        ):
            newest = names[::-1]
            expected = [newest[:2], newest[2:4], newest[4:]]
            assert pages(path, kind, schema, 2) == expected
            assert pages(path, kind, schema, 0) == pages(path, kind, schema, 1000) == [newest]
            for query in ({"pageSize": -1}, {"pageSize": "x"}, {"pageToken": "?"}):
                answer = client.call("GET", path, params=query)
                assert answer.status_code == 400, query
                assert answer.json()["error"]["status"] == "INVALID_ARGUMENT"


INLINE: dict[str, Any] = {"request": {"contents": [{"parts": [{"text": "x"}]}]}}


def inline(*items: Any, **more: Any) -> dict[str, Any]:
    return {"batch": {"inputConfig": {"requests": {"requests": list(items)}}, **more}}


REFUSED: dict[str, tuple[Any, int]] = {
    "no body": (b"", 400),
    "nothing": ({}, 400),
    "no input": ({"batch": {}}, 400),
    "empty input": ({"batch": {"inputConfig": {}}}, 400),
    "no requests": (inline(), 400),
    "no object": (inline(1), 400),
    "no request": (inline({"metadata": {"key": "a"}}), 400),
    "config beside": (inline({**INLINE, "config": {}}), 400),
    "unknown field": (inline(INLINE, labels={}), 400),
    "webhooks": (inline(INLINE, webhookConfig={"uris": ["http://x"]}), 400),
    "no Unicode": (inline({**INLINE, "metadata": {"key": "\ud800"}}), 400),
    "both": (
        {"batch": {"inputConfig": {"fileName": "files/x", "requests": {"requests": [INLINE]}}}},
        400,
    ),
    "no such file": ({"batch": {"inputConfig": {"fileName": "files/x"}}}, 404),
    "no file name": ({"batch": {"inputConfig": {"fileName": "x"}}}, 404),
}


@pytest.mark.parametrize(("body", "status"), REFUSED.values(), ids=REFUSED.keys())
def test_a_body_that_asks_for_no_batch_is_refused(client, server, body, status):
    before = server.statistics()["jobs_created"]
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = client.call("POST", CREATE, data=data)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["code"] == status
    assert server.statistics()["jobs_created"] == before
    assert list((server.state / "incoming").iterdir()) == []


@pytest.mark.parametrize(
    "line", [b"{oops", b'{"key": "a"}', b'{"key": 7, "request": {}}', b'"\xff"']
)
def test_a_file_with_a_line_that_is_no_request_is_refused(client, line):
    file = client.upload(client.file_of(["a"]) + line + b"\n")
    answer = client.submit({"inputConfig": {"fileName": file["name"]}})
    assert answer.status_code == 400 and "line 2" in answer.json()["error"]["message"]


def test_the_limits(tmp_path):
    config = ServerConfig(
        state=tmp_path, gemini=Limits(requests=2, bytes=2000), gemini_file_bytes=3000
    )
    with served(config) as url:
        client = GeminiClient(url)
        assert client.ask(["a", "b"]).status_code == 200
        assert client.ask(["a", "b", "c"]).status_code == 400
        assert client.ask(["a"], text="x" * 2000).status_code == 400
        file = client.upload(client.file_of(["a", "b", "c"]))
        assert client.submit({"inputConfig": {"fileName": file["name"]}}).status_code == 400
        start = {
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": "3001",
        }
        assert client.call("POST", UPLOAD, headers=start).status_code == 400
        del start["X-Goog-Upload-Header-Content-Length"]
        url = client.call("POST", UPLOAD, headers=start).headers["X-Goog-Upload-URL"]
        upload = {"X-Goog-Upload-Command": "upload, finalize"}
        assert requests.post(url, headers=upload, data=b"x" * 3001, timeout=5).status_code == 400
        assert requests.post(url, headers=upload, data=b"x", timeout=5).status_code == 404
        assert list((tmp_path / "incoming").iterdir()) == []


def test_google_s_other_version_is_the_same(client):
    """Its own client asks for v1; two of the paths there are OpenAI's, which have other keys."""
    batch_id = client.create(["a"])
    client.ended(batch_id)
    path = f"/v1/batches/{batch_id}"
    assert client.call("GET", path).json()["name"] == f"batches/{batch_id}"
    assert client.call("GET", "/v1/files").status_code == 200
    answer = client.call("POST", CREATE.replace("v1beta", "v1"), json=inline(INLINE))
    assert answer.status_code == 200
    answer = requests.get(client.root_url + path, timeout=5)
    assert answer.status_code == 404 and "param" in answer.json()["error"]
