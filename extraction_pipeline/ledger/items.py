"""The members of batch jobs: one document's request each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from extraction_pipeline.ledger.states import ItemState

CHUNK = 1000
GIVEN_BACK_AT_MOST = 20
"""How often a request may come back from providers that took its job without an attempt being
counted: a provider that ends every job at once would be sent one each night for ever."""

_OFTEN = """(
    SELECT count(*) >= :most FROM extraction.batch_items o
    JOIN extraction.batch_jobs j ON j.id = o.batch_job_id AND j.job_id IS NOT NULL
    WHERE o.document_id = i.document_id AND o.version_id = i.version_id AND o.state = 'released')"""
"""Condition on an item `i`: it was given back as often as it may be."""


@dataclass(frozen=True)
class ItemRow:
    """A member as the payload needs it."""

    id: int
    document_id: int
    document_hash: str
    text_hash: str
    attempt: int
    custom_id: str | None


@dataclass(frozen=True)
class ItemKeys:
    """What is known of a member once its line is built."""

    item_id: int
    document_key: str
    custom_id: str


@dataclass(frozen=True)
class Failure:
    """Why a member failed: a `FailureKind` value and a short code. No kind: it is given back
    without an attempt being counted."""

    item_id: int
    kind: str | None
    reason: str


@dataclass(frozen=True)
class Member:
    """What collecting needs of a member: whether it still takes an answer, if only to keep it, and
    where the answer that landed lies, as (result file id, byte offset)."""

    item_id: int
    waits: bool
    landed_at: tuple[int, int] | None


def members(
    connection: Connection, job: int, *, state: str | None = None
) -> Iterator[list[ItemRow]]:
    """The members of a job in a fixed order, a thousand at a time."""
    last = 0
    narrowed = "AND i.state = CAST(:state AS extraction.item_state)" if state else ""
    while True:
        rows = connection.execute(
            text(f"""
                SELECT i.id, i.document_id, d.document_hash, i.text_hash, i.attempt, i.custom_id
                FROM extraction.batch_items i JOIN extraction.documents d ON d.id = i.document_id
                WHERE i.batch_job_id = :job AND i.id > :last {narrowed}
                ORDER BY i.id LIMIT :chunk
            """),
            {"job": job, "last": last, "chunk": CHUNK, **({"state": state} if state else {})},
        ).all()
        if not rows:
            return
        yield [ItemRow(*row) for row in rows]
        last = rows[-1].id


def set_keys(connection: Connection, keys: Sequence[ItemKeys]) -> int:
    """Write custom ids and document keys of members whose line is built."""
    return connection.execute(
        text("""
            UPDATE extraction.batch_items i
            SET document_key = k.document_key, custom_id = k.custom_id, updated_at = now()
            FROM unnest(CAST(:items AS bigint[]), CAST(:keys AS text[]), CAST(:customs AS text[]))
                 AS k(item_id, document_key, custom_id)
            WHERE i.id = k.item_id AND i.state = 'claimed'
        """),
        {
            "items": [key.item_id for key in keys],
            "keys": [key.document_key for key in keys],
            "customs": [key.custom_id for key in keys],
        },
    ).rowcount


def fail_items(connection: Connection, failures: Sequence[Failure]) -> int:
    """End members that are open, or were given up, as failed or released. The kind decides about
    another attempt; those without one are released, or fail like those of `release_job_items`."""
    return connection.execute(
        text(f"""
            UPDATE extraction.batch_items i
            SET state = CAST(CASE WHEN f.kind IS NULL AND NOT {_OFTEN} THEN 'released'
                                  ELSE 'failed' END AS extraction.item_state),
                failure_kind = CASE WHEN f.kind IS NULL AND {_OFTEN} THEN 'transport'
                                    ELSE f.kind END,
                failure_reason = f.reason, updated_at = now()
            FROM unnest(CAST(:items AS bigint[]), CAST(:kinds AS text[]), CAST(:reasons AS text[]))
                 AS f(item_id, kind, reason)
            WHERE i.id = f.item_id
              AND (i.state IN ('claimed', 'answered')
                   OR (i.state IN ('failed', 'released') AND i.failure_reason = 'given_up'))
        """),
        {
            "items": [failure.item_id for failure in failures],
            "kinds": [failure.kind for failure in failures],
            "reasons": [failure.reason for failure in failures],
            "most": GIVEN_BACK_AT_MOST,
        },
    ).rowcount


def fail_job_items(
    connection: Connection, job: int, kind: str, reason: str, *, answered: bool = False
) -> int:
    """End every member of a job that still waits for an answer as failed; with `answered` also
    those whose answer is stored and not published."""
    states = [ItemState.CLAIMED.value, *([ItemState.ANSWERED.value] if answered else [])]
    return connection.execute(
        text("""
            UPDATE extraction.batch_items
            SET state = 'failed', failure_kind = :kind, failure_reason = :reason,
                updated_at = now()
            WHERE batch_job_id = :job AND state::text = ANY(:states)
        """),
        {"job": job, "kind": kind, "reason": reason, "states": states},
    ).rowcount


def release_job_items(connection: Connection, job: int, reason: str) -> int:
    """Give every member that still waits for an answer back, without counting an attempt; or with
    one, of kind `transport`, where its document was given back `GIVEN_BACK_AT_MOST` times."""
    return connection.execute(
        text(f"""
            UPDATE extraction.batch_items i
            SET state = CAST(CASE WHEN {_OFTEN} THEN 'failed' ELSE 'released' END
                             AS extraction.item_state),
                failure_kind = CASE WHEN {_OFTEN} THEN 'transport' END,
                failure_reason = :reason, updated_at = now()
            WHERE i.batch_job_id = :job AND i.state = 'claimed'
        """),
        {"job": job, "reason": reason, "most": GIVEN_BACK_AT_MOST},
    ).rowcount


def release_documents(connection: Connection, version: int, hashes: Sequence[str]) -> list[str]:
    """Give the failed requests of these documents back, as if they had used up no attempt; the
    hashes of those that had any. A document with an open request or a record is left alone."""
    return list(
        connection.execute(
            text("""
                WITH given AS (
                    UPDATE extraction.batch_items i
                    SET state = 'released', failure_kind = NULL, updated_at = now()
                    FROM extraction.documents d
                    WHERE d.id = i.document_id AND i.version_id = :version AND i.state = 'failed'
                      AND d.document_hash = ANY(:hashes)
                      AND NOT EXISTS (
                        SELECT FROM extraction.batch_items o
                        WHERE o.document_id = i.document_id AND o.version_id = i.version_id
                          AND o.state IN ('claimed', 'answered', 'published'))
                    RETURNING d.document_hash)
                SELECT DISTINCT document_hash FROM given ORDER BY 1
            """),
            {"version": version, "hashes": list(hashes)},
        ).scalars()
    )


def standings(
    connection: Connection, collection: str, version: int, hashes: Sequence[str]
) -> dict[str, ItemState | None]:
    """How these documents of a collection stand at a version: by the record or the open request
    where there is one, else by the last request; `None` for one that was never asked about.
    Documents that the collection does not have are left out."""
    rows = connection.execute(
        text("""
            SELECT DISTINCT ON (d.id) d.document_hash, i.state::text AS state
            FROM extraction.documents d
            LEFT JOIN extraction.batch_items i ON i.document_id = d.id AND i.version_id = :version
            WHERE d.collection = :collection AND d.document_hash = ANY(:hashes)
            ORDER BY d.id, i.state IN ('claimed', 'answered', 'published') DESC, i.id DESC
        """),
        {"collection": collection, "version": version, "hashes": list(hashes)},
    )
    return {row.document_hash: ItemState(row.state) if row.state else None for row in rows}


def items_by_custom_id(
    connection: Connection, job: int, custom_ids: Sequence[str]
) -> dict[str, Member]:
    """Members of a job by custom id."""
    return _members_by(connection, job, "i.custom_id", custom_ids)


def items_by_document_hash(
    connection: Connection, job: int, hashes: Sequence[str]
) -> dict[str, Member]:
    """Members of a job by document hash; a job asks about a document once."""
    return _members_by(connection, job, "d.document_hash", hashes)


def _members_by(
    connection: Connection, job: int, column: str, names: Sequence[str]
) -> dict[str, Member]:
    if not names:
        return {}
    rows = connection.execute(
        text(f"""
            SELECT {column} AS name, i.id, r.result_file_id, r.byte_offset,
                   r.id IS NULL
                   AND (i.state IN ('claimed', 'superseded')
                        OR (i.state IN ('failed', 'released')
                            AND i.failure_reason = 'given_up')) AS waits
            FROM extraction.batch_items i
            JOIN extraction.documents d ON d.id = i.document_id
            LEFT JOIN extraction.raw_responses r ON r.item_id = i.id
            WHERE i.batch_job_id = :job AND {column} = ANY(:names)
        """),
        {"job": job, "names": list(names)},
    )
    return {
        row.name: Member(
            row.id,
            row.waits,
            None if row.result_file_id is None else (row.result_file_id, row.byte_offset),
        )
        for row in rows
    }
