"""Jobs over scattered documents: unpartitioned runs that record exactly what they served."""

from collections.abc import Iterable, Sequence
from typing import Any

from dagster import (
    Failure,
    JobDefinition,
    MetadataValue,
    OpExecutionContext,
    job,
    op,
    static_partitioned_config,
)
from dagster._core.definitions.metadata import RawMetadataValue
from dagster._core.storage.tags import MAX_RETRIES_TAG
from pydantic import Field

from extraction_pipeline.documents.parts import Part, part_keys, part_of_key
from extraction_pipeline.errors import (
    ConfigurationError,
    DatabaseUnavailable,
    ExtractionPipelineError,
)
from extraction_pipeline.ledger import jobs as ledger_jobs
from extraction_pipeline.ledger.documents import unknown_hashes
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.cleaning import clean_up
from extraction_pipeline.lifecycle.collecting import collect
from extraction_pipeline.lifecycle.known import require_known, require_named
from extraction_pipeline.lifecycle.publishing import publish_job
from extraction_pipeline.lifecycle.registration import scan
from extraction_pipeline.lifecycle.resolution import resolve
from extraction_pipeline.lifecycle.submission import submit_documents
from extraction_pipeline.orchestration.batch_job import JobKeyConfig
from extraction_pipeline.orchestration.decisions import DECISIONS
from extraction_pipeline.orchestration.failures import EXIT_CODE, NEEDS_PERSON
from extraction_pipeline.orchestration.liveness import OURS
from extraction_pipeline.orchestration.recording import (
    reconcile,
    record_documents,
    record_ends,
    record_results,
    record_submission,
    record_what_came,
    recorder,
)
from extraction_pipeline.orchestration.resource import PipelineResource
from extraction_pipeline.orchestration.typed import TypedConfig

SOURCES = "sources"
"""Pool of the runs that read sources: an instance may limit how many do at once."""
JOB_KEY_TAG = "extraction/job_key"
ATTEMPT_TAG = "extraction/attempt"
WAITING = "waiting"
"""Metadata of a failed submission that the sensor will carry on: nobody has to act."""
NOTES = "notes"
"""Metadata of a scan: lines for the person who waits for it."""
CAUSE = "cause"
"""Metadata of a run that ended well and could not bring its batch job to the provider yet."""


TO_RESOLVE = frozenset(
    {
        JobState.PREPARING,
        JobState.PREPARED,
        JobState.SUBMITTING,
        JobState.UNRESOLVED,
        JobState.HELD,
    }
)
"""States of jobs that are not with the provider for certain."""


class ScanConfig(TypedConfig):
    """Which collections to scan, and which part of each."""

    collections: list[str] = Field(
        default_factory=list, description="Names of collections; empty for all."
    )
    part: int = Field(default=1, description="Number of the part to read, of so many `parts`.")
    parts: int = Field(
        default=1, description="How many parts a source is read in, each by a run of its own."
    )


class SubmitConfig(TypedConfig):
    """What to submit. Documents that were submitted before are passed over."""

    collection: str = Field(description="Name of the collection.")
    extraction_version: str | None = Field(
        default=None, description="Version to extract at; the active one if left out."
    )
    document_hashes: list[str] | None = Field(
        default=None,
        description="Just these documents, by their partition keys; left out, all that lack one.",
    )


class BatchJobConfig(JobKeyConfig):
    """One batch job, by its key, and which attempt at it this is."""

    attempt: int = Field(default=1, description="Number of this attempt.")


class ReconcileConfig(TypedConfig):
    """Which records to write again."""

    collections: list[str] = Field(
        default_factory=list, description="Names of collections; empty for all."
    )
    also_differing: bool = Field(
        default=False,
        description="Also write over records that name another content than the ledger. Look first "
        "where they came from: anybody who reaches the webserver can report one.",
    )


