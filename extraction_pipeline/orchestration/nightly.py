"""The nightly refresh: scan every collection, submit what lacks an extraction, record the night.

A night that runs twice, late, or for the past finds its documents submitted and submits nothing.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from datetime import timedelta
from decimal import Decimal

from dagster import (
    AssetExecutionContext,
    AssetMaterialization,
    AssetsDefinition,
    AssetSelection,
    AssetSpec,
    DailyPartitionsDefinition,
    DefaultScheduleStatus,
    Failure,
    MaterializeResult,
    MetadataValue,
    RunRequest,
    ScheduleDefinition,
    ScheduleEvaluationContext,
    SkipReason,
    TableColumn,
    TableRecord,
    TableSchema,
    define_asset_job,
    multi_asset,
    schedule,
)
from dagster._core.definitions.metadata import RawMetadataValue

from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.errors import DatabaseUnavailable, ExtractionPipelineError
from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.lost_database import lost_database
from extraction_pipeline.ledger.nights import since_last_night
from extraction_pipeline.ledger.states import AuditEvent
from extraction_pipeline.ledger.summary import summarize
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.registration import scan
from extraction_pipeline.lifecycle.submission import submit_documents
from extraction_pipeline.orchestration.liveness import OURS
from extraction_pipeline.orchestration.partitions import NIGHTLY
from extraction_pipeline.orchestration.recording import (
    Recorder,
    reconcile,
    record_documents,
    record_submission,
    recorder,
)
from extraction_pipeline.orchestration.resource import PipelineResource
from extraction_pipeline.settings import Settings


@dataclass(frozen=True)
class NightCounts:
    """What one night did in one collection, and what stands open after it."""

    new: int = 0
    revised: int = 0
    vanished: int = 0
    unread: int = 0
    skipped: int = 0
    restored: int = 0
    submitted: int = 0
    over_ceiling: int = 0
    published_since: int = 0
    input_tokens_since: int = 0
    output_tokens_since: int = 0
    cost_since: Decimal = Decimal(0)
    unpriced_since: int = 0
    published: int = 0
    unreadable: int = 0
    failed: int = 0
    waiting: int = 0
    rewritten: int = 0

    def __add__(self, other: "NightCounts") -> "NightCounts":
        """Sums of every count."""
        return NightCounts(
            **{
                one.name: getattr(self, one.name) + getattr(other, one.name)
                for one in fields(NightCounts)
            }
        )

    def shown(self) -> dict[str, int | float]:
        """The counts in the types that Dagster plots."""
        return {**asdict(self), "cost_since": float(self.cost_since)}


def refresh_collection(
    pipeline: Pipeline, collection: Collection, actor: str, to: Recorder
) -> tuple[NightCounts, list[str]]:
    """Scan, record, submit; returns the counts, and one line for each batch job that must wait."""
    scanned = scan(pipeline, collection)
    record_documents(pipeline, collection, to)
    version = collection.active
    report = submit_documents(pipeline, collection, version, actor=actor)
    for job_id in report.submitted:
        record_submission(pipeline, job_id, to)
    rewritten = reconcile(pipeline, collection, to)
    with pipeline.engine.begin() as connection:
        since = since_last_night(
            connection, collection.name, version.name, pipeline.prices.currency
        )
        summary = summarize(connection, collection.name, version.name, version.max_attempts)
        counts = NightCounts(
            new=len(scanned.new),
            revised=len(scanned.revised),
            vanished=scanned.vanished,
            unread=scanned.problems,
            skipped=scanned.skipped,
            restored=scanned.restored,
            submitted=report.documents,
            over_ceiling=report.refused,
            published_since=since.published,
            input_tokens_since=since.input_tokens,
            output_tokens_since=since.output_tokens,
            cost_since=since.cost,
            unpriced_since=since.unpriced,
            published=summary.published,
            unreadable=summary.unreadable,
            failed=summary.failed + summary.invalid,
            waiting=summary.waiting,
            rewritten=rewritten,
        )
        note(
            connection,
            AuditEvent.NIGHT_DONE,
            actor,
            collection=collection.name,
            details={**asdict(counts), "cost_since": str(counts.cost_since)},
        )
    return counts, report.causes


def refresh_all(context: AssetExecutionContext, pipeline: Pipeline, to: Recorder) -> None:
    """Refresh every collection; one that fails does not keep the others from their night."""
    night: dict[str, NightCounts] = {}
    faults: dict[str, str] = {}
    unforeseen: Exception | None = None
    for name in sorted(pipeline.collections):
        try:
            counts, causes = refresh_collection(
                pipeline, pipeline.collections[name], context.run.run_id, to
            )
        except DatabaseUnavailable:
            raise  # of all, and worth another try
        except ExtractionPipelineError as error:
            faults[name] = str(error)
            continue
        except Exception as error:
            if lost_database(error) is not None:
                raise  # as above, of Dagster's own statements
            # Its words are for the run's end alone: nobody knows what is in them.
            unforeseen = unforeseen or error
            faults[name] = f"It ended in {type(error).__name__}."
            continue
        night[name] = counts
        for cause in causes:
            context.log.warning(cause)
    total = sum(night.values(), start=NightCounts())
    names = [one.name for one in fields(NightCounts)]
    table = MetadataValue.table(
        [TableRecord({"collection": name, **counts.shown()}) for name, counts in night.items()],
        schema=TableSchema([TableColumn(one) for one in ("collection", *names)]),
    )
    metadata: dict[str, RawMetadataValue] = {
        **total.shown(),
        "currency": pipeline.prices.currency or "none",
        "collections": table,
    }
    if faults:
        metadata["without_night"] = MetadataValue.json(faults)
    crash_point(CrashPoint.NIGHT_NOT_RECORDED)
    to.write(
        [
            AssetMaterialization(
                asset_key=NIGHTLY, partition=context.partition_key, metadata=metadata
            )
        ]
    )
    if unforeseen is not None:
        raise unforeseen
    if faults:
        named = " ".join(f"{name}: {fault}" for name, fault in faults.items())
        raise Failure(
            description=f"{len(faults)} of {len(pipeline.collections)} collections had no night, "
            f"the others had: {named}",
            metadata={"collections": table},
            allow_retries=False,
        )


def nightly_refresh(settings: Settings) -> tuple[AssetsDefinition, ScheduleDefinition]:
    """The asset of the nights, and the schedule that makes one a day."""
    spec = AssetSpec(
        NIGHTLY,
        description=(
            "One record a night: what was new, revised or vanished in the sources, what was "
            "submitted, what was published since the night before, and what waits. Running a "
            "night again, late, or for the past submits nothing twice."
        ),
        group_name="nightly",
        owners=["team:clinical-data"],
        kinds={"schedule"},
        tags={"stage": "nightly"},
        partitions_def=DailyPartitionsDefinition(
            start_date=settings.nightly_start.isoformat(), timezone=settings.timezone
        ),
        skippable=True,
    )

    # In a run of one process the step of the highest priority comes first: the checks look at what
    # the night has done. They run also where it failed, because they do not depend on it.
    @multi_asset(name=NIGHTLY, specs=[spec], op_tags={"dagster/priority": "1"})
    def nightly(
        context: AssetExecutionContext, pipeline: PipelineResource
    ) -> Iterator[MaterializeResult[None]]:
        with pipeline.working() as opened:
            refresh_all(context, opened, recorder(context.op_execution_context))
        yield from ()  # as in `assets`: a returned None would be a second record

    nightly_job = define_asset_job(
        "nightly",
        tags=OURS,
        # No run of an asset yields an output that its checks could follow, so the night runs them.
        selection=AssetSelection.assets(NIGHTLY) | AssetSelection.all_asset_checks(),
        description="The nightly refresh of all collections, and all checks.",
    )

    @schedule(
        name="nightly_schedule",
        job=nightly_job,
        cron_schedule=settings.nightly_cron,
        execution_timezone=settings.timezone,
        default_status=DefaultScheduleStatus.RUNNING,
        description="Every night, for the day before.",
    )
    def nightly_schedule(context: ScheduleEvaluationContext) -> RunRequest | SkipReason:
        day = context.scheduled_execution_time.date() - timedelta(days=1)
        if day < settings.nightly_start:
            return SkipReason(f"The first night is that of {settings.nightly_start}.")
        return RunRequest(partition_key=day.isoformat())

    return nightly, nightly_schedule
