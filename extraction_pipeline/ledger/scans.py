"""What a scan asks before it and says after it: the texts that the store must hold, what vanished.

A scan writes nothing about an entry that it finds as it was. That it was seen is said once, by the
time of the last scan of its collection, or of its part of it.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import Connection, text

CHUNK = 5000


def stored_texts(connection: Connection, collection: str) -> Iterator[dict[str, int | None]]:
    """The texts of a collection's current documents, by hash and in its order, with their sizes in
    bytes; no size is known of those that were registered before sizes were kept."""
    rows = connection.execution_options(yield_per=CHUNK).execute(
        text("""
            SELECT d.text_hash, max(d.text_bytes) AS text_bytes FROM extraction.documents d
            WHERE d.collection = :collection AND d.text_hash IS NOT NULL
              AND EXISTS (SELECT FROM extraction.document_sources s
                          WHERE s.document_id = d.id AND s.vanished_at IS NULL)
            GROUP BY d.text_hash ORDER BY d.text_hash
        """),
        {"collection": collection},
    )
    for chunk in rows.partitions():
        yield {row.text_hash: row.text_bytes for row in chunk}


def read_again(connection: Connection, text_hashes: Sequence[str]) -> None:
    """Have the next scan read the sources of these texts, whatever it finds of them."""
    connection.execute(
        text("""
            UPDATE extraction.document_sources s SET change_token = NULL
            FROM extraction.documents d
            WHERE d.id = s.document_id AND s.vanished_at IS NULL AND d.text_hash = ANY(:texts)
        """),
        {"texts": list(text_hashes)},
    )


def end_scan(
    connection: Connection,
    collection: str,
    scanned: str,
    number: int,
    parts: int,
    since: datetime,
    seen: Sequence[int],
    unlisted: Sequence[str],
) -> int:
    """End the rows of entries of a collection, or of one of its `parts`, that a complete listing
    did not show, and note the time of the scan under the name of what was `scanned`.

    A row was shown if it was written since the scan began, its id is among those `seen` unchanged,
    or it lies below a folder, whose name ends in "/", that could not be listed. Returns how many
    of the others had a document; the rest were only ever problems.
    """
    ended = connection.execute(
        text("""
            WITH ended AS (
                UPDATE extraction.document_sources s
                SET vanished_at = now(), last_seen_at = greatest(s.last_seen_at, (
                    SELECT max(at) FROM extraction.source_scans
                    WHERE collection IN (:collection, :scanned)))
                WHERE s.collection = :collection AND s.vanished_at IS NULL
                  AND s.last_seen_at < :since
                  AND (:parts = 1 OR ('x' || lpad(left(md5(s.path), 7), 8, '0'))::bit(32)::int
                       % :parts = :number - 1)
                  AND NOT EXISTS (SELECT FROM unnest(CAST(:seen AS bigint[])) AS k(id)
                                  WHERE k.id = s.id)
                  AND NOT EXISTS (SELECT FROM unnest(CAST(:unlisted AS text[])) AS f(path)
                                  WHERE starts_with(s.path, f.path))
                RETURNING s.document_id
            )
            SELECT count(document_id) FROM ended
        """),
        {
            "collection": collection,
            "scanned": scanned,
            "parts": parts,
            "number": number,
            "since": since,
            "seen": list(seen),
            "unlisted": list(unlisted),
        },
    ).scalar_one()
    connection.execute(
        text("""
            INSERT INTO extraction.source_scans (collection, at) VALUES (:scanned, now())
            ON CONFLICT (collection) DO UPDATE SET at = excluded.at
        """),
        {"scanned": scanned},
    )
    return int(ended)
