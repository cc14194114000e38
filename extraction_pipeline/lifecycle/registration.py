"""Scanning a source: every file gets a document and a state, or a named problem.

A file whose size and change token are those of the last scan is not opened again, unless the store
lacks its text or holds another length of it, or a step that needed the text found it damaged. A
listing that fails ends the scan before anything is taken for vanished; a file or a folder that
cannot be read is noted as a problem, never taken for an empty one, and tried again by the next
scan.
"""

import logging
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import orjson
from sqlalchemy import Connection, text

from extraction_pipeline.collections.collection import Collection, Identity
from extraction_pipeline.crash_points import CrashPoint, crash_point
from extraction_pipeline.documents.folder import Folder, LargeFile
from extraction_pipeline.documents.identity import (
    content_hash,
    external_document_hash,
)
from extraction_pipeline.documents.parts import WHOLE, Part
from extraction_pipeline.documents.readable import (
    ReadableText,
    ReadLimits,
    Unreadable,
    UnreadableReason,
)
from extraction_pipeline.documents.reader_process import DocumentReader
from extraction_pipeline.documents.sources import SourceEntry, folder_of, list_entries
from extraction_pipeline.documents.store import ContentStore
from extraction_pipeline.errors import SourceError
from extraction_pipeline.ledger import documents as ledger
from extraction_pipeline.ledger import scans
from extraction_pipeline.ledger.counted import count_anew
from extraction_pipeline.ledger.database import SCAN_LOCK, lock_until_commit
from extraction_pipeline.ledger.states import DocumentState
from extraction_pipeline.lifecycle.pipeline import Pipeline

CHUNK = 2000

_log = logging.getLogger(__name__)


@dataclass
class ScanReport:
    """What one scan of a collection found."""

    collection: str
    entries: int = 0
    unchanged: int = 0
    vanished: int = 0
    problems: int = 0
    """Files and folders that could not be read."""
    skipped: int = 0
    """Hidden and temporary files, links that lead out, pipes and the like."""
    unmatched: int = 0
    """Other files, which `include` and `exclude` of the YAML leave out."""
    restored: int = 0
    """Texts that the store had lost or cut short, and that are there again."""
    new: list[str] = field(default_factory=list)
    revised: list[str] = field(default_factory=list)

    def notes(self) -> list[str]:
        """A line on what is no longer there, and one on what is there and was left out."""
        lines: list[str] = []
        if self.vanished:
            gone = "1 file is" if self.vanished == 1 else f"{self.vanished:,} files are"
            empty = "" if self.entries else " It is empty now: is it the right folder, and mounted?"
            lines.append(
                f"{self.collection}: {gone} no longer in the source; the records stay.{empty}"
            )
        left_out = [
            f"{self.unmatched:,} by include and exclude of the YAML" if self.unmatched else "",
            f"{self.skipped:,} as hidden, temporary or special files" if self.skipped else "",
        ]
        if any(left_out):
            lines.append(f"{self.collection}: files left out: {', '.join(filter(None, left_out))}.")
        return lines


@dataclass(frozen=True)
class _Scanning:
    """What the steps of one scan share. `lost` are the texts that the store lacks, with what it
    should hold of each, and `seen` the ids of the rows of entries that are as they were."""

    pipeline: Pipeline
    collection: Collection
    folder: Folder
    reader: DocumentReader
    lost: dict[str, int | None]
    report: ScanReport
    everything: bool
    seen: "array[int]" = field(default_factory=lambda: array("q"))


def scan(pipeline: Pipeline, collection: Collection, part: Part = WHOLE) -> ScanReport:
    """Read what is new or changed in the collection's source, or a part of it, and register it.

    Where the settings say so, what looks unchanged is read as well. One scan of a part runs at a
    time, and none of the whole beside it; a second one waits for the first. Raises `SourceError`
    if the source cannot be listed.
    """
    report = ScanReport(collection.name)
    with pipeline.engine.connect() as holder, holder.begin(), DocumentReader() as reader:
        lock_until_commit(holder, SCAN_LOCK, collection.name, shared=part != WHOLE)
        if part != WHOLE:
            lock_until_commit(holder, SCAN_LOCK, part.key(collection.name))
        # The clock of the database, because `last_seen_at` is written by it.
        started = holder.execute(text("SELECT clock_timestamp()")).scalar_one()
        base = collection.declared_in.parent
        listing = list_entries(collection.source, base)
        if part.number == 1:  # they are counted once
            report.skipped = listing.skipped
            report.unmatched = listing.unmatched
        scanning = _Scanning(
            pipeline,
            collection,
            folder_of(collection.source, base),
            reader,
            _lost_texts(pipeline, collection),
            report,
            everything=pipeline.settings.read_unchanged,
        )
        for entries in _chunks(entry for entry in listing if part.holds(entry.path)):
            _require_lock(holder)
            _register_chunk(scanning, entries)
        with pipeline.engine.begin() as connection:
            report.vanished = scans.end_scan(
                connection,
                collection.name,
                collection.name if part == WHOLE else part.key(collection.name),
                part.number,
                part.parts,
                started,
                scanning.seen,
                listing.unlisted,
            )
    count_anew(pipeline.engine)
    return report


def _lost_texts(pipeline: Pipeline, collection: Collection) -> dict[str, int | None]:
    """Texts of the collection that the store lacks or holds another length of."""
    lost: dict[str, int | None] = {}
    with pipeline.engine.connect() as connection:
        for sizes in scans.stored_texts(connection, collection.name):
            lost |= {one: sizes[one] for one in pipeline.store.incomplete(sizes)}
    return lost