@op(
    pool=SOURCES,
    description="Find new, changed and vanished documents, and record the readable ones.",
)
def scan_documents(
    context: OpExecutionContext, config: ScanConfig, pipeline: PipelineResource
) -> None:
    """Scan collections and write the first stage's records."""
    found: dict[str, int] = {}
    notes: list[str] = []
    faults: list[str] = []
    codes: list[int] = []
    with pipeline.working() as opened:
        if not 1 <= config.part <= config.parts:
            raise ConfigurationError(
                f"There is no part {config.part} of {config.parts}.",
                remedy="Parts are counted from 1.",
            )
        chosen = config.collections or sorted(opened.collections)
        for name in chosen:
            collection = opened.collection(name)
            try:
                report = scan(opened, collection, Part(config.part, config.parts))
                recorded = record_documents(opened, collection, recorder(context))
            except DatabaseUnavailable:
                raise
            except ExtractionPipelineError as error:
                if len(chosen) == 1:
                    raise
                faults.append(f"{name}: {error}")
                codes.append(error.exit_code)
                continue
            notes += report.notes()
            found |= {
                f"{name}: new": len(report.new),
                f"{name}: revised": len(report.revised),
                f"{name}: vanished": report.vanished,
                f"{name}: unread": report.problems,
                f"{name}: skipped": report.skipped,
                f"{name}: unmatched": report.unmatched,
                f"{name}: restored": report.restored,
                f"{name}: recorded": recorded,
            }
    if faults:
        raise Failure(
            description=f"{len(faults)} of {len(chosen)} collections could not be scanned, the "
            f"others were: {' '.join(faults)}",
            metadata={
                "found": MetadataValue.json(found),
                NOTES: MetadataValue.json(notes),
                EXIT_CODE: codes[0],
            },
            allow_retries=False,
        )
    context.add_output_metadata({**found, NOTES: MetadataValue.json(notes)})


@op(description="Submit what lacks an extraction, in as few batch jobs as the limits allow.")
def submit_missing_documents(
    context: OpExecutionContext, config: SubmitConfig, pipeline: PipelineResource
) -> None:
    """Submit documents by hash or all that need it, and record what the provider has."""
    with pipeline.working() as opened:
        collection = opened.collection(config.collection)
        version = collection.version(config.extraction_version or collection.active_version)
        if config.document_hashes is not None:
            require_named(config.document_hashes, "submitted")
            with opened.engine.connect() as connection:
                unknown = unknown_hashes(connection, collection.name, config.document_hashes)
            require_known(collection.name, unknown, "submitted")
        report = submit_documents(
            opened,
            collection,
            version,
            hashes=config.document_hashes,
            actor=context.run_id,
            before_due=True,
        )
        for job_id in report.submitted:
            record_submission(opened, job_id, recorder(context))
        for job_id in report.waiting:
            record_ends(opened, job_id, recorder(context))
    for cause in report.causes:
        context.log.warning(cause)
    context.add_output_metadata(
        {
            "documents": report.documents,
            "batch_jobs": len(report.jobs),
            "submitted": len(report.submitted),
            "waiting": len(report.waiting),
            "refused": report.refused,
            "causes": MetadataValue.json(report.causes),
        }
    )
    if report.refused:
        raise Failure(description=" ".join(report.causes), allow_retries=False)
    if report.waiting:
        tried = len(report.waiting) + len(report.submitted)
        raise Failure(
            description=f"{len(report.waiting)} of {tried} batch jobs could not be submitted yet; "
            f"the status sensor carries them on. {' '.join(report.causes)}",
            metadata={
                WAITING: len(report.waiting),
                **({NEEDS_PERSON: True} if report.stopped else {}),
            },
            allow_retries=False,
        )


@op(description="Send, or find at the provider, a batch job that is not with it for certain.")
def resolve_batch_job(
    context: OpExecutionContext, config: BatchJobConfig, pipeline: PipelineResource
) -> None:
    """Carry one job on, and record its submission once the provider has it."""
    with pipeline.working() as opened:
        job_row = config.job(opened)
        sent = resolve(opened, job_row.id, context.run_id)
        recorded = record_submission(opened, job_row.id, recorder(context))
        record_ends(opened, job_row.id, recorder(context))
    metadata: dict[str, RawMetadataValue] = {"state": sent.state.value, "recorded": recorded}
    if sent.cause is None and job_row.state not in TO_RESOLVE:
        told = f"Job {job_row.job_key} is {sent.state.value}: there was nothing to do."
        metadata["note"] = told
    if sent.cause:
        context.log.warning(sent.cause)
        metadata[CAUSE] = sent.cause
        if sent.stop:
            metadata[NEEDS_PERSON] = True
    context.add_output_metadata(metadata)


