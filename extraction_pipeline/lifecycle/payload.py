"""The payload of a job: its request lines, built once, stored, and copied for each call."""

import logging
from pathlib import Path
from shutil import copyfileobj

from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.documents.identity import content_hash_of_stream
from extraction_pipeline.errors import StoreError, StoreUnavailable
from extraction_pipeline.ledger import items, jobs
from extraction_pipeline.ledger.scans import read_again
from extraction_pipeline.ledger.states import ItemState, JobState
from extraction_pipeline.ledger.versions import version_by_id
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.recipes import build_request, recipe_from_document
from extraction_pipeline.lifecycle.scratch import scratch_file
from extraction_pipeline.providers.base import (
    FailureKind,
)

log = logging.getLogger(__name__)


def build_payload(pipeline: Pipeline, job: jobs.JobRow) -> jobs.JobRow:
    """Write the payload to the store, and its checksum and its members' ids to the ledger."""
    provider = pipeline.provider(job.provider)
    with pipeline.engine.connect() as connection:
        version = version_by_id(connection, job.version_id)
    recipe = recipe_from_document(version.recipe)
    keys: list[items.ItemKeys] = []
    lost: list[items.Failure] = []
    unread: list[str] = []
    with scratch_file(pipeline.settings) as path:
        with path.open("wb") as payload, pipeline.engine.connect() as connection:
            for chunk in items.members(connection, job.id, state=ItemState.CLAIMED):
                texts = pipeline.store.get_many(item.text_hash for item in chunk)
                for item, text_of in zip(chunk, texts, strict=True):
                    try:
                        text = text_of().decode()
                    except StoreUnavailable:
                        raise  # of all, and no document's end
                    except StoreError:
                        log.error("text %s of a document is not in the store", item.text_hash)
                        unread.append(item.text_hash)
                        lost.append(
                            items.Failure(item.id, FailureKind.DATABASE.value, "text_not_stored")
                        )
                        continue
                    built = build_request(
                        recipe, version.name, job.job_key, item.document_hash, text
                    )
                    payload.write(provider.encode_request(built.request) + b"\n")
                    keys.append(
                        items.ItemKeys(item.id, built.document_key, built.request.custom_id)
                    )
        size = path.stat().st_size
        stored = pipeline.store.put_file(path) if keys else None
    crash_point(CrashPoint.PAYLOAD_STORED)
    with pipeline.engine.begin() as connection:
        items.fail_items(connection, lost)
        read_again(connection, unread)
        if stored is None:
            jobs.move(
                connection,
                job,
                JobState.REJECTED,
                values={
                    "failure_kind": FailureKind.DATABASE.value,
                    "failure_code": "text_not_stored",
                },
            )
        else:
            for start in range(0, len(keys), items.CHUNK):
                items.set_keys(connection, keys[start : start + items.CHUNK])
            jobs.move(
                connection,
                job,
                JobState.PREPARED,
                values={
                    "payload_hash": stored,
                    "payload_bytes": size,
                    "request_count": len(keys),
                },
            )
        return jobs.job_by_id(connection, job.id)


def copy_payload(pipeline: Pipeline, job: jobs.JobRow, path: Path) -> None:
    """Get the payload from the store; its checksum proves that it is what was built."""
    payload_hash = job.payload_hash
    assert payload_hash is not None
    with pipeline.store.open(payload_hash) as stored, path.open("wb") as payload:
        copyfileobj(stored, payload, 1 << 20)
    with path.open("rb") as payload:
        found, _ = content_hash_of_stream(payload)
    if found != payload_hash:
        raise StoreError(
            f"The payload stored as {payload_hash} is damaged: its bytes have another hash.",
            remedy="Restore it from a backup. Nothing was sent.",
        )
