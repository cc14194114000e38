"""Scanning a source: every file gets a document and a state, or a named problem.

A file whose size and change token are those of the last scan is not opened again. A listing that
fails ends the scan before anything is taken for vanished; a file that cannot be read is noted as a
problem and never taken for an empty one.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import orjson
from sqlalchemy import text

from extraction_pipeline.collections.collection import Collection, Identity
from extraction_pipeline.documents.identity import (
    content_hash,
    external_document_hash,
)
from extraction_pipeline.documents.readable import Unreadable
from extraction_pipeline.documents.reading import read_document
from extraction_pipeline.documents.sources import SourceEntry, list_entries, read_entry
from extraction_pipeline.documents.store import ContentStore
from extraction_pipeline.errors import SourceError
from extraction_pipeline.ledger import documents as ledger
from extraction_pipeline.ledger.database import SCAN_LOCK, lock_until_commit
from extraction_pipeline.ledger.states import DocumentState
from extraction_pipeline.lifecycle.pipeline import Pipeline

CHUNK = 500


@dataclass
class ScanReport:
    """What one scan of a collection found. `problems` counts entries that could not be read."""

    collection: str
    entries: int = 0
    unchanged: int = 0
    vanished: int = 0
    problems: int = 0
    new: list[str] = field(default_factory=list)
    revised: list[str] = field(default_factory=list)


def scan(pipeline: Pipeline, collection: Collection) -> ScanReport:
    """Read what is new or changed in the collection's source and register it.

    One scan of a collection runs at a time; a second one waits for the first. Raises `SourceError`
    if the source cannot be listed.
    """
    report = ScanReport(collection.name)
    with pipeline.engine.connect() as holder, holder.begin():
        lock_until_commit(holder, SCAN_LOCK, collection.name)
        # The clock of the database, because `last_seen_at` is written by it.
        started = holder.execute(text("SELECT clock_timestamp()")).scalar_one()
        for entries in _chunks(list_entries(collection.source, collection.declared_in.parent)):
            _register_chunk(pipeline, collection, entries, report)
        with pipeline.engine.begin() as connection:
            report.vanished = ledger.mark_vanished(connection, collection.name, started)
    return report


def _chunks(entries: Iterable[SourceEntry]) -> Iterator[list[SourceEntry]]:
    remaining = iter(entries)
    while chunk := list(islice(remaining, CHUNK)):
        yield chunk


def _register_chunk(
    pipeline: Pipeline, collection: Collection, entries: list[SourceEntry], report: ScanReport
) -> None:
    with pipeline.engine.begin() as connection:
        known = ledger.known_sources(connection, collection.name, [entry.path for entry in entries])
    unchanged: list[tuple[str, str]] = []
    documents: dict[str, ledger.DocumentRow] = {}
    sources: list[ledger.SourceRow] = []
    for entry in entries:
        before = known.get((entry.path, entry.record_id or ""))
        if before is not None and _is_unchanged(entry, before):
            unchanged.append((entry.path, entry.record_id or ""))
            continue
        document, source = read_source_entry(pipeline.store, collection, entry)
        sources.append(source)
        if document is not None:
            documents[document.document_hash] = document
    if documents:
        pipeline.store.flush()
    with pipeline.engine.begin() as connection:
        registered = ledger.register_documents(
            connection, collection.name, list(documents.values())
        )
        ledger.register_sources(connection, collection.name, sources)
        ledger.touch_sources(connection, collection.name, unchanged)
    report.entries += len(entries)
    report.unchanged += len(unchanged)
    report.problems += sum(source.problem is not None for source in sources)
    report.new.extend(registered.new)
    report.revised.extend(registered.revised)


def _is_unchanged(entry: SourceEntry, before: ledger.KnownSource) -> bool:
    return (
        before.problem is None
        and before.document_hash is not None
        and entry.modified is not None
        and entry.modified == before.change_token
        and entry.size == before.byte_size
    )


def read_source_entry(
    store: ContentStore, collection: Collection, entry: SourceEntry
) -> tuple[ledger.DocumentRow | None, ledger.SourceRow]:
    """Read one entry to its document and its source row; the text goes into the store.

    An entry that cannot be read gives no document, and a source row that says why.
    """
    record_id = entry.record_id or ""
    try:
        content = read_entry(collection.source, entry, collection.declared_in.parent)
    except SourceError as error:
        return None, ledger.SourceRow(entry.path, record_id, None, entry.size, None, error.message)
    hashed = content_hash(content)
    identity = (
        external_document_hash(collection.source_system or "", record_id)
        if collection.identity is Identity.EXTERNAL_ID
        else hashed
    )
    document = read_content(store, identity, hashed, content, entry.path)
    return document, ledger.SourceRow(
        entry.path, record_id, identity, entry.size, entry.modified, None
    )


def read_content(
    store: ContentStore, identity: str, hashed: str, content: bytes, name: str
) -> ledger.DocumentRow:
    """Read bytes to a document row, and store the text if there is one."""
    reading = read_document(content, name)
    if isinstance(reading, Unreadable):
        return ledger.DocumentRow(
            document_hash=identity,
            state=DocumentState.UNREADABLE,
            unreadable_reason=reading.reason.value,
            kind=reading.kind.value if reading.kind else None,
            encoding=None,
            pages=None,
            pages_without_text=None,
            content_hash=hashed,
            byte_size=len(content),
            text_hash=None,
            text_characters=None,
            payload_bytes=None,
        )
    stored = store.put(reading.text.encode())
    return ledger.DocumentRow(
        document_hash=identity,
        state=DocumentState.READABLE,
        unreadable_reason=None,
        kind=reading.kind.value,
        encoding=reading.encoding,
        pages=reading.pages,
        pages_without_text=reading.pages_without_text,
        content_hash=hashed,
        byte_size=len(content),
        text_hash=stored,
        text_characters=len(reading.text),
        payload_bytes=len(orjson.dumps(reading.text)),
    )
