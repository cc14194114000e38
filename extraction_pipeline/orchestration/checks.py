"""Checks on the asset pages: records against the ledger, and what needs a person.

The nightly job runs them; anybody may at any time.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    DagsterEventType,
    DagsterInstance,
    EventRecordsFilter,
    MetadataValue,
    asset_check,
)

from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.ledger import answers, jobs
from extraction_pipeline.ledger.records import published_keys, troubled_jobs
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.orchestration.failures import one_line_failures
from extraction_pipeline.orchestration.partitions import (
    extraction_key,
    extractions_asset,
    submissions_asset,
)
from extraction_pipeline.orchestration.resource import PipelineResource

NAMED_AT_MOST = 20
CHUNK = 1000


def collection_checks(collection: Collection) -> list[AssetChecksDefinition]:
    """The checks of one collection."""
    return [_records_agree(collection), _nothing_stuck(collection)]


def _records_agree(collection: Collection) -> AssetChecksDefinition:
    @asset_check(
        asset=extractions_asset(collection.name),
        name="records_agree_with_ledger",
        description="Every materialization has its row in the ledger and names the content that "
        "stands there, and every row has its materialization.",
    )
    def records_agree_with_ledger(
        context: AssetCheckExecutionContext, pipeline: PipelineResource
    ) -> AssetCheckResult:
        with one_line_failures():
            return _compare(pipeline.open(), context.instance, collection.name)

    return records_agree_with_ledger


def _compare(pipeline: Pipeline, instance: DagsterInstance, collection: str) -> AssetCheckResult:
    # The records first: what is published meanwhile is not yet due to have one.
    recorded = instance.event_log_storage.get_latest_storage_id_by_partition(
        extractions_asset(collection), DagsterEventType.ASSET_MATERIALIZATION
    )
    said = _recorded_hashes(instance, collection, list(recorded.values()))
    published = _published_hashes(pipeline, collection)
    with pipeline.engine.connect() as connection:
        due = {
            str(extraction_key(document_hash, version)): due
            for document_hash, version, due in published_keys(connection, collection)
        }
    without_row = sorted(set(recorded).difference(due))
    without_record = sorted(key for key, is_due in due.items() if is_due and key not in recorded)
    differing = sorted(
        key
        for key, content in published.items()
        if due.get(key) and said.get(key, content) != content
    )
    return AssetCheckResult(
        passed=not without_row and not without_record and not differing,
        severity=AssetCheckSeverity.ERROR,
        metadata={
            "published": len(due),
            "recorded": len(recorded),
            "records_without_row": _named(without_row),
            "rows_without_record": _named(without_record),
            "records_of_other_content": _named(differing),
        },
    )


def _recorded_hashes(
    instance: DagsterInstance, collection: str, storage_ids: Sequence[int]
) -> dict[str, str | None]:
    """The hash of the extraction that each partition's last record names."""
    said: dict[str, str | None] = {}
    for ids in _chunks(storage_ids):
        for record in instance.get_event_records(
            EventRecordsFilter(
                DagsterEventType.ASSET_MATERIALIZATION,
                extractions_asset(collection),
                storage_ids=ids,
            )
        ):
            materialization = record.asset_materialization
            if materialization is not None and materialization.partition is not None:
                named = materialization.metadata.get("extraction_hash")
                said[materialization.partition] = str(named.value) if named else None
    return said


def _published_hashes(pipeline: Pipeline, collection: str) -> Mapping[str, str]:
    """The hash of the extraction that stands in the ledger, for each partition."""
    found: dict[str, str] = {}
    with pipeline.engine.connect() as connection:
        for job in jobs.jobs_in(connection, [JobState.PUBLISHED]):
            if job.collection != collection:
                continue
            for rows in answers.record_rows(connection, job.id):
                for row in rows:
                    if row.extraction_hash is not None:
                        key = extraction_key(row.document_hash, job.version_name)
                        found[str(key)] = row.extraction_hash
    return found


def _chunks(ids: Sequence[int]) -> Iterator[list[int]]:
    remaining = iter(ids)
    while chunk := list(islice(remaining, CHUNK)):
        yield chunk


def _nothing_stuck(collection: Collection) -> AssetChecksDefinition:
    @asset_check(
        asset=submissions_asset(collection.name),
        name="nothing_stuck",
        description="No batch job is held, unresolved, or without an end for more than 24 hours.",
    )
    def nothing_stuck(pipeline: PipelineResource) -> AssetCheckResult:
        with one_line_failures(), pipeline.open().engine.connect() as connection:
            stuck = troubled_jobs(connection, collection.name, hours=24)
        return AssetCheckResult(
            passed=not stuck,
            severity=AssetCheckSeverity.WARN,
            metadata={"batch_jobs": _named(stuck)},
        )

    return nothing_stuck


def _named(keys: Sequence[str]) -> MetadataValue:
    return MetadataValue.json({"count": len(keys), "first": list(keys[:NAMED_AT_MOST])})
