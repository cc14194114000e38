"""Statements about documents and where they lie. All work on sets; none is called per document."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, text

from extraction_pipeline.ledger.states import DocumentState


@dataclass(frozen=True)
class KnownSource:
    """What the ledger holds of one current source entry."""

    id: int
    path: str
    record_id: str
    document_hash: str | None
    byte_size: int | None
    change_token: str | None
    problem: str | None
    text_hash: str | None


@dataclass(frozen=True)
class DocumentRow:
    """One document as it was read. `text_bytes` is the size of its text in the store,
    `payload_bytes` that of the text as a JSON string."""

    document_hash: str
    state: DocumentState
    unreadable_reason: str | None
    kind: str | None
    encoding: str | None
    pages: int | None
    pages_without_text: int | None
    content_hash: str
    byte_size: int
    text_hash: str | None
    text_bytes: int | None
    text_characters: int | None
    payload_bytes: int | None


@dataclass(frozen=True)
class SourceRow:
    """One source entry as this scan saw it: either a document's hash, or why it was not read."""

    path: str
    record_id: str
    document_hash: str | None
    byte_size: int | None
    change_token: str | None
    problem: str | None


@dataclass(frozen=True)
class Registered:
    """What one chunk changed: documents never seen, and documents whose content is another."""

    new: tuple[str, ...]
    revised: tuple[str, ...]


@dataclass(frozen=True)
class RecordableDocument:
    """A document that passed the first stage and has no materialization yet."""

    document_hash: str
    state: DocumentState
    unreadable_reason: str | None
    kind: str | None
    encoding: str | None
    pages: int | None
    pages_without_text: int | None
    content_hash: str
    byte_size: int
    text_hash: str | None
    text_characters: int | None
    first_seen_at: datetime
    source_count: int
    example_path: str | None


def known_sources(
    connection: Connection, collection: str, paths: Sequence[str]
) -> dict[tuple[str, str], KnownSource]:
    """Current entries of the ledger at `paths`, by (path, record id)."""
    rows = connection.execute(
        text("""
            SELECT s.id, s.path, s.record_id, d.document_hash, s.byte_size, s.change_token,
                   s.problem, d.text_hash
            FROM extraction.document_sources s
            LEFT JOIN extraction.documents d ON d.id = s.document_id
            WHERE s.collection = :collection AND s.vanished_at IS NULL AND s.path = ANY(:paths)
        """),
        {"collection": collection, "paths": list(paths)},
    )
    return {(row.path, row.record_id): KnownSource(*row) for row in rows}


