"""Restoring: results that were fetched, and that the store has lost since, are fetched once more.

The provider keeps what it answered for some weeks, and to read it again costs nothing. Only the
same bytes will do: where each answer lies in them, and its hash, are in the ledger.
"""

import hashlib

from extraction_pipeline.documents.store import ContentStore
from extraction_pipeline.errors import StoreError, StoreUnavailable
from extraction_pipeline.ledger import answers, jobs, result_files
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.pausing import heeding, require_no_pause
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.scratch import scratch_file
from extraction_pipeline.providers.errors import ProviderError

CHUNK_BYTES = 2**20
BACKUP = "Restore the store from a backup."


def restore_results(pipeline: Pipeline, job: jobs.JobRow) -> int:
    """Put back the result files of an ended or collected job that the store lacks, as long as an
    answer in them is to be published; returns how many.

    Raises `StoreError` where the provider has them no more, or has other bytes by now, and
    `StoreUnavailable`, with nothing fetched, where the store cannot be asked.
    """
    with pipeline.engine.connect() as connection:
        if job.state is JobState.COLLECTED and not answers.wait_for_publishing(connection, job.id):
            return 0
        fetched = result_files.fetched_files(connection, job.id)
    gone = [file for file in fetched if not _holds(pipeline.store, file.content_hash)]
    if not gone:
        return 0
    require_no_pause(pipeline, job.provider)
    try:
        with heeding(pipeline, job.provider):
            for file in gone:
                _fetch_again(pipeline, job, file)
    except ProviderError as error:
        raise StoreError(
            f"Job {job.job_key}: the store has lost results that were fetched, and they could not "
            f"be fetched again: {error.message}",
            remedy=BACKUP,
        ) from None
    return len(gone)


def _holds(store: ContentStore, content_hash: str) -> bool:
    try:
        with store.open(content_hash) as stored:
            digest = hashlib.sha256()
            while chunk := stored.read(CHUNK_BYTES):
                digest.update(chunk)
    except StoreUnavailable:
        raise  # away, which says nothing of what it holds
    except StoreError:
        return False
    return digest.hexdigest() == content_hash


def _fetch_again(pipeline: Pipeline, job: jobs.JobRow, file: result_files.FetchedFile) -> None:
    provider = pipeline.provider(job.provider)
    status = provider.status(job.job_id or "")
    for result in status.results:
        if result.kind.value != file.kind:
            continue
        with scratch_file(pipeline.settings) as path:
            with provider.download(result) as chunks, path.open("wb") as body:
                for chunk in chunks:
                    body.write(chunk)
            if pipeline.store.put_file(path) == file.content_hash:
                return
    raise StoreError(
        f"Job {job.job_key}: the store has lost results that were fetched, and {job.provider} does "
        "not have the same bytes any more.",
        remedy=BACKUP,
    )
