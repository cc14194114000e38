"""What each stage's materializations must say, by the ledger: keys, contents, and since when."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, text

from extraction_pipeline.ledger.answers import STANDS

CHUNK = 1000


class Stage(StrEnum):
    """The assets of a collection, in their order."""

    DOCUMENTS = "documents"
    SUBMISSIONS = "batch_submissions"
    RESPONSES = "raw_responses"
    EXTRACTIONS = "extractions"


@dataclass(frozen=True)
class Passed:
    """A document that has passed a stage: at which version (none for the first stage), with what
    content, by which job, and whether its record is due.

    A record is written moments after what it tells of, so for half an hour only one that is marked
    as written is due.
    """

    document_hash: str
    version: str | None
    content: str
    job: int | None
    due: bool


_JOBS = """
    JOIN extraction.batch_items i ON i.document_id = d.id
    JOIN extraction.extraction_versions v ON v.id = i.version_id
    JOIN extraction.batch_jobs j ON j.id = i.batch_job_id
"""
_LATEST = "ORDER BY d.id, i.version_id, i.attempt DESC"

_PASSED = {
    Stage.DOCUMENTS: """
        SELECT d.document_hash, NULL, d.content_hash, NULL::bigint,
               d.recorded_at IS NOT NULL OR d.updated_at < now() - interval '30 minutes'
        FROM extraction.documents d WHERE d.id = ANY(:ids) AND d.state = 'readable'
    """,
    Stage.SUBMISSIONS: f"""
        SELECT DISTINCT ON (d.id, i.version_id) d.document_hash, v.name, j.job_id, j.id,
               j.submission_recorded_at IS NOT NULL
               OR j.submitted_at < now() - interval '30 minutes'
        FROM extraction.documents d {_JOBS}
        WHERE d.id = ANY(:ids) AND j.job_id IS NOT NULL {_LATEST}
    """,
    Stage.RESPONSES: f"""
        SELECT DISTINCT ON (d.id, i.version_id) d.document_hash, v.name, r.body_hash, j.id,
               j.results_recorded_at IS NOT NULL
               OR r.received_at < now() - interval '30 minutes'
        FROM extraction.documents d {_JOBS}
        JOIN extraction.raw_responses r ON r.item_id = i.id
        WHERE d.id = ANY(:ids) ORDER BY d.id, i.version_id, {STANDS.format(item="i")}
    """,
    Stage.EXTRACTIONS: f"""
        SELECT d.document_hash, v.name, e.body_hash, j.id,
               coalesce(j.results_recorded_at >= e.published_at, false)
               OR e.published_at < now() - interval '30 minutes'
        FROM extraction.documents d {_JOBS}
        JOIN extraction.raw_responses r ON r.item_id = i.id
        JOIN extraction.extractions e ON e.raw_response_id = r.id
        WHERE d.id = ANY(:ids) {_LATEST}
    """,
}

_HOLDS = {
    Stage.DOCUMENTS: """
        SELECT FROM extraction.documents d
        WHERE d.collection = :collection AND d.document_hash = k.document_hash
          AND (d.state = 'readable' OR EXISTS (
              SELECT FROM extraction.document_revisions WHERE document_id = d.id))
    """,
    **{
        stage: f"""
            SELECT FROM extraction.documents d {_JOBS} {further}
            WHERE d.collection = :collection AND d.document_hash = k.document_hash
              AND v.name = k.version AND j.job_id IS NOT NULL
        """
        for stage, further in (
            (Stage.SUBMISSIONS, ""),
            (Stage.RESPONSES, "JOIN extraction.raw_responses r ON r.item_id = i.id"),
            (
                Stage.EXTRACTIONS,
                "JOIN extraction.extractions e ON e.document_id = d.id AND e.version_id = v.id",
            ),
        )
    },
}


def passed(connection: Connection, collection: str, stage: Stage) -> Iterator[list[Passed]]:
    """All that has passed a stage in a collection, in chunks of at most a thousand documents."""
    last = 0
    while True:
        ids = list(
            connection.execute(
                text("""
                    SELECT id FROM extraction.documents
                    WHERE collection = :collection AND id > :last ORDER BY id LIMIT :chunk
                """),
                {"collection": collection, "last": last, "chunk": CHUNK},
            ).scalars()
        )
        if not ids:
            return
        yield [Passed(*row) for row in connection.execute(text(_PASSED[stage]), {"ids": ids})]
        last = ids[-1]


def without_row(
    connection: Connection, collection: str, stage: Stage, keys: Sequence[tuple[str, str | None]]
) -> list[tuple[str, str | None]]:
    """Which of these (document hash, version) have not passed the stage, by the ledger."""
    rows = connection.execute(
        text(f"""
            SELECT k.document_hash, k.version
            FROM unnest(CAST(:hashes AS text[]), CAST(:versions AS text[]))
                 AS k(document_hash, version)
            WHERE NOT EXISTS ({_HOLDS[stage]})
        """),
        {
            "collection": collection,
            "hashes": [document_hash for document_hash, _ in keys],
            "versions": [version for _, version in keys],
        },
    )
    return [(row.document_hash, row.version) for row in rows]
