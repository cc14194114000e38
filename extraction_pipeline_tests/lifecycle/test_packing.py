"""Splitting documents into jobs: properties of a pure function, and of its arithmetic."""

from itertools import pairwise

import orjson
from hypothesis import example, given
from hypothesis import strategies as st

from extraction_pipeline.collections.recipe import Recipe
from extraction_pipeline.documents.readers.clean_text import clean_text
from extraction_pipeline.ledger.claims import Claimable
from extraction_pipeline.lifecycle.recipes import build_request
from extraction_pipeline.lifecycle.submission import pack
from extraction_pipeline.providers.base import ProviderLimits
from extraction_pipeline.providers.openai_translation import encode_request

sizes = st.lists(st.integers(2, 400), max_size=60)
RECIPE = Recipe(
    instructions="Extract.",
    schema_name="note",
    schema_version="note/1",
    json_schema={"type": "object"},
    provider="local",
    model="m",
    parameters={"temperature": 0},
    max_output_tokens=100,
)


@given(sizes, st.integers(1, 60), st.integers(1, 8), st.integers(10, 900))
@example([2, 2], 6, 1, 18)
def test_order_and_limits_are_kept_and_nothing_is_lost(
    payloads: list[int], empty_line: int, requests: int, bytes_per_job: int
) -> None:
    """Field report 44: jobs are split by both limits, and what no job can hold is named."""
    documents = [Claimable(number, size) for number, size in enumerate(payloads)]
    groups, too_large = pack(documents, empty_line, ProviderLimits(requests, bytes_per_job, None))

    def size(document: Claimable) -> int:
        return empty_line + document.payload_bytes + 1

    packed = [document for group in groups for document in group]
    assert sorted(packed + too_large, key=lambda one: one.document_id) == documents
    assert packed == sorted(packed, key=lambda one: one.document_id)
    assert all(1 <= len(group) <= requests for group in groups)
    assert all(sum(map(size, group)) <= bytes_per_job for group in groups)
    assert all(size(document) > bytes_per_job for document in too_large)
    for group, following in pairwise(groups):
        full = len(group) == requests
        assert full or sum(map(size, group)) + size(following[0]) > bytes_per_job


@given(sizes, st.integers(1, 200))
def test_jobs_that_should_be_smaller_lose_no_document_that_fits_a_job(
    payloads: list[int], wished: int
) -> None:
    """A limit that was learned from a refusal is a wish: the provider alone refuses a document."""
    documents = [Claimable(number, size) for number, size in enumerate(payloads)]
    groups, too_large = pack(documents, 1, ProviderLimits(100, 402, None), wished)
    assert [document for group in groups for document in group] == documents
    assert too_large == []
    for group in groups:
        assert len(group) == 1 or sum(one.payload_bytes + 2 for one in group) <= wished


@given(st.integers(0, 500), st.integers(1, 50))
def test_the_number_of_jobs_follows_from_the_documents_and_the_limits(
    count: int, requests: int
) -> None:
    documents = [Claimable(number, 5) for number in range(count)]
    groups, _ = pack(documents, 10, ProviderLimits(requests, 10**9, None))
    assert len(groups) == -(-count // requests)


@given(
    st.text(alphabet=st.characters(codec="utf-8"), max_size=300),
    st.text('\u2028\u0085"\\\n€', max_size=50),
)
def test_a_line_is_never_longer_than_it_was_counted_for(text: str, awkward: str) -> None:
    """What is counted at registration is what is sent: a job at its limit is not refused."""
    cleaned = clean_text(text + awkward)
    empty = encode_request(build_request(RECIPE, "", "", "0" * 64, "").request)
    line = encode_request(build_request(RECIPE, "v1", "key", "f" * 64, cleaned).request)
    assert len(line) <= len(empty) + len(orjson.dumps(cleaned))
