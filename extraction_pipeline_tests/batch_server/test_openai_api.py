"""`/v1/files` and `/v1/batches` as a client sees them."""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from extraction_pipeline_tests.batch_server.client import ENDS, Client, jsonl, line
from extraction_pipeline_tests.batch_server.process import running_server

SPEC_VARIABLE = "OPENAI_BATCH_SPEC"
"""Names a copy of OpenAI's API description; the shapes are checked against it where it is set."""


def conforms(schema: str, body: object) -> None:
    path = os.environ.get(SPEC_VARIABLE)
    if path is None:
        return
    spec = json.loads(Path(path).read_text())
    jsonschema.validate(
        body, {"$ref": f"#/components/schemas/{schema}", "components": spec["components"]}
    )


def test_a_file_from_upload_to_deletion(client):
    content = jsonl([line("a", "é\u2028漢")])
    uploaded = client.upload(content, name="some notes é.jsonl")
    file = uploaded.json()
    conforms("OpenAIFile", file)
    assert uploaded.status_code == 200
    assert uploaded.headers["x-request-id"].startswith("req_")
    assert file | {"id": "", "created_at": 0} == {
        "id": "",
        "object": "file",
        "bytes": len(content),
        "created_at": 0,
        "filename": "some notes é.jsonl",
        "purpose": "batch",
        "status": "processed",
    }
    path = f"/files/{file['id']}"
    assert client.call("GET", path).json() == file
    assert client.call("GET", f"{path}/content").content == content
    deleted = client.call("DELETE", path).json()
    conforms("DeleteFileResponse", deleted)
    assert deleted == {"id": file["id"], "object": "file", "deleted": True}
    for method, gone in (("GET", path), ("GET", f"{path}/content"), ("DELETE", path)):
        assert client.call(method, gone).status_code == 404


def test_a_batch_from_creation_to_results(client):
    lines = [line(f"id-{number}") for number in range(30)]
    lines[7]["body"]["messages"] = "none"
    file = client.upload(jsonl(lines)).json()
    created = client.create(file["id"], metadata={"extraction_job_key": "k1"})
    batch = created.json()
    conforms("Batch", batch)
    assert created.status_code == 200
    assert (batch["status"], batch["input_file_id"]) == ("validating", file["id"])
    assert batch["expires_at"] - batch["created_at"] == 24 * 3600
    assert "output_file_id" not in batch and "error_file_id" not in batch

    batch = client.ended(batch["id"])
    conforms("Batch", batch)
    assert batch["status"] == "completed"
    assert batch["request_counts"] == {"total": 30, "completed": 29, "failed": 1}
    assert batch["metadata"] == {"extraction_job_key": "k1"}
    assert batch["model"] == "rules-baseline"
    assert batch["usage"]["total_tokens"] > batch["usage"]["output_tokens"] > 0
    assert batch["created_at"] <= batch["in_progress_at"] <= batch["completed_at"]

    rows = client.rows(batch["output_file_id"])
    asked = [each["custom_id"] for each in lines if each["custom_id"] != "id-7"]
    assert sorted(row["custom_id"] for row in rows) == sorted(asked)
    assert [row["custom_id"] for row in rows] != asked
    assert len({row["id"] for row in rows}) == 29
    for row in rows:
        assert row["error"] is None and row["response"]["status_code"] == 200
        body = row["response"]["body"]
        assert body["object"] == "chat.completion"
        assert body["choices"][0]["finish_reason"] == "stop"
        assert json.loads(body["choices"][0]["message"]["content"]) == {"title": None}
        usage = body["usage"]
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]

    (failed,) = client.rows(batch["error_file_id"])
    assert (failed["custom_id"], failed["error"]) == ("id-7", None)
    assert failed["response"]["status_code"] == 400
    assert failed["response"]["body"]["error"]["param"] == "messages"

    for kind in ("output", "error"):
        file = client.call("GET", f"/files/{batch[f'{kind}_file_id']}").json()
        conforms("OpenAIFile", file)
        assert (file["purpose"], file["filename"]) == (
            "batch_output",
            f"{batch['id']}_{kind}.jsonl",
        )


def test_a_batch_without_failures_has_no_error_file_and_the_other_way_round(client):
    good = client.ended(client.batch_of(jsonl([line("a")])))
    assert "error_file_id" not in good
    bad = client.ended(client.batch_of(jsonl([line("a", model="gpt-0")])))
    assert bad["status"] == "completed" and "output_file_id" not in bad
    (row,) = client.rows(bad["error_file_id"])
    assert row["response"]["body"]["error"]["code"] == "model_not_found"


def test_a_batch_that_is_not_valid_fails_with_line_numbers(client):
    lines = [line("a"), line("b"), line("a"), line("c", model="other")]
    content = jsonl(lines) + b"\n{oops\n"
    batch = client.ended(client.batch_of(content))
    conforms("Batch", batch)
    assert batch["status"] == "failed" and batch["failed_at"] >= batch["created_at"]
    assert "usage" not in batch and "output_file_id" not in batch
    assert [(fault["code"], fault["line"]) for fault in batch["errors"]["data"]] == [
        ("duplicate_custom_id", 3),
        ("mismatched_model", 4),
        ("invalid_json_line", 6),
    ]


