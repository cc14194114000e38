"""A first look at the statuses of an asset's partitions costs strings, not objects."""

import tracemalloc
from collections.abc import Callable
from typing import TypeVar

import pytest
from dagster import (
    AssetKey,
    DagsterInstance,
    DynamicPartitionsDefinition,
    MultiPartitionsDefinition,
    PartitionsDefinition,
    StaticPartitionsDefinition,
)
from dagster._core.definitions.partitions.context import partition_loading_context
from dagster._core.definitions.partitions.subset import DefaultPartitionsSubset
from dagster._core.definitions.partitions.utils import MultiPartitionKey
from dagster._core.definitions.partitions.utils.time_window import PartitionRangeStatus
from dagster._core.loader import LoadingContextForTest
from dagster_graphql.implementation.partition_status_utils import (
    MultiPartitionRange,
    build_multi_partition_ranges_generic,
)

from extraction_pipeline.dagster_storage.event_log import BulkEventLogStorage
from extraction_pipeline.dagster_storage.plain_keys import with_plain_keys
from extraction_pipeline.dagster_storage.plain_record import PlainRecord, RecordKind
from extraction_pipeline.orchestration.event_log import write_records

SENT = AssetKey("sent")
DOCUMENTS = DynamicPartitionsDefinition(name="documents")
VERSIONS = StaticPartitionsDefinition(["v1", "v2", "v3"])
PARTITIONS = MultiPartitionsDefinition({"document": DOCUMENTS, "version": VERSIONS})
COUNT = 1500

BYTES_A_KEY = 700
"""Of 67 characters, in a few sets and the text that is stored; Dagster's own way takes 2,200."""

BYTES_A_KEY_ALONE = 250
"""Where nothing is done with it."""

T = TypeVar("T")


@pytest.fixture
def filled(instance: DagsterInstance) -> BulkEventLogStorage:
    """The storage of an asset of a few thousand partitions, all with a record."""
    documents = [f"{number:064x}" for number in range(COUNT)]
    instance.add_dynamic_partitions("documents", documents)
    write_records(
        instance,
        run_id="run",
        job_name="job",
        step_key="step",
        records=[
            PlainRecord(RecordKind.MATERIALIZATION, SENT, f"{document}|{version}", {})
            for document in documents
            for version in VERSIONS.get_partition_keys()
        ],
    )
    storage = instance.event_log_storage
    assert isinstance(storage, BulkEventLogStorage)
    return storage


