"""What a run of an asset does: the stage's work, then records for exactly those that passed."""

from collections import Counter
from collections.abc import Sequence

from dagster import (
    AssetExecutionContext,
    DagsterInstance,
    Failure,
    MetadataValue,
)
from dagster._core.storage.tags import BACKFILL_ID_TAG

from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.ledger.documents import documents_by_hash
from extraction_pipeline.ledger.states import DocumentState, DocumentStatus
from extraction_pipeline.ledger.summary import document_lines, jobs_of_documents
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.publishing import replay
from extraction_pipeline.lifecycle.rereading import reread
from extraction_pipeline.lifecycle.submission import submit_documents
from extraction_pipeline.orchestration.partitions import parts_of_key, submissions_asset
from extraction_pipeline.orchestration.recording import (
    record_extractions_again,
    record_submission,
    record_submissions_again,
    recorder,
)
from extraction_pipeline.orchestration.records import document_records

HashesByVersion = dict[str, list[str]]

NAMED_AT_MOST = 5


def verify_documents(
    context: AssetExecutionContext, pipeline: Pipeline, collection: Collection
) -> None:
    """Read the run's documents again from their sources and record those that are as they were."""
    hashes = list(context.partition_keys)
    problems = reread(pipeline, collection, hashes)
    with pipeline.engine.connect() as connection:
        rows = documents_by_hash(connection, collection.name, hashes)
    fine = [row for row in rows if row.document_hash not in problems]
    recorder(context.op_execution_context).write(
        document_records(collection.name, fine, show_paths=collection.show_paths)
    )
    reasons = Counter(problems.values())
    reasons.update(
        f"unreadable: {row.unreadable_reason}"
        for row in fine
        if row.state is DocumentState.UNREADABLE
    )
    unreadable = [row.document_hash for row in fine if row.state is DocumentState.UNREADABLE]
    fail_for_the_rest(len(hashes), reasons, final_for(unreadable))


def submit_partitions(
    context: AssetExecutionContext, pipeline: Pipeline, collection: Collection
) -> None:
    """Submit the run's documents, or those of its whole backfill, and record what a provider has.

    Dagster cuts a scattered backfill into a run for each contiguous range. The first run submits
    for all of them, so that the number of batch jobs does not depend on the number of runs.
    """
    planned = by_version(context.partition_keys)
    target = backfill_target(context, collection.name) or planned
    to = recorder(context.op_execution_context)
    submitted: set[int] = set()
    causes: list[str] = []
    for version_name, hashes in target.items():
        report = submit_documents(
            pipeline,
            collection,
            collection.version(version_name),
            hashes=hashes,
            actor=context.run.run_id,
        )
        context.log.info(
            "Version %s: %d documents in %d new batch jobs, %d of them submitted.",
            version_name,
            report.documents,
            len(report.jobs),
            len(report.submitted),
        )
        causes += report.causes
        # What another run has recorded meanwhile is recorded again below, for this run's own.
        submitted.update(
            job_id for job_id in report.submitted if record_submission(pipeline, job_id, to)
        )
    reasons: Counter[str] = Counter()
    unreadable: list[str] = []
    for version_name, hashes in planned.items():
        with pipeline.engine.connect() as connection:
            found = jobs_of_documents(connection, collection.name, version_name, hashes)
        before = [one for job, some in found.items() if job not in submitted for one in some]
        record_submissions_again(pipeline, collection.name, version_name, before, to)
        missing = set(hashes).difference(*found.values())
        reasons.update(why_not(pipeline, collection, version_name, sorted(missing), unreadable))
    fail_for_the_rest(
        sum(len(hashes) for hashes in planned.values()),
        reasons,
        [*final_for(unreadable), *causes],
    )
    for cause in causes:  # of other documents of the backfill
        context.log.warning(cause)


