"""Checks on the asset pages: records against the ledger, and what needs a person."""

from collections.abc import Sequence

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    MetadataValue,
    asset_check,
)

from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.ledger.records import published_keys, troubled_jobs
from extraction_pipeline.orchestration.partitions import (
    extraction_key,
    extractions_asset,
    submissions_asset,
)
from extraction_pipeline.orchestration.resource import PipelineResource

NAMED_AT_MOST = 20


def collection_checks(collection: Collection) -> list[AssetChecksDefinition]:
    """The checks of one collection."""
    return [_records_agree(collection), _nothing_stuck(collection)]


def _records_agree(collection: Collection) -> AssetChecksDefinition:
    @asset_check(
        asset=extractions_asset(collection.name),
        name="records_agree_with_ledger",
        description="Every materialization has its row in the ledger, and every row its "
        "materialization.",
    )
    def records_agree_with_ledger(
        context: AssetCheckExecutionContext, pipeline: PipelineResource
    ) -> AssetCheckResult:
        recorded = set(
            context.instance.get_materialized_partitions(extractions_asset(collection.name))
        )
        with pipeline.open().engine.connect() as connection:
            published = {
                str(extraction_key(document_hash, version)): due
                for document_hash, version, due in published_keys(connection, collection.name)
            }
        without_row = sorted(recorded.difference(published))
        without_record = sorted(
            key for key, due in published.items() if due and key not in recorded
        )
        return AssetCheckResult(
            passed=not without_row and not without_record,
            severity=AssetCheckSeverity.ERROR,
            metadata={
                "published": len(published),
                "recorded": len(recorded),
                "records_without_row": _named(without_row),
                "rows_without_record": _named(without_record),
            },
        )

    return records_agree_with_ledger


def _nothing_stuck(collection: Collection) -> AssetChecksDefinition:
    @asset_check(
        asset=submissions_asset(collection.name),
        name="nothing_stuck",
        description="No batch job is held, unresolved, or without an end for more than 24 hours.",
    )
    def nothing_stuck(pipeline: PipelineResource) -> AssetCheckResult:
        with pipeline.open().engine.connect() as connection:
            stuck = troubled_jobs(connection, collection.name, hours=24)
        return AssetCheckResult(
            passed=not stuck,
            severity=AssetCheckSeverity.WARN,
            metadata={"batch_jobs": _named(stuck)},
        )

    return nothing_stuck


def _named(keys: Sequence[str]) -> MetadataValue:
    return MetadataValue.json({"count": len(keys), "first": list(keys[:NAMED_AT_MOST])})
