"""Questions that people ask of the ledger: how far is each document, each job, each collection."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from extraction_pipeline.ledger.states import AuditEvent, DocumentStatus, JobState

# One row per document: its status at one version. `failed` and `invalid` mean that no attempt is
# left; whatever still may become an extraction is `waiting`.
_STATUS = """
    SELECT d.id, d.document_hash, d.unreadable_reason, last.failure_kind, last.failure_reason,
           last.attempt, last.job_key, last.job_state,
           CASE
             WHEN e.id IS NOT NULL THEN 'published'
             WHEN d.state = 'unreadable' THEN 'unreadable'
             WHEN last.state IN ('claimed', 'answered') THEN 'waiting'
             WHEN last.rejected OR last.failures >= :max_attempts
               THEN CASE WHEN last.failure_kind = 'model'
                              AND starts_with(last.failure_reason, 'invalid_') THEN 'invalid'
                         ELSE 'failed' END
             ELSE 'waiting'
           END AS status,
           e.text_hash IS NOT NULL AND e.text_hash IS DISTINCT FROM d.text_hash AS revised_since,
           e.id IS NOT NULL AND d.state = 'unreadable' AS unreadable_since,
           EXISTS (SELECT FROM extraction.document_sources s
                   WHERE s.document_id = d.id AND s.vanished_at IS NULL) AS present
    FROM extraction.documents d
    LEFT JOIN extraction.extraction_versions v
           ON v.collection = d.collection AND v.name = :version
    LEFT JOIN extraction.extractions e ON e.document_id = d.id AND e.version_id = v.id
    LEFT JOIN LATERAL (
        SELECT i.state, i.failure_kind, i.failure_reason, i.attempt, j.job_key,
               CASE WHEN i.state IN ('claimed', 'answered') THEN j.state::text END AS job_state,
               f.*
        FROM extraction.batch_items i LEFT JOIN extraction.batch_jobs j ON j.id = i.batch_job_id
        CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE failure_kind IN ('model', 'transport')) AS failures,
                   coalesce(bool_or(failure_kind = 'rejected'), false) AS rejected
            FROM extraction.batch_items WHERE document_id = d.id AND version_id = v.id
        ) f
        WHERE i.document_id = d.id AND i.version_id = v.id
        ORDER BY i.attempt DESC LIMIT 1
    ) last ON true
    WHERE d.collection = :collection
