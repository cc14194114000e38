"""Answers to what the pages of an asset ask of all its partitions, with little memory.

Dagster keeps the statuses of an asset's partitions, and makes all of them anew when a key was
added. Its own way reads a row of every event that it then passes over.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dagster import AssetKey, DagsterEventType, PartitionsDefinition
from dagster._core.definitions.partitions.context import partition_loading_context
from dagster._core.loader import LoadingContext
from dagster._core.storage.event_log.base import AssetRecord
from dagster._core.storage.event_log.schema import DynamicPartitionsTable, SqlEventLogStorageTable
from dagster._core.storage.partition_status_cache import (
    AssetStatusCacheValue,
    get_last_planned_storage_id,
)
from dagster_postgres import PostgresEventLogStorage
from sqlalchemy import ColumnElement, Row, Select, func, or_, select, text

from extraction_pipeline.dagster_storage.first_caller import be_first_to_make_a_range
from extraction_pipeline.dagster_storage.plain_keys import with_plain_keys

ROWS_IN_MEMORY = 10_000
"""Of an answer of the database at a time."""

MADE = DagsterEventType.ASSET_MATERIALIZATION.value
ADD_KEYS = text("""
    INSERT INTO dynamic_partitions (partitions_def_name, partition)
    SELECT :name, added.key FROM unnest(CAST(:keys AS text[])) WITH ORDINALITY AS added (key, place)
    ORDER BY added.place ON CONFLICT DO NOTHING
""")

PLANNED = DagsterEventType.ASSET_MATERIALIZATION_PLANNED.value


class PartitionStatusStorage(PostgresEventLogStorage):
    """Dagster's storage of events, with its answers about all partitions found another way."""

    def get_asset_status_cache_values(
        self,
        partitions_defs_by_key: Iterable[tuple[AssetKey, PartitionsDefinition | None]],
        context: LoadingContext,
    ) -> Sequence[AssetStatusCacheValue | None]:
        """The statuses of all partitions of each asset, brought up to date."""
        be_first_to_make_a_range()
        return [
            self._statuses(key, with_plain_keys(partitions), context)
            for key, partitions in partitions_defs_by_key
        ]

    def _statuses(
        self,
        asset_key: AssetKey,
        partitions: PartitionsDefinition | None,
        context: LoadingContext,
    ) -> AssetStatusCacheValue | None:
        store = getattr(context, "dynamic_partitions_loader", None) or self._instance
        with partition_loading_context(None, store):
            record = AssetRecord.blocking_get(context, asset_key)
            kept = record.asset_entry.cached_status if record else None
            if record and kept and partitions and self._is_true_still(kept, record, partitions):
                return kept
        (found,) = super().get_asset_status_cache_values([(asset_key, partitions)], context)
        return found

    def _is_true_still(
        self, kept: AssetStatusCacheValue, record: AssetRecord, partitions: PartitionsDefinition
    ) -> bool:
        """Whether nothing has happened since: Dagster would read all and write them once more."""
        entry = record.asset_entry
        planned = get_last_planned_storage_id(self._instance, entry.asset_key, record)
        return (
            kept.latest_storage_id == max(entry.last_materialization_storage_id or 0, planned)
            # A run goes on, and may have ended.
            and kept.earliest_in_progress_materialization_event_id is None
            and kept.partitions_def_id == partitions.get_serializable_unique_identifier()
        )

    def add_dynamic_partitions(
        self, partitions_def_name: str, partition_keys: Sequence[str]
    ) -> None:
        """Add keys to a definition; those that are there stay."""
        with self.index_connection() as connection:
            # Two parameters; Dagster's own statement has two for each key, and is compiled anew.
            connection.execute(
                ADD_KEYS, {"name": partitions_def_name, "keys": list(partition_keys)}
            )

    def get_asset_records(self, asset_keys: Sequence[AssetKey] | None = None) -> list[AssetRecord]:
        """What is known of each of these assets, by the order of their names."""
        if asset_keys is None:
            return list(super().get_asset_records())
        records: list[AssetRecord] = []
        # Each comes with the text of all its partitions, twice while it is read.
        for key in sorted(set(asset_keys), key=AssetKey.to_string):
            records.extend(super().get_asset_records([key]))
        return records

    def get_dynamic_partitions(self, partitions_def_name: str) -> Sequence[str]:
        """All keys of a definition, in the order in which they were added."""
        table = DynamicPartitionsTable.c
        query = (
            select(table.partition)
            .where(table.partitions_def_name == partitions_def_name)
            .order_by(table.id)
        )
        return [key for (key,) in self._rows_of(query)]

    def get_materialized_partitions(
        self,
        asset_key: AssetKey,
        before_cursor: int | None = None,
        after_cursor: int | None = None,
    ) -> set[str]:
        """The partitions that have a record, of those written between two ids."""
        table = SqlEventLogStorageTable.c
        query = self._of_partitions(asset_key, [MADE], table.partition).distinct()
        if after_cursor:
            query = query.where(table.id > after_cursor)
        if before_cursor:
            query = query.where(table.id < before_cursor)
        return {partition for (partition,) in self._rows_of(query)}

    def get_latest_asset_partition_materialization_attempts_without_materializations(
        self, asset_key: AssetKey, after_storage_id: int | None = None
    ) -> Mapping[str, tuple[str, int]]:
        """Run and event id of each partition whose last planned event no record has followed."""
        table = SqlEventLogStorageTable.c
        planned = func.max(table.id).filter(table.dagster_event_type == PLANNED)
        made = func.max(table.id).filter(table.dagster_event_type == MADE)
        grouped = self._of_partitions(
            asset_key, [MADE, PLANNED], table.partition, planned.label("planned")
        )
        if after_storage_id is not None:
            grouped = grouped.where(table.id > after_storage_id)
        last = (
            grouped.group_by(table.partition)
            .having(planned.is_not(None), or_(made.is_(None), made < planned))
            .subquery("last")
        )
        query = select(last.c.partition, table.run_id, table.id).join(
            SqlEventLogStorageTable, table.id == last.c.planned
        )
        return {partition: (run_id, number) for partition, run_id, number in self._rows_of(query)}

    def _of_partitions(
        self, asset_key: AssetKey, kinds: Sequence[str], *columns: ColumnElement[Any]
    ) -> Select[Any]:
        """A query over events of the partitions of an asset that were not wiped."""
        table = SqlEventLogStorageTable.c
        query = select(*columns).where(
            table.asset_key == asset_key.to_string(),
            table.partition.is_not(None),
            table.dagster_event_type.in_(kinds),
        )
        details = self._get_assets_details([asset_key])
        found: Select[Any] = self._add_assets_wipe_filter_to_query(query, details, [asset_key])
        return found

    def _rows_of(self, query: Select[Any]) -> Iterator[Row[Any]]:
        # A cursor of the database needs a transaction, and else its whole answer is kept.
        with self.index_transaction() as connection:
            streaming = connection.execution_options(yield_per=ROWS_IN_MEMORY)
            yield from streaming.execute(query)