def test_lists_go_on_after_an_id(tmp_path):
    with running_server(tmp_path / "state") as server:
        client = Client(server.base_url)
        empty = client.call("GET", "/files").json()
        conforms("ListFilesResponse", empty)
        assert (empty["data"], empty["has_more"]) == ([], False)

        files = [client.upload(b"{}\n", name=f"{number}").json()["id"] for number in range(5)]
        client.upload(b"{}\n", purpose="vision")
        batches = [client.create(files[0]).json()["id"] for _ in range(5)]

        def pages(path: str, **query: object) -> list[list[str]]:
            found: list[list[str]] = []
            page: dict[str, Any] = {"has_more": True}
            while page["has_more"]:
                page = client.call("GET", path, params=query).json()
                conforms("ListFilesResponse" if "files" in path else "ListBatchesResponse", page)
                found.append([item["id"] for item in page["data"]])
                assert (page["first_id"], page["last_id"]) == (found[-1][0], found[-1][-1])
                query["after"] = page["last_id"]
            return found

        newest = files[::-1]
        assert pages("/files", purpose="batch") == [newest]
        assert pages("/files", purpose="batch", limit=2) == [newest[:2], newest[2:4], newest[4:]]
        oldest = pages("/files", purpose="batch", limit=3, order="asc")
        assert oldest == [files[:3], files[3:]]
        assert pages("/batches", limit=2) == [
            batches[:2:-1],
            batches[2:0:-1],
            batches[:1],
        ]
        assert len(pages("/batches")[0]) == 5


NO_BATCH = {
    "no body": b"",
    "no JSON": b"{",
    "a list": b"[]",
    "no file": b'{"endpoint": "/v1/chat/completions", "completion_window": "24h"}',
    "other endpoint": b'{"input_file_id": "f", "endpoint": "/v1/x", "completion_window": "24h"}',
    "other window": b'{"input_file_id": "f", "endpoint": "/v1/chat/completions", '
    b'"completion_window": "1h"}',
}


@pytest.mark.parametrize("body", NO_BATCH.values(), ids=NO_BATCH.keys())
def test_a_body_that_asks_for_no_batch_is_refused(client, body):
    answer = client.call("POST", "/batches", data=body)
    assert answer.status_code == 400
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert answer.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "metadata",
    [{"k": 1}, {"k": "v" * 513}, {"k" * 65: "v"}, {str(n): "v" for n in range(17)}, []],
)
def test_metadata_has_its_limits(client, metadata):
    file = client.upload(jsonl([line("a")])).json()["id"]
    assert client.create(file, metadata=metadata).status_code == 400
    assert client.create(file, metadata={"k" * 64: "v" * 512}).status_code == 200


def test_a_batch_needs_a_file_that_is_there_and_meant_for_it(client):
    other = client.upload(b"x", purpose="vision").json()["id"]
    for file_id in ("file-none", other):
        answer = client.create(file_id)
        assert answer.status_code == 400, file_id


def test_a_file_that_a_batch_reads_is_not_deleted(tmp_path):
    with running_server(tmp_path / "state", delay=30) as server:
        client = Client(server.base_url)
        batch = client.get_batch(client.batch_of(jsonl([line("a")])))
        path = f"/files/{batch['input_file_id']}"
        assert client.call("DELETE", path).status_code == 409
        client.call("POST", f"/batches/{batch['id']}/cancel")
        client.ended(batch["id"])
        assert client.call("DELETE", path).status_code == 200


UPLOADS = {
    "no form": {"data": b"{}"},
    "no file": {"files": {"purpose": (None, "batch")}},
    "two files": {"files": [("file", ("a", b"{}")), ("file", ("b", b"{}"))]},
    "another part": {"files": {"document": ("a", b"{}"), "purpose": (None, "batch")}},
    "empty file": {"files": {"file": ("a", b"")}, "data": {"purpose": "batch"}},
    "no purpose": {"files": {"file": ("a", b"{}")}},
    "other purpose": {"files": {"file": ("a", b"{}")}, "data": {"purpose": "fun"}},
    "cut form": {
        "data": b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n{}',
        "headers": {"Content-Type": "multipart/form-data; boundary=x"},
    },
}


@pytest.mark.parametrize("arguments", UPLOADS.values(), ids=UPLOADS.keys())
def test_an_upload_that_is_none_is_refused(client, server, arguments):
    headers = arguments.get("headers", {})
    rest = {name: value for name, value in arguments.items() if name != "headers"}
    before = server.statistics()["files_uploaded"]
    client.headers = headers
    answer = client.call("POST", "/files", **rest)
    assert answer.status_code == 400, answer.text
    assert "error" in answer.json()
    assert server.statistics()["files_uploaded"] == before
    assert list((server.state / "incoming").iterdir()) == []


def test_a_file_name_cannot_lead_elsewhere(client, server):
    file = client.upload(b"{}\n", name="../../etc/x").json()
    assert file["filename"] == "x"
    assert (server.state / "files" / file["id"]).read_bytes() == b"{}\n"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/batches/batch_none", 404),
        ("POST", "/batches/batch_none/cancel", 404),
        ("GET", "/files/..%2f..%2fserver.sqlite3/content", 404),
        ("GET", "/batches?after=batch_none", 400),
        ("GET", "/batches?limit=0", 400),
        ("GET", "/batches?limit=101", 400),
        ("GET", "/batches?limit=x", 400),
        ("GET", "/files?limit=10001", 400),
        ("GET", "/files?order=sideways", 400),
        ("GET", "/nothing", 404),
        ("PUT", "/batches", 405),
    ],
)
def test_errors_have_openai_s_form(client, method, path, status):
    answer = client.call(method, path)
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert answer.headers["x-request-id"]


def test_a_batch_at_its_end_cannot_be_cancelled(client):
    batch = client.ended(client.batch_of(jsonl([line("a")])))
    assert batch["status"] in ENDS
    answer = client.call("POST", f"/batches/{batch['id']}/cancel")
    assert answer.status_code == 409
    assert client.get_batch(batch["id"]) == batch
