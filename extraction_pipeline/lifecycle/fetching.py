"""Fetching: the results of an ended job are downloaded once, whole, and stored as they came.

What cannot be the whole results of this job is not stored: it is fetched again later.
"""

from os import SEEK_END
from pathlib import Path
from typing import NoReturn

from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.ledger import items, jobs, readings, result_files
from extraction_pipeline.ledger.states import Trouble
from extraction_pipeline.lifecycle.naming import custom_id_prefix
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.result_lines import each_line, line_chunks, read_lines
from extraction_pipeline.lifecycle.scratch import scratch_file
from extraction_pipeline.providers.base import (
    BatchProvider,
    FailureKind,
    JobPhase,
    JobStatus,
    ResultKind,
    ResultReference,
    UndecodableResult,
)
from extraction_pipeline.providers.errors import CallFailed

LAST_LINE_PATIENCE = 3
"""Fetches of a file whose last line is cut before it counts as a line that cannot be read."""

FOREIGN_PATIENCE = 10
"""Fetches of results that hold nothing of the job's own before its documents are given up."""

SHORT_PATIENCE = 10
"""Fetches of results with fewer rows than the provider counts before they are taken as they are."""


class NotYet(CallFailed):
    """Every call was answered, and the results are not all there. It is counted."""


def fetch(
    pipeline: Pipeline,
    provider: BatchProvider,
    job: jobs.JobRow,
    result: ResultReference,
    status: JobStatus,
) -> tuple[int, str]:
    """(id, content hash) of a stored result stream; fetched only if it was not before."""
    with pipeline.engine.connect() as connection:
        known = result_files.result_file(connection, job.id, result.kind.value)
    if known is not None:
        return known
    with scratch_file(pipeline.settings) as path:
        with provider.download(result) as chunks, path.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
        crash_point(CrashPoint.RESULTS_FETCHED)
        _require_whole(path, pipeline, provider, job)
        _require_ours(path, pipeline, provider, job, status)
        if result.kind is ResultKind.OUTPUT:
            _require_all(path, pipeline, job, status)
        size = path.stat().st_size
        content_hash = pipeline.store.put_file(path)
    crash_point(CrashPoint.RESULTS_STORED)
    with pipeline.engine.begin() as connection:
        file_id = result_files.add_result_file(
            connection, job.id, result.kind.value, result.reference, content_hash, size
        )
    crash_point(CrashPoint.RESULT_FILE_WRITTEN)
    return file_id, content_hash


def _require_whole(
    path: Path, pipeline: Pipeline, provider: BatchProvider, job: jobs.JobRow
) -> None:
    """Refuse a body that was cut in mid-line under a good status, as often as is sensible."""
    if job.times(Trouble.CUT_LINE) >= LAST_LINE_PATIENCE or _ends_a_line(path):
        return
    last = None
    with path.open("rb") as file:
        for line in each_line(file):
            last = line.data
    try:
        provider.decode_result(last or b"")
    except UndecodableResult:
        why = "has results that were cut short; they are fetched again"
        try_later(pipeline, job, Trouble.CUT_LINE, why)


def _ends_a_line(path: Path) -> bool:
    """Whether nothing stands behind the last newline."""
    with path.open("rb") as file:
        if file.seek(0, SEEK_END):
            file.seek(-1, SEEK_END)
        return file.read(1) in (b"", b"\n")


def _require_ours(
    path: Path,
    pipeline: Pipeline,
    provider: BatchProvider,
    job: jobs.JobRow,
    status: JobStatus,
) -> None:
    """Refuse a body without one row of this job, such as a gateway's page under a good status.

    Taken for the results it would end every member as missing, and all would be bought again.
    """
    empty = path.stat().st_size == 0 and not status.counts.completed
    if job.times(Trouble.FOREIGN_RESULTS) >= FOREIGN_PATIENCE or empty:
        return
    prefix = custom_id_prefix(job.job_key).encode()
    with path.open("rb") as file:
        ours = any(line.data is None or prefix in line.data for line in each_line(file))
    if not ours and not _names_documents_of(path, pipeline, provider, job):
        why = "got results of another job, or none; they are fetched again"
        try_later(pipeline, job, Trouble.FOREIGN_RESULTS, why)


def _require_all(path: Path, pipeline: Pipeline, job: jobs.JobRow, status: JobStatus) -> None:
    """Refuse a body with fewer rows than the provider says that it must have.

    One that was cut between two lines looks whole, and the rows behind the cut were paid for.
    """
    least = least_rows(status, job.request_count)
    foreign = job.times(Trouble.FOREIGN_RESULTS) >= FOREIGN_PATIENCE  # and taken as they are
    if not least or foreign or job.times(Trouble.SHORT_RESULTS) >= SHORT_PATIENCE:
        return
    with path.open("rb") as file:
        rows = sum(1 for line in each_line(file) if line.data is None or line.data.strip())
    if rows < least:
        why = f"got {rows} of at least {least} results; they are fetched again"
        try_later(pipeline, job, Trouble.SHORT_RESULTS, why)


def least_rows(status: JobStatus, request_count: int) -> int:
    """How many rows the output of an ended job must have, by what its provider counts; no count
    asks for none.

    Failed requests have their rows in the output only where there is no error file. Of a job that
    was cancelled or expired they may be requests that never came to a row.
    """
    counts = status.counts
    rows = counts.completed or 0
    kinds = {result.kind for result in status.results}
    if status.phase is JobPhase.ENDED and ResultKind.ERROR not in kinds:
        rows += counts.failed or 0
    return min(rows, request_count)


def _names_documents_of(
    path: Path, pipeline: Pipeline, provider: BatchProvider, job: jobs.JobRow
) -> bool:
    """Whether a row names a document of this job by its hash."""
    with path.open("rb") as file, pipeline.engine.connect() as connection:
        for lines in line_chunks(file):
            hashes = [one.document_hash for one in read_lines(provider, lines) if one.document_hash]
            if items.items_by_document_hash(connection, job.id, hashes):
                return True
    return False


def try_later(pipeline: Pipeline, job: jobs.JobRow, trouble: Trouble, why: str) -> NoReturn:
    """Let an ended job be collected again later. Raises `NotYet` with the reason."""
    with pipeline.engine.begin() as connection:
        readings.postpone(connection, job, pipeline.settings.poll_seconds, trouble)
    raise NotYet(f"Job {job.job_key} {why}.", kind=FailureKind.TRANSPORT)
