"""Checks on the asset pages: records against the ledger, and what needs a person.

The nightly job runs them, and so do commands that wait for an end; anybody may at any time.
"""

from collections.abc import Callable, Iterator, Sequence

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    DagsterInstance,
    MetadataValue,
    TableColumn,
    TableRecord,
    TableSchema,
    multi_asset_check,
)

from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.collections.waiting_budget import shown
from extraction_pipeline.ledger.records import unreadable_documents
from extraction_pipeline.ledger.stages import Stage
from extraction_pipeline.ledger.states import StuckReason
from extraction_pipeline.ledger.stuck import StuckJob
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.watching import jobs_to_look_at
from extraction_pipeline.orchestration.comparing import (
    NAMED_AT_MOST,
    Comparison,
    Found,
    compare,
)
from extraction_pipeline.orchestration.partitions import submissions_asset
from extraction_pipeline.orchestration.recorded import asset_of
from extraction_pipeline.orchestration.resource import PipelineResource
from extraction_pipeline.reports.advice import advise_stuck

UNREADABLE_NAMED_AT_MOST = 200

Judge = Callable[[Pipeline, DagsterInstance, str], AssetCheckResult]
"""One check of a collection, by the collection's name."""


def collection_checks(collection: Collection) -> AssetChecksDefinition:
    """The checks of one collection, in one step of a run: a step costs more than a check."""
    judged_by: list[tuple[AssetCheckSpec, Judge]] = [
        *((_agreement_spec(collection, stage), _agreement_of(stage)) for stage in Stage),
        (_stuck_spec(collection), _nothing_stuck),
        (_readable_spec(collection), _all_readable),
    ]
    specs = [spec for spec, _ in judged_by]

    @multi_asset_check(name=f"{collection.name}__checks", specs=specs, can_subset=True)
    def checks(
        context: AssetCheckExecutionContext, pipeline: PipelineResource
    ) -> Iterator[AssetCheckResult]:
        with pipeline.working() as opened:
            for spec, judge in judged_by:
                if spec.key in context.selected_asset_check_keys:
                    judged = judge(opened, context.instance, collection.name)
                    yield judged._replace(asset_key=spec.asset_key, check_name=spec.name)

    return checks


def _agreement_spec(collection: Collection, stage: Stage) -> AssetCheckSpec:
    return AssetCheckSpec(
        "records_agree_with_ledger",
        asset=asset_of(collection.name, stage),
        description="Every materialization has its row in the ledger and names the content that "
        "stands there, and every row has its materialization. What lacks is written each night or "
        "by the job reconcile_records, which with also_differing writes anew what names another "
        "content. A forged record goes only with all those of its asset, and only by a person: "
        "wipe the asset's materializations (Dagster wipes no single partition of this storage), "
        "then run reconcile_records, which writes every record that the ledger backs.",
    )


def _agreement_of(stage: Stage) -> Judge:
    def judge(opened: Pipeline, instance: DagsterInstance, collection: str) -> AssetCheckResult:
        found = compare(opened.engine, instance, collection, stage)
        return AssetCheckResult(
            passed=found.agrees,
            severity=AssetCheckSeverity.ERROR,
            description=_difference(found),
            metadata={
                "in_ledger": found.in_ledger,
                "records_without_row": _listed(found.records_without_row),
                "records_without_partition": _listed(found.records_without_partition),
                "rows_without_record": _listed(found.rows_without_record),
                "records_of_other_content": _listed(found.records_of_other_content),
            },
        )

    return judge


def _difference(found: Comparison) -> str | None:
    """How many records and rows do not agree, in words; nothing if all do."""
    return _counted(
        (found.records_without_row.count, "record", "without a row in the ledger"),
        (found.records_without_partition.count, "record", "of no document"),
        (found.rows_without_record.count, "row", "of the ledger without a record"),
        (found.records_of_other_content.count, "record", "of another content"),
    )