@op(description="Fetch the results of an ended batch job once, validate, publish and record them.")
def collect_batch_results(
    context: OpExecutionContext, config: BatchJobConfig, pipeline: PipelineResource
) -> None:
    """Collect, publish and record one job; whatever was done before is not done again."""
    with pipeline.working() as opened:
        job_row = config.job(opened)
        to = recorder(context)
        try:
            job_row, landing = collect(opened, job_row.id, context.run_id)
            publication = publish_job(opened, job_row.id, context.run_id)
        except ledger_jobs.StateMoved as moved:
            context.log.warning(str(moved))
            return
        except DatabaseUnavailable:
            raise
        except ExtractionPipelineError:
            record_submission(opened, job_row.id, to)
            record_what_came(opened, job_row.id, to)
            raise
        recorded = record_submission(opened, job_row.id, to)
        recorded += record_results(opened, job_row.id, to)
        record_ends(opened, job_row.id, to)
        for fault in clean_up(opened, context.run_id):
            context.log.warning(fault)
    context.add_output_metadata(
        {
            "landed": landing.landed,
            "missing": landing.missing,
            "published": len(publication.published),
            "failed": publication.failed,
            "recorded": recorded,
        }
    )


@op(description="Write again the records that the ledger has rows for and Dagster lacks.")
def reconcile_with_ledger(
    context: OpExecutionContext, config: ReconcileConfig, pipeline: PipelineResource
) -> None:
    """Write missing records of collections, and on demand those that differ."""
    written: dict[str, int] = {}
    with pipeline.working() as opened:
        for name in config.collections or sorted(opened.collections):
            written[name] = reconcile(
                opened,
                opened.collection(name),
                recorder(context),
                differing=config.also_differing,
            )
    context.add_output_metadata(written)


@job(tags=OURS, description="Look for new, changed and vanished documents in the sources.")
def scan_collections() -> None:
    """Scan job."""
    scan_documents()


def scan_in_parts(collections: Iterable[str], parts: int) -> JobDefinition:
    """The scan with a partition for each part of each collection, so that a backfill of it reads a
    source in several runs at once, on as many workers."""

    @static_partitioned_config([key for name in collections for key in part_keys(name, parts)])
    def config(key: str) -> dict[str, Any]:
        name, part = part_of_key(key)
        chosen = {"collections": [name], "part": part.number, "parts": part.parts}
        return {"ops": {scan_documents.name: {"config": chosen}}}

    @job(
        name="scan_in_parts",
        tags={**OURS, MAX_RETRIES_TAG: "0"},  # see `lost_parts`
        config=config,
        description="Look for new, changed and vanished documents, with a run for each part of a "
        "source. For the first scan of a large one: start a backfill of it.",
    )
    def of_parts() -> None:
        scan_documents()

    return of_parts


@job(
    tags=OURS,
    description="Submit a collection's documents that lack an extraction, all or a list of hashes, "
    "in one run. For a scattered selection this is cheaper than a backfill.",
)
def submit_missing() -> None:
    """Submit job."""
    submit_missing_documents()


@job(
    tags=OURS,
    description="Send or find a batch job whose submission is not certain. Safe to repeat.",
)
def resolve_submission() -> None:
    """Resolve job."""
    resolve_batch_job()


@job(
    tags=OURS, description="Fetch, validate, publish and record the results of one ended batch job."
)
def collect_batch() -> None:
    """Collect job."""
    collect_batch_results()


@job(
    tags=OURS,
    description="Write again the records that a run did not come to, or that were deleted.",
)
def reconcile_records() -> None:
    """Reconcile job."""
    reconcile_with_ledger()


ALL_JOBS: Sequence[JobDefinition] = (
    scan_collections,
    submit_missing,
    resolve_submission,
    collect_batch,
    reconcile_records,
    *DECISIONS,
)