def replay_partitions(
    context: AssetExecutionContext, pipeline: Pipeline, collection: Collection
) -> None:
    """Normalize the run's documents again from their stored raw responses, without inference."""
    to = recorder(context.op_execution_context)
    reasons: Counter[str] = Counter()
    unreadable: list[str] = []
    planned = by_version(context.partition_keys)
    for version_name, hashes in planned.items():
        result = replay(pipeline, collection, version_name, hashes, context.run.run_id)
        context.log.info(
            "Version %s: %d published from stored responses, %d of them changed.",
            version_name,
            len(result.published),
            result.changed,
        )
        record_extractions_again(pipeline, collection.name, version_name, result.published, to)
        rest = sorted(set(hashes).difference(result.published))
        reasons.update(why_not(pipeline, collection, version_name, rest, unreadable))
    waiting = reasons.pop(DocumentStatus.WAITING.value, 0)
    if waiting:
        # Their answers are on the way and will publish them: nothing failed.
        context.log.warning(
            "%d documents wait for their answer; there is nothing to replay.", waiting
        )
    fail_for_the_rest(
        sum(len(hashes) for hashes in planned.values()), reasons, final_for(unreadable)
    )


def by_version(keys: Sequence[str]) -> HashesByVersion:
    """Partition keys of document and version, as hashes by version."""
    found: HashesByVersion = {}
    for key in keys:
        document_hash, version = parts_of_key(key)
        found.setdefault(version, []).append(document_hash)
    return found


def backfill_target(context: AssetExecutionContext, collection: str) -> HashesByVersion | None:
    """All partitions that this run's backfill asks for, or `None` for a run of no backfill."""
    backfill_id = context.run.tags.get(BACKFILL_ID_TAG)
    if backfill_id is None:
        return None
    return _target_of(context.instance, backfill_id, context, collection)


def _target_of(
    instance: DagsterInstance, backfill_id: str, context: AssetExecutionContext, collection: str
) -> HashesByVersion | None:
    backfill = instance.get_backfill(backfill_id)
    if backfill is None or not backfill.is_asset_backfill:
        return None
    graph = context.repository_def.asset_graph
    key = submissions_asset(collection)
    target = backfill.get_asset_backfill_data(graph).target_subset
    if key not in target.partitions_subsets_by_asset_key:
        return None
    subset = target.get_partitions_subset(key)
    return by_version(list(subset.get_partition_keys()))


def why_not(
    pipeline: Pipeline,
    collection: Collection,
    version_name: str,
    hashes: Sequence[str],
    unreadable: list[str],
) -> Counter[str]:
    """Why these documents are not as far as asked, counted by reason; those that cannot be read at
    all are added to `unreadable`."""
    if not hashes:
        return Counter()
    version = collection.version(version_name)
    with pipeline.engine.connect() as connection:
        lines = document_lines(
            connection, collection.name, version_name, version.max_attempts, hashes=hashes
        )
    unreadable += [line.document_hash for line in lines if line.status is DocumentStatus.UNREADABLE]
    reasons = Counter(
        f"{line.status.value}: {line.reason}" if line.reason else line.status.value
        for line in lines
    )
    unknown = len(hashes) - len(lines)
    if unknown:
        reasons["not registered"] = unknown
    return reasons


def final_for(unreadable: Sequence[str]) -> list[str]:
    """A line on documents that cannot be read: which they are, and that no run changes it."""
    if not unreadable:
        return []
    named = sorted(set(unreadable))
    more = len(named) - NAMED_AT_MOST
    listed = ", ".join(one[:12] for one in named[:NAMED_AT_MOST])
    return [
        f"Unreadable is final until another file takes the document's place: {listed}"
        f"{f' and {more} more' if more > 0 else ''}."
    ]


def fail_for_the_rest(asked: int, reasons: Counter[str], causes: Sequence[str] = ()) -> None:
    """End the run as failed if some of its documents did not pass, saying how many and why."""
    missing = sum(reasons.values())
    if missing:
        most_first = sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
        listed = ", ".join(f"{count} {reason}" for reason, count in most_first)
        raise Failure(
            description=" ".join(
                (f"{missing} of {asked} documents did not pass: {listed}.", *causes)
            ),
            metadata={
                "asked": asked,
                "passed": asked - missing,
                "reasons": MetadataValue.json(dict(reasons)),
            },
            allow_retries=False,
        )
