"""Partition keys: they lead back to document and version, and are added once, in order."""

import hashlib
import random

from dagster import DagsterInstance, MultiPartitionKey
from hypothesis import given
from hypothesis import strategies as st

from extraction_pipeline.orchestration.partitions import (
    CHUNK,
    add_documents,
    extraction_key,
    partitions_name,
    parts_of_key,
)
from extraction_pipeline.orchestration.stages import by_version

hashes = st.binary(max_size=4).map(lambda data: hashlib.sha256(data).hexdigest())
versions = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", fullmatch=True)


@given(hashes, versions)
def test_a_key_leads_back_to_its_document_and_version(document: str, version: str) -> None:
    key = extraction_key(document, version)
    assert parts_of_key(key) == (document, version)
    assert key == str(MultiPartitionKey({"version": version, "document": document}))


@given(st.sets(st.tuples(hashes, versions), max_size=20))
def test_no_key_is_lost_or_made_up_when_keys_are_sorted_by_version(
    chosen: set[tuple[str, str]],
) -> None:
    found = by_version([extraction_key(*one) for one in chosen])
    assert {(one, version) for version, some in found.items() for one in some} == chosen
    assert sum(len(some) for some in found.values()) == len(chosen)


def test_documents_are_added_once_and_in_order(instance: DagsterInstance) -> None:
    many = [f"{number:064x}" for number in range(2 * CHUNK + 1)]
    random.Random(3).shuffle(many)
    add_documents(instance, "notes", many[: CHUNK + 7])
    add_documents(instance, "notes", many)
    assert instance.get_dynamic_partitions(partitions_name("notes")) == many
    assert instance.get_dynamic_partitions(partitions_name("others")) == []
