"""What goes over the wire to Gemini: the upload in two calls, the create call, the search."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from extraction_pipeline.providers import paging
from extraction_pipeline.providers.base import (
    FailureKind,
    JobPhase,
    ResultKind,
    ResultReference,
    Search,
    SearchVerdict,
    Sought,
    Submission,
)
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.errors import (
    CallFailed,
    CallRefused,
    OutcomeUnknown,
    ProviderError,
)
from extraction_pipeline.providers.gemini import GeminiBatchProvider
from extraction_pipeline_tests.providers.scripted_server import (
    Script,
    ScriptedServer,
    answer,
    drop,
    scripted_server,
    send,
)

KEY = "notes.v1.0123"
WHEN = datetime(2026, 3, 1, tzinfo=UTC)
SOUGHT = Sought(KEY, WHEN, WHEN, request_count=1, custom_id_prefix="0123456789abcdef-")
LINES = b'{"key": "a"}\n{"key": "b"}\n'
SUBMISSION = Submission(KEY, "some-model", input_id="files/in")
FILE = {"name": "files/in", "state": "ACTIVE"}


def root(server: ScriptedServer) -> str:
    return server.url.removesuffix("/v1")


def provider_at(server: ScriptedServer) -> GeminiBatchProvider:
    return GeminiBatchProvider(
        "gemini", ProviderEndpoint(root(server), api_key="k-1", read_timeout=5)
    )


def said(body: object, status: int = 200, *headers: str) -> Script:
    return send(answer(status, json.dumps(body).encode(), *headers))


def operation(name: str, display_name: str | None = None, **fields: Any) -> dict[str, Any]:
    metadata = {"state": "BATCH_STATE_PENDING", "createTime": "2026-03-01T12:00:00Z"}
    if display_name is not None:
        metadata["displayName"] = display_name
    return {"name": f"batches/{name}", "metadata": metadata, **fields}


def parts(request: bytes) -> tuple[str, bytes, bytes]:
    """(method and path, head in lower case, body)"""
    head, _, body = request.partition(b"\r\n\r\n")
    return head.split(b" HTTP/")[0].decode(), head.lower(), body


def test_a_payload_is_uploaded_in_two_calls(tmp_path):
    path = tmp_path / "payload"
    path.write_bytes(LINES)

    def begin(connection: Any) -> None:
        address = f"X-Goog-Upload-URL: {root(server)}/upload/v1beta/files?upload_id=u1"
        connection.sendall(answer(200, b"", address))

    uploaded = said({"file": FILE | {"sizeBytes": str(len(LINES))}}, 200, "X-Request-Id: r1")
    with scripted_server(begin, uploaded) as server:
        receipt = provider_at(server).files.upload(path, KEY)
    assert (receipt.input_id, receipt.call.request_id) == ("files/in", "r1")
    first, second = (parts(request) for request in server.requests)
    assert first[0] == "POST /upload/v1beta/files"
    for header in (
        b"x-goog-api-key: k-1",
        b"x-goog-upload-protocol: resumable",
        b"x-goog-upload-command: start",
        b"x-goog-upload-header-content-length: %d" % len(LINES),
        b"x-goog-upload-header-content-type: application/jsonl",
    ):
        assert b"\r\n" + header in first[1]
    assert json.loads(first[2]) == {"file": {"displayName": KEY}}
    assert second[0] == "POST /upload/v1beta/files?upload_id=u1"
    assert b"\r\nx-goog-upload-offset: 0" in second[1]
    assert b"\r\nx-goog-upload-command: upload, finalize" in second[1]
    assert second[2] == LINES


@pytest.mark.parametrize(
    "address", ["https://elsewhere.example/u?upload_id=secret", "", "http://127.0.0.1.evil/x"]
)
def test_a_payload_goes_to_no_other_host(tmp_path, address):
    path = tmp_path / "payload"
    path.write_bytes(LINES)
    begun = send(answer(200, b"", f"X-Goog-Upload-URL: {address}"))
    with scripted_server(begun) as server, pytest.raises(CallFailed, match="outside") as caught:
        provider_at(server).files.upload(path, KEY)
    assert len(server.requests) == 1
    assert "secret" not in str(caught.value)


def test_an_upload_that_fails_names_no_address_of_its_own(tmp_path):
    path = tmp_path / "payload"
    path.write_bytes(LINES)

    def begin(connection: Any) -> None:
        address = f"X-Goog-Upload-URL: {root(server)}/upload/v1beta/files?upload_id=secret"
        connection.sendall(answer(200, b"", address))

    with scripted_server(begin, said({}, 503)) as server, pytest.raises(CallFailed) as caught:
        provider_at(server).files.upload(path, KEY)
    assert "POST /upload/v1beta/files answered HTTP 503" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_batch_names_its_file_and_bears_the_job_key():
    with scripted_server(said(FILE), said(operation("1"))) as server:
        receipt = provider_at(server).submit(SUBMISSION)
    assert (receipt.job_id, receipt.provider_state) == ("batches/1", "BATCH_STATE_PENDING")
    looked, created = (parts(request) for request in server.requests)
    assert looked[0] == "GET /v1beta/files/in"
    assert created[0] == "POST /v1beta/models/some-model:batchGenerateContent"
    assert created[2] == (
        b'{"batch":{"displayName":"notes.v1.0123","inputConfig":{"fileName":"files/in"}}}'
    )


def test_a_model_may_be_named_with_its_collection():
    with scripted_server(said(FILE), said(operation("1"))) as server:
        provider_at(server).submit(Submission(KEY, "models/some-model", input_id="files/in"))
    assert b" /v1beta/models/some-model:batchGenerateContent " in server.requests[1]


@pytest.mark.parametrize(
    ("file", "status"),
    [
        (said({"error": {"code": 403, "status": "PERMISSION_DENIED"}}, 403), 404),
        (said({"error": {"code": 404, "status": "NOT_FOUND"}}, 404), 404),
        (said(FILE | {"state": "FAILED"}), 404),
        (said(FILE | {"state": "PROCESSING"}), None),
        (said({}, 500), 500),
    ],
)
def test_without_its_file_no_batch_is_created(file, status):
    with scripted_server(file) as server, pytest.raises(CallFailed) as caught:
        provider_at(server).submit(SUBMISSION)
    assert (caught.value.kind, caught.value.http_status) == (FailureKind.TRANSPORT, status)
    assert len(server.requests) == 1


def test_a_key_that_is_refused_while_the_file_is_looked_at_is_the_accounts_fault():
    refused = said({"error": {"code": 401, "status": "UNAUTHENTICATED"}}, 401)
    with scripted_server(refused) as server, pytest.raises(CallRefused) as caught:
        provider_at(server).submit(SUBMISSION)
    assert caught.value.kind is FailureKind.ACCOUNT


def error(code: int, status: str, *details: object) -> Script:
    return said({"error": {"code": code, "status": status, "details": list(details)}}, code)


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}


@pytest.mark.parametrize(
    ("script", "failure", "kind", "retry_after"),
    [
        (drop, OutcomeUnknown, FailureKind.TRANSPORT, None),
        (error(500, "INTERNAL"), OutcomeUnknown, FailureKind.TRANSPORT, None),
        (error(503, "UNAVAILABLE"), OutcomeUnknown, FailureKind.TRANSPORT, None),
        (error(409, "ABORTED"), OutcomeUnknown, FailureKind.TRANSPORT, None),
        (said({"done": True}), OutcomeUnknown, FailureKind.TRANSPORT, None),
        (error(429, "RESOURCE_EXHAUSTED", RETRY), CallRefused, FailureKind.TRANSPORT, 34.0),
        (error(402, "RESOURCE_EXHAUSTED"), CallRefused, FailureKind.ACCOUNT, None),
        (error(403, "PERMISSION_DENIED"), CallRefused, FailureKind.ACCOUNT, None),
        (error(400, "INVALID_ARGUMENT"), CallRefused, FailureKind.REJECTED, None),
        (error(404, "NOT_FOUND"), CallRefused, FailureKind.REJECTED, None),
    ],
)
def test_a_create_call_that_fails_is_made_once(script, failure, kind, retry_after):
    with scripted_server(said(FILE), script) as server, pytest.raises(failure) as caught:
        provider_at(server).submit(SUBMISSION)
    assert (caught.value.kind, caught.value.retry_after) == (kind, retry_after)
    assert len(server.requests) == 2


def search(*scripts: Script, sought: Sought = SOUGHT) -> tuple[Search, list[str]]:
    with scripted_server(*scripts) as server:
        outcome = provider_at(server).find(sought)
        return outcome, [request.split()[1].decode() for request in server.requests]


def page(*operations: dict[str, Any], token: str | None = None) -> Script:
    body: dict[str, Any] = {"operations": list(operations)} if operations else {}
    return said(body | ({"nextPageToken": token} if token is not None else {}))


def test_a_job_is_found_by_its_display_name_on_any_page():
    outcome, paths = search(
        page(operation("9", "other"), operation("8"), token="t1"),
        page(token="t2"),
        page(operation("7", KEY), operation("6", f"{KEY}4"), token="t3"),
        page(operation("5", KEY), token=""),
    )
    assert outcome.verdict is SearchVerdict.FOUND
    assert [job.job_id for job in outcome.found] == ["batches/7", "batches/5"]
    assert outcome.found[0].created_at == datetime(2026, 3, 1, 12, tzinfo=UTC)
    queries = [parse_qs(urlsplit(path).query) for path in paths]
    assert [query.get("pageToken") for query in queries] == [None, ["t1"], ["t2"], ["t3"]]
    assert all(query["pageSize"] == ["100"] for query in queries)


@pytest.mark.parametrize("scripts", [(page(),), (page(operation("9", "other")),)])
def test_a_whole_list_without_it_proves_absence(scripts):
    assert search(*scripts)[0] == Search(SearchVerdict.ABSENT)


METADATA = {"displayName": KEY, "state": "BATCH_STATE_RUNNING"}


@pytest.mark.parametrize(
    "odd",
    [
        {"metadata": None},
        {"metadata": [METADATA]},
        {"metadata": {"batch": METADATA}},
        {"metadata": {"displayName": ""}},
        {"metadata": {"displayName": 7, "createTime": "yesterday"}},
        METADATA,
    ],
)
def test_a_batch_that_tells_no_name_proves_no_absence(odd):
    outcome, _ = search(page(operation("9", "other"), {"name": "batches/8", **odd}))
    assert outcome == Search(SearchVerdict.UNCERTAIN, possible=("batches/8",))
    outcome, _ = search(page({"name": "batches/8", **odd}, operation("7", KEY)))
    assert [job.job_id for job in outcome.found] == ["batches/7"]


def test_a_batch_without_a_name_that_is_older_than_the_job_is_not_it():
    old = {"name": "batches/8", "metadata": {"createTime": "2026-02-27T12:00:00Z"}}
    assert search(page(old))[0] == Search(SearchVerdict.ABSENT)


@pytest.mark.parametrize("file", ["files/in", "in"])
def test_a_batch_without_a_name_is_found_by_its_file(file):
    metadata = {"state": "BATCH_STATE_RUNNING", "inputConfig": {"fileName": file}}
    sought = replace(SOUGHT, input_ids=frozenset({"files/in"}))
    outcome, _ = search(page({"name": "batches/8", "metadata": metadata}), sought=sought)
    assert [job.job_id for job in outcome.found] == ["batches/8"]


INCOMPLETE = {
    "list fails": (said({}, 503),),
    "second page dropped": (page(token="t1"), drop),
    "the same token for ever": (page(operation("1"), token="t1"),),
    "not all places answered": (said({"operations": [], "unreachable": ["x"]}),),
    "no list at all": (said({"id": "x"}),),
}


@pytest.mark.parametrize("scripts", INCOMPLETE.values(), ids=INCOMPLETE.keys())
def test_a_search_that_is_not_complete_raises(scripts):
    with pytest.raises(CallFailed):
        search(*scripts)


def test_a_search_that_is_cut_by_its_bound_raises(monkeypatch):
    monkeypatch.setattr(paging, "LONGEST_SEARCH_PAGES", 2)
    with pytest.raises(CallFailed, match="more than 2 pages"):
        search(*(page(operation("1"), token=f"t{number}") for number in range(3)))


def downloaded(*scripts: Script, reference: str) -> tuple[bytes, list[bytes]]:
    with scripted_server(*scripts) as server:
        result = ResultReference(ResultKind.OUTPUT, reference)
        with provider_at(server).download(result) as chunks:
            content = b"".join(chunks)
        return content, server.requests


def test_results_in_a_file_are_streamed_as_they_are():
    name = f"files/batch-{'x' * 50}"
    content, requests = downloaded(send(answer(200, LINES)), reference=name)
    assert content == LINES
    expected = f"GET /download/v1beta/files/batch-{'x' * 50}:download?alt=media HTTP"
    assert requests[0].startswith(expected.encode())


def test_inline_results_come_as_lines():
    items = [
        {"metadata": {"key": "a"}, "response": {"candidates": []}},
        {"metadata": {"key": "b\u2028é"}, "error": {"code": 1}, "number": 12345678901234567890123},
        "odd",
    ]
    inline = {"inlinedResponses": {"inlinedResponses": items}}
    body = json.dumps(operation("1", response=inline), indent=1, ensure_ascii=False)
    content, requests = downloaded(send(answer(200, body.encode())), reference="inline:batches/1")
    assert content.endswith(b"\n") and content.isascii()
    lines = [json.loads(line) for line in content.split(b"\n")[:-1]]
    assert (lines[0], lines[1]["metadata"], lines[2]) == (items[0], {"key": "b\u2028é"}, "odd")
    assert requests[0].startswith(b"GET /v1beta/batches/1 ")


def test_an_inline_result_with_two_keys_loses_both():
    twice = b'{"metadata": {"key": "a", "key": "b"}, "response": {}}'
    whole = b'{"name": "batches/1", "response": {"inlinedResponses": {"inlinedResponses": [%s]}}}'
    content, _ = downloaded(send(answer(200, whole % twice)), reference="inline:batches/1")
    assert json.loads(content) == {"metadata": {}, "response": {}}


@pytest.mark.parametrize("body", [b"{}", b'{"name": "batches/1"}', b"<html>", b"[]"])
def test_inline_results_that_are_not_there_raise(body):
    with pytest.raises(CallFailed):
        downloaded(send(answer(200, body)), reference="inline:batches/1")


def test_cancelling_and_reading():
    stopping = operation("1")
    stopping["metadata"]["state"] = "JOB_STATE_CANCELLING"
    with scripted_server(said({}), said(stopping)) as server:
        status = provider_at(server).cancel("batches/1")
    assert (status.phase, status.provider_state) == (JobPhase.PENDING, "JOB_STATE_CANCELLING")
    assert [parts(request)[0] for request in server.requests] == [
        "POST /v1beta/batches/1:cancel",
        "GET /v1beta/batches/1",
    ]


def test_cancelling_what_has_ended_gives_its_end():
    ended = operation("1", done=True, response={"responsesFile": "files/batch-1"})
    ended["metadata"]["state"] = "BATCH_STATE_SUCCEEDED"
    with scripted_server(error(400, "FAILED_PRECONDITION"), said(ended)) as server:
        assert provider_at(server).cancel("batches/1").phase is JobPhase.ENDED
    with (
        scripted_server(error(404, "NOT_FOUND")) as server,
        pytest.raises(ProviderError),
    ):
        provider_at(server).cancel("batches/1")


@pytest.mark.parametrize("job_id", ["batches/", "batches/..", ""])
def test_a_name_that_is_no_name_is_not_sent(job_id):
    with scripted_server(said({})) as server:
        with pytest.raises(ValueError, match="path"):
            provider_at(server).status(job_id)
        assert server.requests == []
