"""From the ledger to the event log: each stage's materializations, then the mark that they exist.

The mark comes last. A process that dies in between leaves the mark unset, and the records are
written again: a repeated record says the same, a missing one would be a lie.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dagster import DagsterInstance, OpExecutionContext

from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.dagster_storage.plain_record import PlainRecord
from extraction_pipeline.ledger import answers, documents, jobs
from extraction_pipeline.ledger.database import RECORD_LOCK, lock_until_commit
from extraction_pipeline.ledger.records import jobs_of_extractions
from extraction_pipeline.ledger.stages import Passed, Stage
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.ledger.summary import jobs_of_documents
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.orchestration.comparing import lacking
from extraction_pipeline.orchestration.event_log import Record, write_records
from extraction_pipeline.orchestration.partitions import add_documents
from extraction_pipeline.orchestration.recorded import CONTENT_NAMED, recorded_contents
from extraction_pipeline.orchestration.records import (
    document_records,
    end_records,
    extraction_records,
    response_records,
    submission_records,
)

DOCUMENTS_AT_ONCE = 5000

Describe = Callable[[jobs.JobRow, Iterable[answers.RecordRow]], Iterator[PlainRecord]]

DESCRIBE: Mapping[Stage, Describe] = {
    Stage.SUBMISSIONS: submission_records,
    Stage.RESPONSES: response_records,
    Stage.EXTRACTIONS: extraction_records,
}
"""How the records of a stage are written from the rows of one job."""


@dataclass(frozen=True)
class Recorder:
    """Where records go: the event log of one step of one run."""

    instance: DagsterInstance
    run_id: str
    job_name: str
    step_key: str

    def write(self, records: Iterable[Record]) -> int:
        """Write records in batches; returns how many."""
        return write_records(
            self.instance,
            run_id=self.run_id,
            job_name=self.job_name,
            step_key=self.step_key,
            records=records,
        )


def recorder(context: OpExecutionContext) -> Recorder:
    """The recorder of the step that is running."""
    return Recorder(
        instance=context.instance,
        run_id=context.run_id,
        job_name=context.job_name,
        step_key=str(context.op_handle),
    )


def record_documents(pipeline: Pipeline, collection: Collection, to: Recorder) -> int:
    """Add partitions and write the first stage's records for all documents that lack them.

    Several runs may read the parts of a source at once; one at a time writes for all.
    """
    written = 0
    while True:
        with pipeline.engine.begin() as holder:
            lock_until_commit(holder, RECORD_LOCK, collection.name)
            rows = documents.unrecorded_documents(holder, collection.name, DOCUMENTS_AT_ONCE)
            if not rows:
                return written
            written += _record_documents(pipeline, collection, rows, to)


def _record_documents(
    pipeline: Pipeline,
    collection: Collection,
    rows: Sequence[documents.RecordableDocument],
    to: Recorder,
) -> int:
    hashes = [row.document_hash for row in rows]
    add_documents(to.instance, collection.name, hashes)
    crash_point(CrashPoint.PARTITIONS_ADDED)
    written = to.write(document_records(collection.name, rows, show_paths=collection.show_paths))
    crash_point(CrashPoint.DOCUMENTS_NOT_MARKED)
    with pipeline.engine.begin() as connection:
        documents.mark_documents_recorded(connection, collection.name, hashes)
    return written


def record_submission(pipeline: Pipeline, job_id: int, to: Recorder) -> int:
    """Write that the provider has the requests of this job, if it has and it is not recorded.

    Several runs may come to do so at once; one does.
    """
    with pipeline.engine.begin() as holder:
        job = jobs.job_by_id(holder, job_id)
        if job.job_id is None or job.submission_recorded_at is not None:
            return 0
        lock_until_commit(holder, RECORD_LOCK, job.job_key)
        if jobs.job_by_id(holder, job_id).submission_recorded_at is not None:
            return 0
        written = _record_job(pipeline, job, submission_records, to)
        crash_point(CrashPoint.SUBMISSION_NOT_MARKED)
        jobs.mark_recorded(holder, job.id, "submission")
    return written


def record_results(pipeline: Pipeline, job_id: int, to: Recorder) -> int:
    """Write the raw responses and extractions of a published job."""
    with pipeline.engine.connect() as connection:
        job = jobs.job_by_id(connection, job_id)
    if job.published_at is None or job.results_recorded_at is not None:
        return 0
    written = 0
    with pipeline.engine.connect() as connection:
        for chunk in answers.record_rows(connection, job.id):
            to.write(end_records(job, chunk))
            written += to.write(response_records(job, chunk))
            crash_point(CrashPoint.RESPONSES_RECORDED)
            written += to.write(extraction_records(job, chunk))
    crash_point(CrashPoint.RESULTS_NOT_MARKED)
    with pipeline.engine.begin() as connection:
        jobs.mark_recorded(connection, job.id, "results")
    crash_point(CrashPoint.RESULTS_MARKED)
    return written


def record_ends(pipeline: Pipeline, job_id: int, to: Recorder) -> int:
    """Say of a job that brings no results why its requests ended; nothing for any other job."""
    with pipeline.engine.connect() as connection:
        job = jobs.job_by_id(connection, job_id)
    if job.state not in (JobState.REJECTED, JobState.FAILED):
        return 0
    return _record_job(pipeline, job, end_records, to)


def record_what_came(pipeline: Pipeline, job_id: int, to: Recorder) -> int:
    """Write what lacks of the records of a job's answers and extractions, where its publishing
    broke off: what has passed is said, and the rest stays open."""
    with pipeline.engine.connect() as connection:
        job = jobs.job_by_id(connection, job_id)
        return sum(
            _write_lacking(job, stage, chunk, to)
            for chunk in answers.record_rows(connection, job.id)
            for stage in (Stage.RESPONSES, Stage.EXTRACTIONS)
        )


def _write_lacking(
    job: jobs.JobRow, stage: Stage, rows: Sequence[answers.RecordRow], to: Recorder
) -> int:
    records = {str(record.partition): record for record in DESCRIBE[stage](job, rows)}
    said = recorded_contents(to.instance, job.collection, stage, records.keys())
    return to.write(
        record
        for partition, record in records.items()
        if said.get(partition) != record.metadata[CONTENT_NAMED[stage]]
    )


def reconcile(
    pipeline: Pipeline, collection: Collection, to: Recorder, *, differing: bool = False
) -> int:
    """Write again what lacks of the records of all stages; with `differing` also the records that
    name another content than the ledger. Returns how many were written."""
    written = 0
    for stage in Stage:
        for rows in lacking(
            pipeline.engine, to.instance, collection.name, stage, differing=differing
        ):
            if rows:
                written += _write_again(pipeline, collection, stage, rows, to)
    return written


def _write_again(
    pipeline: Pipeline, collection: Collection, stage: Stage, rows: list[Passed], to: Recorder
) -> int:
    of_jobs: dict[int, list[str]] = {}
    for one in rows:
        if one.job is not None:
            of_jobs.setdefault(one.job, []).append(one.document_hash)
    if of_jobs:
        return _record_some(pipeline, of_jobs, DESCRIBE[stage], to)
    hashes = [one.document_hash for one in rows]
    with pipeline.engine.connect() as connection:
        found = documents.documents_by_hash(connection, collection.name, hashes)
    add_documents(to.instance, collection.name, hashes)
    return to.write(document_records(collection.name, found, show_paths=collection.show_paths))


def record_submissions_again(
    pipeline: Pipeline, collection: str, version: str, hashes: Sequence[str], to: Recorder
) -> int:
    """Write that a provider has the requests of just these documents, for those that it has."""
    with pipeline.engine.connect() as connection:
        found = jobs_of_documents(connection, collection, version, hashes)
    return _record_some(pipeline, found, submission_records, to)


def record_extractions_again(
    pipeline: Pipeline, collection: str, version: str, hashes: Sequence[str], to: Recorder
) -> int:
    """Write the records of what is published of just these documents."""
    with pipeline.engine.connect() as connection:
        found = jobs_of_extractions(connection, collection, version, hashes)
    return _record_some(pipeline, found, extraction_records, to)


def _record_some(
    pipeline: Pipeline, documents_of: Mapping[int, Sequence[str]], describe: Describe, to: Recorder
) -> int:
    with pipeline.engine.connect() as connection:
        rows = {job_id: jobs.job_by_id(connection, job_id) for job_id in documents_of}
    return sum(
        _record_job(pipeline, rows[job_id], describe, to, hashes)
        for job_id, hashes in documents_of.items()
    )


def _record_job(
    pipeline: Pipeline,
    job: jobs.JobRow,
    describe: Describe,
    to: Recorder,
    hashes: Sequence[str] | None = None,
) -> int:
    with pipeline.engine.connect() as connection:
        return sum(
            to.write(describe(job, chunk))
            for chunk in answers.record_rows(connection, job.id, hashes)
        )
