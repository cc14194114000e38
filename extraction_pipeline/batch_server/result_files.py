"""Writing a batch's result files."""

import hashlib
import time
from collections.abc import Iterable

from extraction_pipeline.batch_server.records import RESULTS_PURPOSE, Batch, StoredFile
from extraction_pipeline.batch_server.state_folder import StateFolder

_KINDS = ("output", "error")


def write_results(
    folder: StateFolder, batch: Batch, kind: str, lines: Iterable[bytes]
) -> StoredFile | None:
    """Write the lines to their place; `None` and no file where there are none.

    The file's id depends on the batch and kind alone, so writing again after a crash replaces.
    """
    file_id = _file_id(batch.id, kind)
    draft = folder.incoming / file_id
    size = 0
    with draft.open("wb") as file:
        for line in lines:
            size += file.write(line + b"\n")
    if size == 0:
        draft.unlink()
        return None
    folder.keep(draft, file_id)
    return StoredFile(
        id=file_id,
        size=size,
        created_at=time.time(),
        filename=f"{batch.id}_{kind}.jsonl",
        purpose=RESULTS_PURPOSE,
        dialect=batch.asked.dialect,
    )


def remove_results(folder: StateFolder, batch_id: str) -> None:
    """Remove contents that were written for a batch before it was deleted."""
    for kind in _KINDS:
        folder.file(_file_id(batch_id, kind)).unlink(missing_ok=True)


def _file_id(batch_id: str, kind: str) -> str:
    return f"file-{hashlib.sha256(f'{batch_id}/{kind}'.encode()).hexdigest()[:24]}"