def _require_lock(holder: Connection) -> None:
    """Raise `DatabaseUnavailable` where the session that holds the scan's lock is gone: another
    scan may be at work by now, and know more than this one."""
    holder.execute(text("SELECT 1"))


def _chunks(entries: Iterable[SourceEntry]) -> Iterator[list[SourceEntry]]:
    remaining = iter(entries)
    while chunk := list(islice(remaining, CHUNK)):
        yield chunk


def _register_chunk(scanning: _Scanning, entries: list[SourceEntry]) -> None:
    pipeline, report, store = scanning.pipeline, scanning.report, scanning.pipeline.store
    name = scanning.collection.name
    with pipeline.engine.begin() as connection:
        known = ledger.known_sources(connection, name, [entry.path for entry in entries])
    changed: list[SourceEntry] = []
    lost: dict[str, int | None] = {}
    for entry in entries:
        before = known.get((entry.path, entry.record_id or ""))
        if before is None or scanning.everything or not _is_unchanged(entry, before):
            changed.append(entry)
        elif before.text_hash in scanning.lost:
            lost[before.text_hash] = scanning.lost[before.text_hash]
            changed.append(entry)
        else:
            scanning.seen.append(before.id)
    documents: dict[str, ledger.DocumentRow] = {}
    sources: list[ledger.SourceRow] = []
    for entry in changed:
        document, source = read_source_entry(
            store, scanning.folder, scanning.reader, scanning.collection, entry
        )
        sources.append(source)
        if document is not None:
            documents[document.document_hash] = document
    if lost:
        report.restored += len(lost) - _still_lost(store, lost)
    report.entries += len(entries)
    report.unchanged += len(entries) - len(changed)
    if not changed:
        return
    if documents:
        store.flush()
    crash_point(CrashPoint.TEXTS_STORED)
    with pipeline.engine.begin() as connection:
        registered = ledger.register_documents(connection, name, list(documents.values()))
        ledger.register_sources(connection, name, sources)
    crash_point(CrashPoint.DOCUMENTS_REGISTERED)
    report.problems += sum(source.problem is not None for source in sources)
    report.new.extend(registered.new)
    report.revised.extend(registered.revised)


def _still_lost(store: ContentStore, lost: dict[str, int | None]) -> int:
    """How many texts did not come back, because their sources are gone or give another text now."""
    remaining = len(store.incomplete(lost))
    if remaining:
        _log.warning(
            "%d stored texts are missing or damaged, and their sources do not give them any more",
            remaining,
        )
    return remaining


def _is_unchanged(entry: SourceEntry, before: ledger.KnownSource) -> bool:
    return (
        entry.problem is None
        and before.problem is None
        and before.document_hash is not None
        and entry.modified is not None
        and entry.modified == before.change_token
        and entry.size == before.byte_size
    )


def read_source_entry(
    store: ContentStore,
    folder: Folder,
    reader: DocumentReader,
    collection: Collection,
    entry: SourceEntry,
) -> tuple[ledger.DocumentRow | None, ledger.SourceRow]:
    """Read one entry to its document and its source row; the text goes into the store.

    An entry that cannot be read gives no document, and a source row that says why.
    """
    record_id = entry.record_id or ""
    try:
        if entry.problem is not None:
            raise SourceError(entry.problem)
        content = folder.read(entry.path, entry.size, reader.limits.bytes)
        if isinstance(content, LargeFile):
            hashed, size = content.content_hash, content.byte_size
            reading = _too_large(size, reader.limits)
        else:
            hashed, size = content_hash(content), len(content)
            reading = reader.read(content, entry.path)
    except SourceError as error:
        return None, ledger.SourceRow(entry.path, record_id, None, entry.size, None, error.message)
    identity = (
        external_document_hash(collection.source_system or "", record_id)
        if collection.identity is Identity.EXTERNAL_ID
        else hashed
    )
    document = _document_row(store, identity, hashed, size, reading)
    return document, ledger.SourceRow(
        entry.path, record_id, identity, entry.size, entry.modified, None
    )


def _too_large(size: int, limits: ReadLimits) -> ReadableText | Unreadable:
    return Unreadable(
        UnreadableReason.TOO_LARGE,
        None,
        f"the file has {size:,} bytes; the limit is {limits.bytes:,}",
    )


def _document_row(
    store: ContentStore,
    identity: str,
    hashed: str,
    size: int,
    reading: ReadableText | Unreadable,
) -> ledger.DocumentRow:
    """What was read as a document row; the text, if there is one, goes into the store."""
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
            byte_size=size,
            text_hash=None,
            text_bytes=None,
            text_characters=None,
            payload_bytes=None,
        )
    encoded = reading.text.encode()
    stored = store.put(encoded)
    return ledger.DocumentRow(
        document_hash=identity,
        state=DocumentState.READABLE,
        unreadable_reason=None,
        kind=reading.kind.value,
        encoding=reading.encoding,
        pages=reading.pages,
        pages_without_text=reading.pages_without_text,
        content_hash=hashed,
        byte_size=size,
        text_hash=stored,
        text_bytes=len(encoded),
        text_characters=len(reading.text),
        payload_bytes=len(orjson.dumps(reading.text)),
    )