def _counted(*counts: tuple[int, str, str]) -> str | None:
    """How many of what, and what is said of them; what there is none of is left out."""
    return (
        ", ".join(
            f"{count:,} {noun}{'' if count == 1 else 's'} {rest}"
            for count, noun, rest in counts
            if count
        )
        or None
    )


def _listed(found: Found) -> MetadataValue:
    return MetadataValue.json({"count": found.count, "first": found.first})


def _readable_spec(collection: Collection) -> AssetCheckSpec:
    return AssetCheckSpec(
        "all_readable",
        asset=asset_of(collection.name, Stage.DOCUMENTS),
        description="Documents that could not be read to text, and why, until another file takes "
        "their place. They have no materialization at any stage but those of an earlier content.",
    )


def _all_readable(opened: Pipeline, instance: DagsterInstance, collection: str) -> AssetCheckResult:
    with opened.engine.connect() as connection:
        found = unreadable_documents(connection, collection, UNREADABLE_NAMED_AT_MOST)
    return AssetCheckResult(
        passed=not found.by_reason,
        severity=AssetCheckSeverity.WARN,
        description=_counted(
            *(
                (count, "document", f"unreadable ({reason})")
                for reason, count in found.by_reason.items()
            )
        ),
        metadata={
            "by_reason": MetadataValue.json(found.by_reason),
            "documents": MetadataValue.table(
                [
                    TableRecord({"document": one, "reason": reason, "kind": kind or ""})
                    for one, reason, kind in found.first
                ],
                schema=TableSchema([TableColumn(name) for name in ("document", "reason", "kind")]),
            ),
        },
    )


def _stuck_spec(collection: Collection) -> AssetCheckSpec:
    return AssetCheckSpec(
        "nothing_stuck",
        asset=submissions_asset(collection.name),
        description="No batch job is held, unresolved, open for longer than "
        f"{shown(collection.waiting_budget)} (waiting_budget), or stands still; none exists twice "
        "at its provider; none has answers that its provider is about to delete, which is an error "
        "and not a warning.",
    )


def _nothing_stuck(
    opened: Pipeline, instance: DagsterInstance, collection: str
) -> AssetCheckResult:
    with opened.engine.connect() as connection:
        stuck = jobs_to_look_at(connection, opened, opened.collection(collection))
    expiring = [one for one in stuck if StuckReason.RESULTS_EXPIRE in one.reasons]
    return AssetCheckResult(
        passed=not stuck,
        severity=AssetCheckSeverity.ERROR if expiring else AssetCheckSeverity.WARN,
        description=_counted(
            (
                len(stuck),
                "batch job",
                "needs a person's eye" if len(stuck) == 1 else "need a person's eye",
            ),
            (len(expiring), "batch job", "with answers that expire at the provider"),
        ),
        metadata={
            "batch_jobs": MetadataValue.json(
                {"count": len(stuck), "first": [one.job_key for one in stuck[:NAMED_AT_MOST]]}
            ),
            "why": _why_stuck(stuck[:NAMED_AT_MOST]),
        },
    )


def _why_stuck(stuck: Sequence[StuckJob]) -> MetadataValue:
    names = ("job key", "batch", "state", "reason", "since", "not found since", "what to do")
    return MetadataValue.table(
        [
            TableRecord(
                {
                    "job key": one.job_key,
                    "batch": ", ".join(one.second_batches)
                    if reason is StuckReason.EXISTS_TWICE
                    else one.job_id or "",
                    "state": one.state.value,
                    "reason": reason.value,
                    "since": f"{one.created_at:%Y-%m-%d %H:%M %Z}",
                    "not found since": f"{one.not_found_since:%Y-%m-%d %H:%M %Z}"
                    if one.not_found_since
                    else "",
                    "what to do": advise_stuck(reason),
                }
            )
            for one in stuck
            for reason in one.reasons
        ],
        schema=TableSchema([TableColumn(name) for name in names]),
    )