def register_documents(
    connection: Connection, collection: str, rows: Sequence[DocumentRow]
) -> Registered:
    """Write documents; a hash may come twice in `rows` only with equal content.

    A known hash with another content is a revision: recorded, and the row follows it. A known one
    with the same content changes only where it can be read now and could not before.
    """
    arrays = {
        "collection": collection,
        "hashes": [row.document_hash for row in rows],
        "states": [row.state.value for row in rows],
        "reasons": [row.unreadable_reason for row in rows],
        "kinds": [row.kind for row in rows],
        "encodings": [row.encoding for row in rows],
        "pages": [row.pages for row in rows],
        "blanks": [row.pages_without_text for row in rows],
        "contents": [row.content_hash for row in rows],
        "sizes": [row.byte_size for row in rows],
        "texts": [row.text_hash for row in rows],
        "lengths": [row.text_bytes for row in rows],
        "characters": [row.text_characters for row in rows],
        "payloads": [row.payload_bytes for row in rows],
    }
    # `before` reads the statement's own snapshot: what was there when it began.
    found = connection.execute(
        text("""
            WITH given AS (
                SELECT DISTINCT ON (document_hash) * FROM unnest(
                    CAST(:hashes AS text[]), CAST(:states AS extraction.document_state[]),
                    CAST(:reasons AS text[]), CAST(:kinds AS text[]), CAST(:encodings AS text[]),
                    CAST(:pages AS int[]), CAST(:blanks AS int[]), CAST(:contents AS text[]),
                    CAST(:sizes AS bigint[]), CAST(:texts AS text[]), CAST(:lengths AS bigint[]),
                    CAST(:characters AS int[]), CAST(:payloads AS bigint[])
                ) AS g(document_hash, state, unreadable_reason, kind, encoding, pages,
                       pages_without_text, content_hash, byte_size, text_hash, text_bytes,
                       text_characters, payload_bytes)
                ORDER BY document_hash
            ), before AS (
                SELECT d.document_hash, d.content_hash FROM extraction.documents d
                JOIN given USING (document_hash) WHERE d.collection = :collection
            ), written AS (
                INSERT INTO extraction.documents AS d
                    (collection, document_hash, state, unreadable_reason, kind, encoding, pages,
                     pages_without_text, content_hash, byte_size, text_hash, text_bytes,
                     text_characters, payload_bytes)
                SELECT :collection, g.* FROM given g
                ON CONFLICT (collection, document_hash) DO UPDATE SET
                    state = excluded.state, unreadable_reason = excluded.unreadable_reason,
                    kind = excluded.kind, encoding = excluded.encoding, pages = excluded.pages,
                    pages_without_text = excluded.pages_without_text,
                    content_hash = excluded.content_hash, byte_size = excluded.byte_size,
                    text_hash = excluded.text_hash, text_bytes = excluded.text_bytes,
                    text_characters = excluded.text_characters,
                    payload_bytes = excluded.payload_bytes, updated_at = now(),
                    recorded_at = NULL
                WHERE d.content_hash <> excluded.content_hash
                   OR (d.state = 'unreadable' AND excluded.state = 'readable')
                RETURNING d.id, d.document_hash, d.content_hash, d.text_hash
            ), revised AS (
                INSERT INTO extraction.document_revisions (document_id, content_hash, text_hash)
                SELECT w.id, w.content_hash, w.text_hash FROM written w
                JOIN before b USING (document_hash) WHERE b.content_hash <> w.content_hash
                ON CONFLICT (document_id, content_hash) DO UPDATE SET seen_at = now()
                RETURNING document_id
            ), noted AS (
                INSERT INTO extraction.audit_events (event, actor, collection, document_id)
                SELECT 'document_revised', 'scan', :collection, document_id FROM revised
            )
            SELECT w.document_hash, b.content_hash IS NULL AS is_new,
                   b.content_hash <> w.content_hash AS is_revised
            FROM written w LEFT JOIN before b USING (document_hash)
        """),
        arrays,
    ).all()
    return Registered(
        new=tuple(row.document_hash for row in found if row.is_new),
        revised=tuple(row.document_hash for row in found if row.is_revised),
    )


def register_sources(connection: Connection, collection: str, rows: Sequence[SourceRow]) -> None:
    """Write source entries: an entry that now leads to another document ends the old row."""
    arrays = {
        "collection": collection,
        "paths": [row.path for row in rows],
        "records": [row.record_id for row in rows],
        "hashes": [row.document_hash for row in rows],
        "sizes": [row.byte_size for row in rows],
        "tokens": [row.change_token for row in rows],
        "problems": [row.problem for row in rows],
    }
    given = """
        WITH given AS (
            SELECT g.*, d.id AS document_id FROM unnest(
                CAST(:paths AS text[]), CAST(:records AS text[]), CAST(:hashes AS text[]),
                CAST(:sizes AS bigint[]), CAST(:tokens AS text[]), CAST(:problems AS text[])
            ) AS g(path, record_id, document_hash, byte_size, change_token, problem)
            LEFT JOIN extraction.documents d
              ON d.collection = :collection AND d.document_hash = g.document_hash
        )
    """
    connection.execute(
        text(
            given
            + """
            UPDATE extraction.document_sources s SET vanished_at = now() FROM given g
            WHERE s.collection = :collection AND s.vanished_at IS NULL
              AND s.path = g.path AND s.record_id = g.record_id
              AND s.document_id IS NOT NULL AND g.document_id IS NOT NULL
              AND s.document_id <> g.document_id
        """
        ),
        arrays,
    )
    # A failed reading of a known document keeps the document: the row gets no problem then, and
    # an older token, so that the next scan tries again.
    connection.execute(
        text(
            given
            + """
            INSERT INTO extraction.document_sources AS s
                (collection, path, record_id, document_id, byte_size, change_token, problem)
            SELECT :collection, path, record_id, document_id, byte_size, change_token, problem
            FROM given
            ON CONFLICT (collection, path, record_id) WHERE vanished_at IS NULL DO UPDATE SET
                document_id = coalesce(excluded.document_id, s.document_id),
                problem = CASE WHEN coalesce(excluded.document_id, s.document_id) IS NULL
                               THEN excluded.problem END,
                byte_size = excluded.byte_size,
                change_token = CASE WHEN excluded.document_id IS NULL THEN NULL
                                    ELSE excluded.change_token END,
                last_seen_at = now()
        """
        ),
        arrays,
    )


