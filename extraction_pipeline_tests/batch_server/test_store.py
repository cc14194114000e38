"""What is accepted, when two things happen at once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from extraction_pipeline.batch_server.core_lines import CoreRequest, write_requests
from extraction_pipeline.batch_server.dialects import Dialect
from extraction_pipeline.batch_server.records import Batch, BatchState, NewBatch, Tally
from extraction_pipeline.batch_server.result_files import write_results
from extraction_pipeline.batch_server.state_folder import StateFolder
from extraction_pipeline.batch_server.store import FileInUse, Store


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[StateFolder]:
    opened = StateFolder(tmp_path / "state")
    yield opened
    opened.close()


@pytest.fixture
def store(folder: StateFolder) -> Iterator[Store]:
    opened = Store(folder)
    yield opened
    opened.close()


def started(folder: StateFolder, store: Store) -> Batch:
    """A batch that is worked on."""
    requests = [CoreRequest("a", {"model": "m"})]
    written = write_requests(folder.incoming / "draft", Dialect.GEMINI, requests)
    written.keep(folder)
    asked = NewBatch("/x", "24h", written.file.id, dialect=Dialect.GEMINI)
    batch = store.add_batch(asked, 60.0, written.file)
    assert store.start(batch.id, None, 1)
    return store.batch(batch.id)


def test_a_batch_that_is_deleted_while_its_results_are_written_leaves_none(folder, store):
    batch = started(folder, store)
    output = write_results(folder, batch, "output", [b"{}"])
    store.delete_batch(batch.id)
    # The one who wrote them knows the batch from before.
    assert not store.finish(batch, BatchState.COMPLETED, tally=Tally(1), output=output, error=None)
    deleted = store.batch(batch.id)
    assert (deleted.state, deleted.deleted) == (BatchState.CANCELLING, True)
    assert output is not None and not store.knows_file(output.id)
    assert store.finish(deleted, BatchState.CANCELLED, tally=Tally(), output=None, error=None)
    assert not store.knows_file(batch.asked.input_file_id)


def test_a_cancelling_batch_that_is_deleted_leaves_no_results_either(folder, store):
    batch = store.cancel(started(folder, store).id)
    store.delete_batch(batch.id)
    assert not store.finish(batch, BatchState.CANCELLED, tally=Tally(), output=None, error=None)
    assert store.batch(batch.id).state is BatchState.CANCELLING


def test_the_requests_of_a_batch_stay_until_its_end(folder, store):
    batch = started(folder, store)
    with pytest.raises(FileInUse):
        store.delete_file(batch.asked.input_file_id, Dialect.GEMINI)
    assert store.finish(batch, BatchState.COMPLETED, tally=Tally(1), output=None, error=None)
    assert not store.knows_file(batch.asked.input_file_id)
