"""Reading known documents again from their sources, to see that they are what they were."""

from collections.abc import Sequence
from itertools import islice

from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.documents.folder import Folder
from extraction_pipeline.documents.reader_process import DocumentReader
from extraction_pipeline.documents.sources import SourceEntry, folder_of
from extraction_pipeline.ledger import documents as ledger
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.registration import read_source_entry

CHUNK = 500


def reread(pipeline: Pipeline, collection: Collection, hashes: Sequence[str]) -> dict[str, str]:
    """Read these documents again; returns a reason for each that is not there as it was.

    A document that could not be read before and can be now, by a better reader, becomes readable.
    """
    problems: dict[str, str] = {}
    remaining = iter(hashes)
    folder = folder_of(collection.source, collection.declared_in.parent)
    with DocumentReader() as reader:
        while chunk := list(islice(remaining, CHUNK)):
            problems |= _reread_chunk(pipeline, folder, reader, collection, chunk)
    return problems


def _reread_chunk(
    pipeline: Pipeline,
    folder: Folder,
    reader: DocumentReader,
    collection: Collection,
    chunk: list[str],
) -> dict[str, str]:
    problems: dict[str, str] = {}
    with pipeline.engine.begin() as connection:
        sources = ledger.sources_of(connection, collection.name, chunk)
    rows: dict[str, ledger.DocumentRow] = {}
    for one in chunk:
        found = _first_reading(pipeline, folder, reader, collection, one, sources.get(one, ()))
        if isinstance(found, str):
            problems[one] = found
        else:
            rows[one] = found
    if rows:
        pipeline.store.flush()
    with pipeline.engine.begin() as connection:
        ledger.register_documents(connection, collection.name, list(rows.values()))
    return problems


def _first_reading(
    pipeline: Pipeline,
    folder: Folder,
    reader: DocumentReader,
    collection: Collection,
    document_hash: str,
    sources: Sequence[ledger.KnownSource],
) -> ledger.DocumentRow | str:
    if not sources:
        return "vanished from its source"
    reason = "vanished from its source"
    for source in sources:
        entry = SourceEntry(
            path=source.path,
            size=source.byte_size,
            modified=source.change_token,
            record_id=source.record_id or None,
        )
        document, _ = read_source_entry(pipeline.store, folder, reader, collection, entry)
        if document is None:
            reason = "could not be read from its source"
        elif document.document_hash == document_hash:
            return document
        else:
            reason = "its source holds another content now"
    return reason
