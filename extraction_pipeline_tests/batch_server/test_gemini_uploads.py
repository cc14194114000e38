"""Resumable uploads to `/upload/v1beta/files`: in pieces, and those that are none."""

import pytest
import requests

from extraction_pipeline_tests.batch_server.wire_clients import GeminiClient

UPLOAD = "/upload/v1beta/files"


@pytest.fixture
def client(server) -> GeminiClient:
    return GeminiClient(server.root_url)


def test_an_upload_can_come_in_pieces(client, server):
    start = {"X-Goog-Upload-Command": "start", "X-Goog-Upload-Protocol": "resumable"}
    url = client.call("POST", UPLOAD, headers=start).headers["X-Goog-Upload-URL"]

    def piece(command: str, offset: int, data: bytes = b"") -> requests.Response:
        headers = {"X-Goog-Upload-Command": command, "X-Goog-Upload-Offset": str(offset)}
        return requests.post(url, headers=headers, data=data, timeout=10)

    assert piece("upload", 0, b"one").headers["X-Goog-Upload-Status"] == "active"
    assert piece("query", 0).headers["X-Goog-Upload-Size-Received"] == "3"
    for wrong in (0, 2, 4):
        assert piece("upload", wrong, b"x").status_code == 400
    assert piece("start", 3).status_code == 400
    file = piece("upload, finalize", 3, b"two").json()["file"]
    assert (server.state / "files" / file["name"].removeprefix("files/")).read_bytes() == b"onetwo"
    assert piece("query", 0).status_code == 404
    assert list((server.state / "incoming").iterdir()) == []


def test_uploads_that_are_none(client):
    start = {"X-Goog-Upload-Command": "start"}
    assert client.call("POST", UPLOAD, data=b"x").status_code == 400
    named = client.call("POST", UPLOAD, headers=start, json={"file": {"name": "files/mine"}})
    odd = client.call("POST", UPLOAD, headers=start, data=b"{oops")
    assert named.status_code == odd.status_code == 400
    url = client.call("POST", UPLOAD, headers=start).headers["X-Goog-Upload-URL"]
    empty = requests.post(url, headers={"X-Goog-Upload-Command": "upload, finalize"}, timeout=5)
    assert empty.status_code == 400 and empty.json()["error"]["message"] == "The file is empty."
    assert client.call("GET", "/v1beta/files/none").status_code == 404
    path = "/v1beta/files/..%2f..%2fserver.sqlite3:download"
    assert client.call("GET", path).status_code == 404
