"""Finding a job again: only a complete search may say that there is none."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from extraction_pipeline.providers import paging
from extraction_pipeline.providers.base import FoundJob, SearchVerdict, Sought
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.errors import CallFailed, CallRefused, ProviderError
from extraction_pipeline.providers.openai import OpenAIBatchProvider
from extraction_pipeline_tests.providers.scripted_server import (
    Script,
    answer,
    drop,
    scripted_server,
    send,
)

KEY = "notes.v1.0123"
WHEN = datetime(2026, 1, 1, tzinfo=UTC)
SOUGHT = Sought(KEY, WHEN, WHEN, request_count=1, custom_id_prefix="0123456789abcdef-")


def page(*items: dict[str, Any], more: object = False) -> Script:
    body = {"object": "list", "data": list(items), "has_more": more}
    return send(answer(200, json.dumps(body).encode()))


def file(number: int, name: str = "other.jsonl") -> dict[str, Any]:
    return {"id": f"file-{number}", "filename": name, "bytes": 1, "purpose": "batch"}


def batch(
    number: int, key: str | None = None, input_file: str = "file-x", **fields
) -> dict[str, Any]:
    metadata = None if key is None else {"extraction_job_key": key}
    return {
        "id": f"batch_{number}",
        "status": "in_progress",
        "created_at": 1_600_000_000 + number,
        "input_file_id": input_file,
        "metadata": metadata,
        **fields,
    }


def search(*scripts: Script, sought: Sought = SOUGHT) -> tuple[tuple[FoundJob, ...], list[str]]:
    """What is found, and the paths that were asked for."""
    with scripted_server(*scripts) as server:
        provider = OpenAIBatchProvider("test", ProviderEndpoint(server.url))
        search = provider.find(sought)
        assert (search.verdict is SearchVerdict.FOUND) == bool(search.found)
        assert search.found or search.verdict is SearchVerdict.ABSENT
        return search.found, [request.split()[1].decode() for request in server.requests]


def test_a_job_is_found_by_its_metadata_on_the_last_page_in_any_order():
    found, paths = search(
        page(),
        page(batch(9), batch(1), more=True),
        page(batch(2, "someone-elses"), batch(8, KEY), more=True),
        page(batch(3)),
    )
    assert [job.job_id for job in found] == ["batch_8"]
    assert found[0].created_at == datetime.fromtimestamp(1_600_000_008, UTC)
    queries = [parse_qs(urlsplit(path).query) for path in paths]
    assert queries[0] == {"purpose": ["batch"]}  # some servers refuse a limit of more than 100
    assert [query.get("after") for query in queries[1:]] == [None, ["batch_1"], ["batch_8"]]


def test_a_job_is_found_by_the_name_of_its_input_file():
    # A compatible server that keeps no metadata.
    found, _ = search(
        page(file(1), more=True),
        page(file(2, f"extraction-{KEY}.jsonl")),
        page(batch(5, input_file="file-1"), batch(6, input_file="file-2")),
    )
    assert [job.job_id for job in found] == ["batch_6"]


@pytest.mark.parametrize("metadata", [None, json.dumps({"extraction_job_key": KEY})])
def test_a_job_is_found_by_its_upload_that_is_not_listed_any_more(metadata):
    theirs, ours = batch(5), batch(6, input_file="file-2", metadata=metadata)
    sought = replace(SOUGHT, input_ids=frozenset({"file-2"}))
    found, _ = search(page(), page(theirs, ours), sought=sought)
    assert [job.job_id for job in found] == ["batch_6"]


def test_every_job_of_the_key_is_found_once():
    found, _ = search(page(), page(batch(5, KEY), batch(6, KEY), more=True), page(batch(5, KEY)))
    assert [job.job_id for job in found] == ["batch_5", "batch_6"]


def test_an_uploaded_file_alone_is_no_job():
    found, _ = search(page(file(2, f"extraction-{KEY}.jsonl")), page(batch(5)))
    assert found == ()


@pytest.mark.parametrize("metadata", ["text", [], {"extraction_job_key": ["a"]}, {"other": KEY}])
def test_odd_metadata_matches_nothing(metadata):
    assert search(page(), page(batch(5, metadata=metadata)))[0] == ()


def test_metadata_is_found_in_a_string_as_well():
    metadata = json.dumps({"extraction_job_key": KEY})
    assert [job.job_id for job in search(page(), page(batch(5, metadata=metadata)))[0]] == [
        "batch_5"
    ]


def test_a_batch_that_tells_nothing_of_itself_proves_no_absence():
    tells_nothing = {"id": "batch_5", "status": "in_progress", "metadata": None}
    at = int(WHEN.timestamp())
    with scripted_server(page(), page({**tells_nothing, "created_at": at})) as server:
        provider = OpenAIBatchProvider("test", ProviderEndpoint(server.url))
        outcome = provider.find(SOUGHT)
    assert (outcome.verdict, outcome.possible) == (SearchVerdict.UNCERTAIN, ("batch_5",))
    assert search(page(), page({**tells_nothing, "created_at": at - 86_400}))[0] == ()


INCOMPLETE = {
    "second page fails": (page(), page(batch(1), more=True), send(answer(503))),
    "second page dropped": (page(), page(batch(1), more=True), drop),
    "files fail": (send(answer(500)),),
    "no files endpoint": (send(answer(404)),),
    "an empty page that is not the last": (page(), page(more=True)),
    "the same page for ever": (page(), page(batch(1), more=True)),
    "does not say whether more follow": (page(), page(batch(1), more=None)),
    "no list at all": (page(), send(answer(200, b'{"id": "x"}'))),
    "an item without an id": (page(), page({"status": "in_progress"})),
}


@pytest.mark.parametrize("scripts", INCOMPLETE.values(), ids=INCOMPLETE.keys())
def test_a_search_that_is_not_complete_raises(scripts):
    with pytest.raises(ProviderError) as caught:
        search(*scripts)
    assert isinstance(caught.value, CallFailed | CallRefused)


def test_a_search_that_is_cut_by_its_bound_raises(monkeypatch):
    monkeypatch.setattr(paging, "LONGEST_SEARCH_PAGES", 2)
    pages = [page(batch(number), more=True) for number in range(3)]
    with pytest.raises(CallFailed, match="more than 2 pages"):
        search(page(), *pages)
