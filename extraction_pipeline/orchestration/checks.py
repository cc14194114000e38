"""Checks on the asset pages: records against the ledger, and what needs a person.

The nightly job runs them, and so do commands that wait for an end; anybody may at any time.
"""

from collections.abc import Mapping, Sequence

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    MetadataValue,
    TableColumn,
    TableRecord,
    TableSchema,
    asset_check,
)

from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.ledger.records import troubled_jobs, unreadable_documents
from extraction_pipeline.ledger.stages import Stage
from extraction_pipeline.orchestration.comparing import (
    NAMED_AT_MOST,
    Comparison,
    Found,
    asset_of,
    compare,
)
from extraction_pipeline.orchestration.partitions import submissions_asset
from extraction_pipeline.orchestration.resource import PipelineResource

UNREADABLE_NAMED_AT_MOST = 200


def collection_checks(collection: Collection) -> list[AssetChecksDefinition]:
    """The checks of one collection."""
    return [
        *(_records_agree(collection, stage) for stage in Stage),
        _nothing_stuck(collection),
        _all_readable(collection),
    ]


def _records_agree(collection: Collection, stage: Stage) -> AssetChecksDefinition:
    @asset_check(
        asset=asset_of(collection.name, stage),
        name="records_agree_with_ledger",
        description="Every materialization has its row in the ledger and names the content that "
        "stands there, and every row has its materialization.",
    )
    def records_agree_with_ledger(
        context: AssetCheckExecutionContext, pipeline: PipelineResource
    ) -> AssetCheckResult:
        with pipeline.working() as opened:
            found = compare(opened.engine, context.instance, collection.name, stage)
        return AssetCheckResult(
            passed=found.agrees,
            severity=AssetCheckSeverity.ERROR,
            description=_difference(found),
            metadata={
                "in_ledger": found.in_ledger,
                "records_without_row": _listed(found.records_without_row),
                "rows_without_record": _listed(found.rows_without_record),
                "records_of_other_content": _listed(found.records_of_other_content),
            },
        )

    return records_agree_with_ledger


def _difference(found: Comparison) -> str | None:
    """How many records and rows do not agree, in words; nothing if all do."""
    counts = {
        "records without a row in the ledger": found.records_without_row.count,
        "rows of the ledger without a record": found.rows_without_record.count,
        "records of another content": found.records_of_other_content.count,
    }
    return _counted(counts)


def _counted(counts: Mapping[str, int]) -> str | None:
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count) or None


def _listed(found: Found) -> MetadataValue:
    return MetadataValue.json({"count": found.count, "first": found.first})


def _all_readable(collection: Collection) -> AssetChecksDefinition:
    @asset_check(
        asset=asset_of(collection.name, Stage.DOCUMENTS),
        name="all_readable",
        description="Documents that could not be read to text, and why, until another file takes "
        "their place. They have no materialization at any stage but those of an earlier content.",
    )
    def all_readable(pipeline: PipelineResource) -> AssetCheckResult:
        with pipeline.working() as opened, opened.engine.connect() as connection:
            found = unreadable_documents(connection, collection.name, UNREADABLE_NAMED_AT_MOST)
        return AssetCheckResult(
            passed=not found.by_reason,
            severity=AssetCheckSeverity.WARN,
            description=_counted(
                {f"unreadable ({reason})": count for reason, count in found.by_reason.items()}
            ),
            metadata={
                "by_reason": MetadataValue.json(found.by_reason),
                "documents": MetadataValue.table(
                    [
                        TableRecord({"document": one, "reason": reason, "kind": kind or ""})
                        for one, reason, kind in found.first
                    ],
                    schema=TableSchema(
                        [TableColumn(name) for name in ("document", "reason", "kind")]
                    ),
                ),
            },
        )

    return all_readable


def _nothing_stuck(collection: Collection) -> AssetChecksDefinition:
    @asset_check(
        asset=submissions_asset(collection.name),
        name="nothing_stuck",
        description="No batch job is held, unresolved, or without an end for more than 24 hours.",
    )
    def nothing_stuck(pipeline: PipelineResource) -> AssetCheckResult:
        with pipeline.working() as opened, opened.engine.connect() as connection:
            stuck = troubled_jobs(connection, collection.name, hours=24)
        return AssetCheckResult(
            passed=not stuck,
            severity=AssetCheckSeverity.WARN,
            description=_counted({"batch jobs need a person's eye": len(stuck)}),
            metadata={"batch_jobs": _named(stuck)},
        )

    return nothing_stuck


def _named(keys: Sequence[str]) -> MetadataValue:
    return MetadataValue.json({"count": len(keys), "first": list(keys[:NAMED_AT_MOST])})