def test_a_first_look_at_all_statuses_makes_no_object_of_each_key(
    instance: DagsterInstance, filled: BulkEventLogStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    monkeypatch.setattr(MultiPartitionKey, "__new__", lambda *given: made.append(given))
    assert look(instance, filled) == 3 * COUNT
    instance.add_dynamic_partitions("documents", ["one more"])
    peak, found = peak_of(lambda: look(instance, filled))
    assert (found, made) == (3 * COUNT, [])
    assert peak / found < BYTES_A_KEY


def test_no_row_is_kept_of_what_is_asked_of_all_partitions(
    filled: BulkEventLogStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "extraction_pipeline.dagster_storage.partition_status.ROWS_IN_MEMORY", COUNT // 10
    )
    attempts = filled.get_latest_asset_partition_materialization_attempts_without_materializations
    for ask, count in (
        (lambda: filled.get_dynamic_partitions("documents"), COUNT),
        (lambda: filled.get_materialized_partitions(SENT), 3 * COUNT),
    ):
        ask()
        peak, found = peak_of(ask)
        assert len(found) == count
        assert peak / count < BYTES_A_KEY_ALONE
    attempts(SENT)
    peak, unmade = peak_of(lambda: attempts(SENT))
    assert unmade == {}
    assert peak < COUNT * BYTES_A_KEY_ALONE / 2


def test_the_texts_of_several_assets_are_read_one_after_the_other(
    instance: DagsterInstance, filled: BulkEventLogStorage
) -> None:
    others = [AssetKey(f"other {number}") for number in range(3)]
    look(instance, filled)
    [sent] = filled.get_asset_records([SENT])
    kept = sent.asset_entry.cached_status
    assert kept is not None and kept.serialized_materialized_partition_subset is not None
    for key in others:
        write_records(
            instance,
            run_id="run",
            job_name="job",
            step_key="step",
            records=[PlainRecord(RecordKind.MATERIALIZATION, key, "one", {})],
        )
        filled.update_asset_cached_status_data(key, kept)
    asked = [others[1], SENT, others[0], others[2]]
    peak, found = peak_of(lambda: filled.get_asset_records(asked))
    assert [one.asset_entry.asset_key for one in found] == [*others, SENT]
    assert peak / len(kept.serialized_materialized_partition_subset) < len(asked) + 2.5


def test_nothing_is_read_anew_while_nothing_happens(
    instance: DagsterInstance, filled: BulkEventLogStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert look(instance, filled) == 3 * COUNT
    asked: list[str] = []
    with monkeypatch.context() as watched:
        watched.setattr(
            DefaultPartitionsSubset, "serialize", lambda subset: asked.append("written")
        )
        assert look(instance, filled) == 3 * COUNT
    assert asked == []
    write_records(
        instance,
        run_id="run",
        job_name="job",
        step_key="step",
        records=[PlainRecord(RecordKind.MATERIALIZATION, SENT, f"{COUNT:064x}|v1", {})],
    )
    instance.add_dynamic_partitions("documents", [f"{COUNT:064x}"])
    assert look(instance, filled) == 3 * COUNT + 1


def test_the_first_grid_is_not_kept_for_good(
    instance: DagsterInstance, filled: BulkEventLogStorage
) -> None:
    """Dagster's constructor of a range keeps the variables of whoever makes the first one."""
    look(instance, filled)
    subset = DefaultPartitionsSubset({f"{0:064x}|v1"})

    def secondary(given: object) -> object:
        return given

    with partition_loading_context(dynamic_partitions_store=instance):
        ranges = build_multi_partition_ranges_generic(
            {PartitionRangeStatus.MATERIALIZED: subset}, PARTITIONS, instance, secondary
        )
    assert len(ranges) == 1
    kept = MultiPartitionRange.__new__.__globals__
    assert subset not in [one for one in kept.values() if isinstance(one, DefaultPartitionsSubset)]
    assert "primary_to_status_subsets" not in kept


def peak_of(ask: Callable[[], T]) -> tuple[int, T]:
    """The most memory in bytes that Python had more while it asked, and the answer."""
    tracemalloc.start()
    try:
        answer = ask()
        return tracemalloc.get_traced_memory()[1], answer
    finally:
        tracemalloc.stop()


def look(instance: DagsterInstance, storage: BulkEventLogStorage) -> int:
    """What a page asks for; how many partitions are green."""
    (found,) = storage.get_asset_status_cache_values(
        [(SENT, PARTITIONS)], LoadingContextForTest(instance)
    )
    assert found is not None
    return len(found.deserialize_materialized_partition_subsets(PARTITIONS))


@pytest.mark.parametrize(
    "definition",
    [DOCUMENTS, VERSIONS, PARTITIONS, MultiPartitionsDefinition({"a": VERSIONS, "b": DOCUMENTS})],
)
def test_the_same_keys_are_partitions(
    instance: DagsterInstance, definition: PartitionsDefinition
) -> None:
    instance.add_dynamic_partitions("documents", ["one", "v1", ""])
    asked = {"one", "v1", "v9", "", "|", "one|v1", "v1|one", "v1|v1", "one|v1|v1", "|v1", "no|v1"}
    plain = with_plain_keys(definition)
    assert plain is not None
    with partition_loading_context(dynamic_partitions_store=instance):
        assert plain.filter_valid_partition_keys(asked) == definition.filter_valid_partition_keys(
            asked
        )
        assert plain.filter_valid_partition_keys(set()) == set()
        # What is kept for one would else be made anew for the other, at each look.
        known = definition.get_serializable_unique_identifier()
        assert plain.get_serializable_unique_identifier() == known
