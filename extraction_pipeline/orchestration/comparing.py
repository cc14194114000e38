"""Comparing Dagster's records with the ledger, stage by stage, a thousand documents at a time."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from dagster import AssetKey, DagsterEventType, DagsterInstance
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from sqlalchemy import Engine, func, select

from extraction_pipeline.ledger import stages
from extraction_pipeline.ledger.stages import Passed, Stage
from extraction_pipeline.orchestration.partitions import extraction_key, parts_of_key
from extraction_pipeline.orchestration.recorded import (
    asset_of,
    recorded_contents,
    recorded_partitions,
)

NAMED_AT_MOST = 20
EVENTS_AT_ONCE = 200_000
"""Of Dagster's events, among which partitions are looked for at once."""


@dataclass
class Found:
    """Partition keys of one kind: how many, and the first of them."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, keys: Collection[str]) -> None:
        """Count these keys, and keep the first few."""
        self.count += len(keys)
        self.first += sorted(keys)[: NAMED_AT_MOST - len(self.first)]


@dataclass
class Comparison:
    """How the records of a stage stand against the ledger."""

    in_ledger: int = 0
    records_without_row: Found = field(default_factory=Found)
    records_without_partition: Found = field(default_factory=Found)
    """Named by their time, for they name no document."""
    rows_without_record: Found = field(default_factory=Found)
    records_of_other_content: Found = field(default_factory=Found)

    @property
    def agrees(self) -> bool:
        """Whether nothing lacks, lies or differs."""
        return not (
            self.records_without_row.count
            or self.records_without_partition.count
            or self.rows_without_record.count
            or self.records_of_other_content.count
        )


def partition_of(one: Passed) -> str:
    """The partition key of a document at a stage."""
    if one.version is None:
        return one.document_hash
    return extraction_key(one.document_hash, one.version)


def compare(engine: Engine, instance: DagsterInstance, collection: str, stage: Stage) -> Comparison:
    """Compare all records of a stage with the ledger, in both directions."""
    result = Comparison()
    backed: set[str] = set()
    for rows, said in with_contents(engine, instance, collection, stage):
        backed |= said.keys()
        result.in_ledger += len(rows)
        due = {partition_of(one): one.content for one in rows if one.due}
        result.rows_without_record.add(due.keys() - said.keys())
        result.records_of_other_content.add(
            [key for key, content in due.items() if said.get(key, content) != content]
        )
    for keys in _recorded_partitions(instance, asset_of(collection, stage)):
        doubtful = (key for key in keys if key not in backed)
        asked = [parts_of_key(key) if "|" in key else (key, None) for key in doubtful]
        if not asked:
            continue
        with engine.connect() as connection:
            unknown = stages.without_row(connection, collection, stage, asked)
        result.records_without_row.add(
            [one if version is None else f"{one}|{version}" for one, version in unknown]
        )
    result.records_without_partition = _without_partition(instance, asset_of(collection, stage))
    return result


def with_contents(
    engine: Engine, instance: DagsterInstance, collection: str, stage: Stage
) -> Iterator[tuple[list[Passed], Mapping[str, str | None]]]:
    """What has passed a stage, in chunks, each with the contents that the records of it name."""
    with engine.connect() as connection:
        for rows in stages.passed(connection, collection, stage):
            partitions = [partition_of(one) for one in rows]
            yield rows, recorded_contents(instance, collection, stage, partitions)


def lacking(
    engine: Engine,
    instance: DagsterInstance,
    collection: str,
    stage: Stage,
    *,
    differing: bool = False,
) -> Iterator[list[Passed]]:
    """What has passed a stage and is due, and has no record, in chunks; with `differing` also that
    whose record names another content."""
    if differing:
        for rows, said in with_contents(engine, instance, collection, stage):
            yield [one for one in rows if one.due and said.get(partition_of(one)) != one.content]
        return
    with engine.connect() as connection:
        for rows in stages.passed(connection, collection, stage):
            due = {partition_of(one): one for one in rows if one.due}
            there = recorded_partitions(instance, collection, stage, due.keys())
            yield [one for partition, one in due.items() if partition not in there]


def _recorded_partitions(instance: DagsterInstance, asset: AssetKey) -> Iterator[list[str]]:
    """Partitions that have a record, in chunks; one may come more than once only where its records
    lie far apart."""
    last = instance.event_log_storage.get_maximum_record_id() or 0
    seen: set[str] = set()
    for start in range(0, last + 1, EVENTS_AT_ONCE):
        window = instance.get_materialized_partitions(
            asset, before_cursor=start + EVENTS_AT_ONCE + 1, after_cursor=start
        )
        remaining = iter(sorted(window - seen))
        seen = window
        while chunk := list(islice(remaining, stages.CHUNK)):
            yield chunk


def _without_partition(instance: DagsterInstance, asset: AssetKey) -> Found:
    """Records of an asset that name no partition and were not wiped. All assets of a collection
    are partitioned, so none of these is ours; Dagster's own questions do not find them."""
    storage = instance.event_log_storage
    assert isinstance(storage, SqlEventLogStorage)
    event = SqlEventLogStorageTable.c
    chosen = storage._add_assets_wipe_filter_to_query(
        select(event.timestamp, func.count().over().label("all"))
        .where(
            event.asset_key == asset.to_string(),
            event.dagster_event_type == DagsterEventType.ASSET_MATERIALIZATION.value,
            event.partition.is_(None),
        )
        .order_by(event.id),
        storage._get_assets_details([asset]),
        [asset],
    ).limit(NAMED_AT_MOST)
    with storage.index_connection() as connection:
        rows = connection.execute(chosen).all()
    return Found(
        count=rows[0].all if rows else 0,
        first=[f"{row.timestamp:%Y-%m-%d %H:%M:%S.%f} UTC" for row in rows],
    )
