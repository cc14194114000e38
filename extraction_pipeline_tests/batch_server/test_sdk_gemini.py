"""Google's own client against the server, with nothing done for it."""

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from extraction_pipeline_tests.batch_server.client import NOTE_SCHEMA
from extraction_pipeline_tests.batch_server.process import running_server, wait_until

genai = pytest.importorskip("google.genai", reason="needs the extra `sdk`")
KEY = "test-key"
MODEL = "rules-baseline"


class Inner(BaseModel):
    number: int | None
    words: list[str]


class FictionalNote(BaseModel):
    title: str | None
    inner: Inner | None


def client_at(url: str, key: str = KEY, **options: Any) -> Any:
    return genai.Client(api_key=key, http_options={"base_url": url, **options})


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Any]:
    environment = {"TEST_BATCH_KEY": KEY}
    with running_server(
        tmp_path_factory.mktemp("gemini") / "state",
        environment=environment,
        api_key_variable="TEST_BATCH_KEY",
        delay=0.5,
    ) as running:
        yield running


@pytest.fixture(scope="module", params=[None, "v1beta"])
def client(server, request) -> Any:
    """With the version that the client takes by itself, and with the one of the documents."""
    options = {} if request.param is None else {"api_version": request.param}
    return client_at(server.root_url, **options)


def ended(client: Any, name: str) -> Any:
    def end() -> Any:
        job = client.batches.get(name=name)
        return job if job.done else None

    return wait_until(end)


def inline(key: str, **config: Any) -> dict[str, Any]:
    return {
        "contents": "A fictional note.",
        "metadata": {"key": key},
        "config": {"system_instruction": "Extract.", "max_output_tokens": 500, **config},
    }


def test_an_inline_batch(client):
    schema = {"response_mime_type": "application/json", "response_schema": FictionalNote}
    source = [inline("a", **schema), inline("b", **schema), inline("bad")]
    job = client.batches.create(model=MODEL, src=source, config={"display_name": "job-1"})
    assert job.state.name == "JOB_STATE_PENDING" and job.display_name == "job-1"
    job = ended(client, job.name)
    assert job.state.name == "JOB_STATE_SUCCEEDED"
    assert job.end_time >= job.create_time
    found = {item.metadata["key"]: item for item in job.dest.inlined_responses}
    assert json.loads(found["a"].response.text) == {"title": None, "inner": None}
    assert found["a"].response.usage_metadata.total_token_count > 0
    assert found["a"].response.candidates[0].finish_reason.name == "STOP"
    assert found["bad"].response is None and found["bad"].error.code == 3


def test_a_file_batch(client):
    config = {"response_mime_type": "application/json", "response_json_schema": NOTE_SCHEMA}
    lines = [
        {
            "key": key,
            "request": {
                "contents": [{"parts": [{"text": "A fictional note."}]}],
                "generation_config": config,
            },
        }
        for key in ("a", "b", "c")
    ]
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    upload = {"display_name": "job-2", "mime_type": "application/jsonl"}
    file = client.files.upload(file=io.BytesIO(content), config=upload)
    assert (file.size_bytes, file.display_name) == (len(content), "job-2")
    assert file.name in [each.name for each in client.files.list()]

    job = client.batches.create(model=MODEL, src=file.name, config={"display_name": "job-2"})
    client.files.delete(name=file.name)
    with pytest.raises(genai.errors.ClientError) as caught:
        client.files.get(name=file.name)
    assert (caught.value.code, caught.value.status) == (404, "NOT_FOUND")
    job = ended(client, job.name)
    results = client.files.download(file=job.dest.file_name)
    found = {line["key"]: line for line in map(json.loads, results.splitlines())}
    assert found.keys() == {"a", "b", "c"}
    part = found["a"]["response"]["candidates"][0]["content"]["parts"][0]
    assert json.loads(part["text"]) == {"title": None}

    client.batches.delete(name=job.name)
    with pytest.raises(genai.errors.ClientError, match="NOT_FOUND"):
        client.batches.get(name=job.name)


def test_a_file_larger_than_one_piece_of_an_upload(client):
    content = json.dumps({"key": "a", "request": {"contents": []}}).encode() + b"\n"
    content += b" " * 9_000_000 + b"\n"
    upload = {"mime_type": "application/jsonl"}
    file = client.files.upload(file=io.BytesIO(content), config=upload)
    assert file.size_bytes == len(content)


def test_cancelling(client):
    job = client.batches.create(model=MODEL, src=[inline("a")])
    client.batches.cancel(name=job.name)
    job = ended(client, job.name)
    assert job.state.name in ("JOB_STATE_CANCELLED", "JOB_STATE_SUCCEEDED")
    client.batches.cancel(name=job.name)


def test_lists_are_paged_by_the_client(client):
    made = [client.batches.create(model=MODEL, src=[inline("a")]).name for _ in range(5)]
    found = [job.name for job in client.batches.list(config={"page_size": 2})]
    assert found[:5] == made[::-1]


def test_errors_are_the_client_s_own(server):
    client = client_at(server.root_url)
    with pytest.raises(genai.errors.ClientError) as caught:
        client.batches.create(model=MODEL, src="files/none")
    assert (caught.value.code, caught.value.status) == (404, "NOT_FOUND")
    with pytest.raises(genai.errors.ClientError) as caught:
        client.batches.create(model=MODEL, src=[])
    assert caught.value.status == "INVALID_ARGUMENT"
    stranger = client_at(server.root_url, "wrong")
    with pytest.raises(genai.errors.ClientError, match="API_KEY_INVALID"):
        stranger.batches.list()