def unrecorded_documents(
    connection: Connection, collection: str, limit: int
) -> list[RecordableDocument]:
    """Documents whose first materialization is still to be written."""
    rows = connection.execute(
        text("""
            SELECT d.document_hash, d.state, d.unreadable_reason, d.kind, d.encoding, d.pages,
                   d.pages_without_text, d.content_hash, d.byte_size, d.text_hash,
                   d.text_characters, d.first_seen_at,
                   count(s.id) FILTER (WHERE s.vanished_at IS NULL) AS source_count,
                   min(s.path) AS example_path
            FROM (SELECT * FROM extraction.documents
                  WHERE collection = :collection AND recorded_at IS NULL
                  ORDER BY id LIMIT :limit) d
            LEFT JOIN extraction.document_sources s ON s.document_id = d.id
            GROUP BY d.id, d.document_hash, d.state, d.unreadable_reason, d.kind, d.encoding,
                     d.pages, d.pages_without_text, d.content_hash, d.byte_size, d.text_hash,
                     d.text_characters, d.first_seen_at
            ORDER BY d.id
        """),
        {"collection": collection, "limit": limit},
    )
    return [_recordable(row) for row in rows]


def documents_by_hash(
    connection: Connection, collection: str, hashes: Sequence[str]
) -> list[RecordableDocument]:
    """These documents as the first stage's record describes them; unknown hashes are left out."""
    rows = connection.execute(
        text("""
            SELECT d.document_hash, d.state, d.unreadable_reason, d.kind, d.encoding, d.pages,
                   d.pages_without_text, d.content_hash, d.byte_size, d.text_hash,
                   d.text_characters, d.first_seen_at,
                   count(s.id) FILTER (WHERE s.vanished_at IS NULL) AS source_count,
                   min(s.path) AS example_path
            FROM extraction.documents d
            LEFT JOIN extraction.document_sources s ON s.document_id = d.id
            WHERE d.collection = :collection AND d.document_hash = ANY(:hashes)
            GROUP BY d.id ORDER BY d.id
        """),
        {"collection": collection, "hashes": list(hashes)},
    )
    return [_recordable(row) for row in rows]


def unknown_hashes(connection: Connection, collection: str, hashes: Sequence[str]) -> list[str]:
    """Those of these hashes that are of no document of the collection, each once, in order."""
    return list(
        connection.execute(
            text("""
                SELECT DISTINCT h.hash FROM unnest(CAST(:hashes AS text[])) AS h (hash)
                WHERE NOT EXISTS (
                    SELECT FROM extraction.documents d
                    WHERE d.collection = :collection AND d.document_hash = h.hash)
                ORDER BY h.hash
            """),
            {"collection": collection, "hashes": list(hashes)},
        ).scalars()
    )


def _recordable(row: Row[Any]) -> RecordableDocument:
    values = tuple(row)
    return RecordableDocument(values[0], DocumentState(values[1]), *values[2:])


def mark_documents_recorded(connection: Connection, collection: str, hashes: Sequence[str]) -> None:
    """Say that the materializations of these documents are written."""
    connection.execute(
        text("""
            UPDATE extraction.documents SET recorded_at = now()
            WHERE collection = :collection AND document_hash = ANY(:hashes)
        """),
        {"collection": collection, "hashes": list(hashes)},
    )


def sources_of(
    connection: Connection, collection: str, hashes: Sequence[str]
) -> dict[str, tuple[KnownSource, ...]]:
    """Current entries that lead to these documents, by document hash."""
    rows = connection.execute(
        text("""
            SELECT s.id, s.path, s.record_id, d.document_hash, s.byte_size, s.change_token,
                   s.problem, d.text_hash
            FROM extraction.document_sources s JOIN extraction.documents d ON d.id = s.document_id
            WHERE d.collection = :collection AND d.document_hash = ANY(:hashes)
              AND s.vanished_at IS NULL
            ORDER BY s.path, s.record_id
        """),
        {"collection": collection, "hashes": list(hashes)},
    )
    found: dict[str, tuple[KnownSource, ...]] = {}
    for row in rows:
        found[row.document_hash] = (*found.get(row.document_hash, ()), KnownSource(*row))
    return found
