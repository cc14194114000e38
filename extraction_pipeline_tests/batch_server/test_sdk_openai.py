"""OpenAI's own client against the server, with nothing done for it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from extraction_pipeline_tests.batch_server.client import ENDS, jsonl, line
from extraction_pipeline_tests.batch_server.process import running_server, wait_until

openai = pytest.importorskip("openai", reason="needs the extra `sdk`")
KEY = "sk-test"


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> Iterator[Any]:
    environment = {"TEST_BATCH_KEY": KEY}
    with running_server(
        tmp_path_factory.mktemp("openai") / "state",
        environment=environment,
        api_key_variable="TEST_BATCH_KEY",
        delay=0.5,
    ) as server:
        yield openai.OpenAI(base_url=server.base_url, api_key=KEY, max_retries=0)


def create(client: Any, *lines: dict[str, Any], **more: Any) -> Any:
    file = client.files.create(file=("in.jsonl", jsonl(lines)), purpose="batch")
    return client.batches.create(
        input_file_id=file.id,
        endpoint="/v1/chat/completions",
        completion_window="24h",
        **more,
    )


def ended(client: Any, batch_id: str) -> Any:
    def end() -> Any:
        batch = client.batches.retrieve(batch_id)
        return batch if batch.status in ENDS else None

    return wait_until(end)


def test_the_life_of_a_batch(client):
    batch = create(
        client, line("a"), line("b"), line("bad", n="x", messages=1), metadata={"k": "v"}
    )
    assert batch.status == "validating" and batch._request_id
    batch = ended(client, batch.id)
    assert batch.status == "completed" and batch.metadata == {"k": "v"}
    counts = batch.request_counts
    assert (counts.total, counts.completed, counts.failed) == (3, 2, 1)
    rows = [json.loads(row) for row in client.files.content(batch.output_file_id).iter_lines()]
    assert sorted(row["custom_id"] for row in rows) == ["a", "b"]
    errors = client.files.content(batch.error_file_id).text
    assert json.loads(errors)["response"]["status_code"] == 400
    with pytest.raises(openai.ConflictError):
        client.batches.cancel(batch.id)
    assert client.files.delete(batch.input_file_id).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(batch.input_file_id)


def test_cancelling_and_failing(client):
    batch = create(client, line("a"))
    assert client.batches.cancel(batch.id).status in ("cancelling", "cancelled")
    assert ended(client, batch.id).status == "cancelled"
    failed = ended(client, create(client, line("a"), line("a")).id)
    assert failed.status == "failed"
    assert failed.errors.data[0].code == "duplicate_custom_id"


def test_lists_are_paged_by_the_client(client):
    made = [create(client, line("a")).id for _ in range(5)]
    assert [batch.id for batch in client.batches.list(limit=2)][:5] == made[::-1]


def test_errors_are_the_client_s_own(client):
    with pytest.raises(openai.BadRequestError):
        client.batches.create(
            input_file_id="file-none", endpoint="/v1/chat/completions", completion_window="24h"
        )
    with pytest.raises(openai.NotFoundError):
        client.batches.retrieve("batch_none")
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="wrong").batches.list()