"""

_REASON = "CASE WHEN status = 'unreadable' THEN unreadable_reason ELSE failure_reason END"

_PATH = """(SELECT min(path) FROM extraction.document_sources f
            WHERE f.document_id = s.id AND f.vanished_at IS NULL)"""


@dataclass(frozen=True)
class CollectionSummary:
    """Documents of one collection at one version, by status; the five counts add up.

    Documents whose last source is gone are left out of them and are `vanished`: their records stay.
    Of the published, `revised_since` have another content by now, and of those
    `unreadable_since` one without text: the record of the earlier content stands.
    """

    documents: int
    published: int
    invalid: int
    unreadable: int
    failed: int
    waiting: int
    revised_since: int
    unreadable_since: int
    vanished: int
    sources_unread: int
    provider_jobs: int
    submitted_requests: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class DocumentLine:
    """One document as `status` shows it.

    `job_state` is that of the job with its open request, `path` one of its current sources where
    that was asked for.
    """

    document_hash: str
    status: DocumentStatus
    reason: str | None
    attempt: int | None
    job_key: str | None
    job_state: JobState | None
    path: str | None


@dataclass(frozen=True)
class Reason:
    """How many documents share a status and what led to it; the fields are those of a line."""

    status: DocumentStatus
    reason: str | None
    job_state: JobState | None
    attempted: bool
    documents: int


@dataclass(frozen=True)
class UnreadableRevision:
    """A published document whose present content has no text, and why. `path` as in a line."""

    document_hash: str
    reason: str
    path: str | None


@dataclass(frozen=True)
class UnreadFile:
    """A source that could not be read at all, so that it has no document. `path` as in a line."""

    problem: str
    path: str | None


@dataclass(frozen=True)
class JobLine:
    """One job as `status` shows it."""

    job_key: str
    collection: str
    version: str
    provider: str
    state: str
    provider_state: str | None
    requests: int
    costs_at_most: str | None
    job_id: str | None
    failure_code: str | None
    created_at: datetime
    due_at: datetime


def summarize(
    connection: Connection, collection: str, version: str, max_attempts: int
) -> CollectionSummary:
    """Count the documents of a collection by their status at a version."""
    asked = {"collection": collection, "version": version, "max_attempts": max_attempts}
    counted = ", ".join(
        f"count(*) FILTER (WHERE present AND status = '{status.value}') AS {status.value}"
        for status in DocumentStatus
    )
    counts = connection.execute(
        text(f"""
            SELECT count(*) FILTER (WHERE present) AS documents, {counted},
                   count(*) FILTER (WHERE present AND revised_since) AS revised_since,
                   count(*) FILTER (WHERE present AND unreadable_since) AS unreadable_since,
                   count(*) FILTER (WHERE NOT present) AS vanished
            FROM ({_STATUS}) s
        """),
        asked,
    ).one()
    rest = connection.execute(
        text("""
            WITH version AS (
                SELECT id FROM extraction.extraction_versions
                WHERE collection = :collection AND name = :version
            ), jobs AS (
                SELECT count(*) AS provider_jobs, sum(request_count) AS submitted_requests
                FROM extraction.batch_jobs
                WHERE version_id = (SELECT id FROM version) AND job_id IS NOT NULL
            ), tokens AS (
                SELECT sum(r.input_tokens) AS input_tokens, sum(r.output_tokens) AS output_tokens
                FROM extraction.raw_responses r JOIN extraction.batch_items i ON i.id = r.item_id
                WHERE i.version_id = (SELECT id FROM version)
            ), unread AS (
                SELECT count(*) AS sources_unread FROM extraction.document_sources
                WHERE collection = :collection AND vanished_at IS NULL AND problem IS NOT NULL
            )
            SELECT sources_unread, provider_jobs,
                   coalesce(submitted_requests, 0)::bigint AS submitted_requests,
                   coalesce(input_tokens, 0)::bigint AS input_tokens,
                   coalesce(output_tokens, 0)::bigint AS output_tokens
            FROM jobs, tokens, unread
        """),
        asked,
    ).one()
    return CollectionSummary(**counts._mapping, **rest._mapping)


def document_lines(
    connection: Connection,
    collection: str,
    version: str,
    max_attempts: int,
    *,
    hashes: Sequence[str] | None = None,
    statuses: Sequence[DocumentStatus] | None = None,
    limit: int | None = None,
    with_paths: bool = False,
) -> list[DocumentLine]:
    """Documents with their status, reason and last job, in order of registration: those of
    `hashes`, or all that are in their source."""
    narrowed = "AND d.document_hash = ANY(:hashes)" if hashes is not None else ""
    rows = connection.execute(
        text(f"""
            SELECT document_hash, status, {_REASON} AS reason, attempt, job_key, job_state,
                   {_PATH if with_paths else "NULL"} AS path
            FROM ({_STATUS} {narrowed}) s
            WHERE {"present" if hashes is None else "true"}
              {"AND status = ANY(:statuses)" if statuses is not None else ""}
            ORDER BY id LIMIT :limit
        """),
        {
            "collection": collection,
            "version": version,
            "max_attempts": max_attempts,
            "limit": limit,
            **({"hashes": list(hashes)} if hashes is not None else {}),
            **({"statuses": [s.value for s in statuses]} if statuses is not None else {}),
        },
    )
    return [
        DocumentLine(
            document_hash=row.document_hash,
            status=DocumentStatus(row.status),
            reason=row.reason,
            attempt=row.attempt,
            job_key=row.job_key,
            job_state=row.job_state and JobState(row.job_state),
            path=row.path,
        )
        for row in rows
    ]


def reasons(
    connection: Connection,
    collection: str,
    version: str,
    max_attempts: int,
    statuses: Sequence[DocumentStatus],
) -> list[Reason]:
    """Why documents that are in their source have one of these statuses, the most frequent
    first."""
    rows = connection.execute(
        text(f"""
            SELECT status, {_REASON} AS reason, job_state, attempt IS NOT NULL AS attempted,
                   count(*) AS documents
            FROM ({_STATUS}) s WHERE present AND status = ANY(:statuses)
            GROUP BY 1, 2, 3, 4 ORDER BY documents DESC, 1, 2, 3, 4
        """),
        {
            "collection": collection,
            "version": version,
            "max_attempts": max_attempts,
            "statuses": [status.value for status in statuses],
        },
    )
    return [
        Reason(
            DocumentStatus(row.status),
            row.reason,
            row.job_state and JobState(row.job_state),
            row.attempted,
            row.documents,
        )
        for row in rows
    ]


def unreadable_revisions(
    connection: Connection,
    collection: str,
    version: str,
    max_attempts: int,
    limit: int,
    *,
    with_paths: bool,
) -> list[UnreadableRevision]:
    """The documents that `unreadable_since` counts, in order of registration."""
    rows = connection.execute(
        text(f"""
            SELECT document_hash, unreadable_reason, {_PATH if with_paths else "NULL"}
            FROM ({_STATUS}) s WHERE present AND unreadable_since ORDER BY id LIMIT :limit
        """),
        {
            "collection": collection,
            "version": version,
            "max_attempts": max_attempts,
            "limit": limit,
        },
    )
    return [UnreadableRevision(*row) for row in rows]


def unread_files(
    connection: Connection, collection: str, limit: int, *, with_paths: bool
) -> list[UnreadFile]:
    """Files of a collection that could not be read when it was last scanned."""
    rows = connection.execute(
        text("""
            SELECT problem, CASE WHEN :with_paths THEN path END FROM extraction.document_sources
            WHERE collection = :collection AND vanished_at IS NULL AND problem IS NOT NULL
            ORDER BY id LIMIT :limit
        """),
        {"collection": collection, "with_paths": with_paths, "limit": limit},
    )
    return [UnreadFile(*row) for row in rows]


def open_jobs(connection: Connection, limit: int) -> list[JobLine]:
    """Jobs that are not at their end, the oldest first."""
    rows = connection.execute(
        text("""
            SELECT j.job_key, v.collection, v.name, j.provider, j.state::text, j.provider_state,
                   j.request_count,
                   trim_scale(j.estimated_amount) || ' ' || j.estimated_currency,
                   j.job_id, j.failure_code, j.created_at, j.due_at
            FROM extraction.batch_jobs j
            JOIN extraction.extraction_versions v ON v.id = j.version_id
            WHERE j.state NOT IN ('published', 'rejected', 'failed')
            ORDER BY j.id LIMIT :limit
        """),
        {"limit": limit},
    )
    return [JobLine(*row) for row in rows]


def jobs_of_documents(
    connection: Connection, collection: str, version: str, hashes: Sequence[str]
) -> dict[int, list[str]]:
    """Submitted jobs that these documents' open or last requests belong to, with the documents."""
    rows = connection.execute(
        text("""
            SELECT DISTINCT ON (d.id) j.id, d.document_hash
            FROM extraction.documents d
            JOIN extraction.extraction_versions v
                 ON v.collection = d.collection AND v.name = :version
            JOIN extraction.batch_items i ON i.document_id = d.id AND i.version_id = v.id
            JOIN extraction.batch_jobs j ON j.id = i.batch_job_id
            WHERE d.collection = :collection AND d.document_hash = ANY(:hashes)
              AND j.job_id IS NOT NULL
            ORDER BY d.id, i.attempt DESC
        """),
        {"collection": collection, "version": version, "hashes": list(hashes)},
    )
    found: dict[int, list[str]] = {}
    for job, document_hash in rows:
        found.setdefault(job, []).append(document_hash)
    return found


@dataclass(frozen=True)
class Submitted:
    """Jobs of one collection and version that certain runs brought to the provider."""

    collection: str
    version: str
    jobs: int
    requests: int


def submitted_by(connection: Connection, actors: Sequence[str]) -> list[Submitted]:
    """What these actors, most often runs, submitted or found to be submitted, by version. What
    others submit at the same time is none of it."""
    rows = connection.execute(
        text("""
            SELECT v.collection, v.name, count(*), sum(j.request_count)::bigint
            FROM extraction.batch_jobs j
            JOIN extraction.extraction_versions v ON v.id = j.version_id
            WHERE EXISTS (
                SELECT FROM extraction.audit_events a
                WHERE a.batch_job_id = j.id AND a.actor = ANY(:actors) AND a.event = ANY(:events))
            GROUP BY v.collection, v.name ORDER BY v.collection, v.name
        """),
        {
            "actors": list(actors),
            "events": [AuditEvent.JOB_SUBMITTED.value, AuditEvent.JOB_ADOPTED.value],
        },
    )
    return [Submitted(*row) for row in rows]
