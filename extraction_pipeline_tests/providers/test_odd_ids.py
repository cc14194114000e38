"""Ids that no database keeps: a job that is named by one was made, and is to be searched for."""

import json
from pathlib import Path

import pytest

from extraction_pipeline.providers.base import Submission
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.errors import CallFailed, OutcomeUnknown
from extraction_pipeline.providers.registry import BUILDERS, ProviderName, build_api
from extraction_pipeline_tests.providers.scripted_server import answer, scripted_server, send

ODD_IDS = ["a\0b", "a\ud800b", "a\nb", "x" * 501]


@pytest.mark.parametrize("odd", ODD_IDS, ids=["nul", "surrogate", "newline", "long"])
@pytest.mark.parametrize("name", BUILDERS)
def test_a_job_with_an_id_that_cannot_be_kept_is_of_unknown_outcome(
    tmp_path: Path, name: ProviderName, odd: str
) -> None:
    job = {"id": odd, "status": "queued", "processing_status": "in_progress", "name": odd}
    body = {"ok": True, "data": job} if name is ProviderName.INFRAI else job
    payload = tmp_path / "payload"
    payload.write_bytes(b'{"body": {}}\n')
    file = send(answer(200, b'{"name": "files/f1", "state": "ACTIVE"}'))
    before = [file] if name is ProviderName.GEMINI else []
    with scripted_server(*before, send(answer(200, json.dumps(body).encode()))) as server:
        root = server.url.removesuffix("/v1")
        provider = build_api(name, ProviderEndpoint(root, api_key="k-1", read_timeout=5))
        uploaded = provider.files is not None
        submission = Submission(
            "notes.v1.0123",
            "some-model",
            input_id="files/f1" if uploaded else None,
            payload=None if uploaded else payload,
        )
        with pytest.raises(OutcomeUnknown):
            provider.submit(submission)


def test_an_upload_with_an_id_that_cannot_be_kept_has_failed(tmp_path: Path) -> None:
    payload = tmp_path / "payload"
    payload.write_bytes(b"{}\n")
    with scripted_server(send(answer(200, b'{"id": "a\\u0000b"}'))) as server:
        files = build_api(ProviderName.LOCAL, ProviderEndpoint(server.url)).files
        assert files is not None
        with pytest.raises(CallFailed):
            files.upload(payload, "notes.v1.0123")
