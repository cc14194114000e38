"""Writing a batch's result files."""

import hashlib
import time
from collections.abc import Iterable

from extraction_pipeline.batch_server.records import StoredFile
from extraction_pipeline.batch_server.state_folder import StateFolder


def write_results(
    folder: StateFolder, batch_id: str, kind: str, lines: Iterable[bytes]
) -> StoredFile | None:
    """Write the lines to their place; `None` and no file where there are none.

    The file's id depends on the batch and kind alone, so writing again after a crash replaces.
    """
    file_id = f"file-{hashlib.sha256(f'{batch_id}/{kind}'.encode()).hexdigest()[:24]}"
    draft = folder.incoming / file_id
    size = 0
    with draft.open("wb") as file:
        for line in lines:
            size += file.write(line + b"\n")
    if size == 0:
        draft.unlink()
        return None
    folder.keep(draft, file_id)
    return StoredFile(file_id, size, time.time(), f"{batch_id}_{kind}.jsonl", "batch_output")
