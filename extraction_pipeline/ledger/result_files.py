"""Result streams of jobs: which were fetched, and where their bytes lie in the store."""

from dataclasses import dataclass

from sqlalchemy import Connection, text


@dataclass(frozen=True)
class FetchedFile:
    """A result stream that was fetched: a `ResultKind` value, and the hash of its bytes."""

    kind: str
    content_hash: str


def fetched_files(connection: Connection, job: int) -> list[FetchedFile]:
    """The result streams of a job that were fetched."""
    rows = connection.execute(
        text("""
            SELECT kind, content_hash FROM extraction.result_files
            WHERE batch_job_id = :job ORDER BY id
        """),
        {"job": job},
    )
    return [FetchedFile(row.kind, row.content_hash) for row in rows]


def add_result_file(
    connection: Connection, job: int, kind: str, reference: str, content_hash: str, size: int
) -> int:
    """Mark one result stream of a job as fetched; the first fetch stands. Returns its id."""
    connection.execute(
        text("""
            INSERT INTO extraction.result_files
                (batch_job_id, kind, reference, content_hash, byte_size)
            VALUES (:job, :kind, :reference, :hash, :size)
            ON CONFLICT (batch_job_id, kind) DO NOTHING
        """),
        {"job": job, "kind": kind, "reference": reference, "hash": content_hash, "size": size},
    )
    return int(
        connection.execute(
            text("""
                SELECT id FROM extraction.result_files
                WHERE batch_job_id = :job AND kind = :kind
            """),
            {"job": job, "kind": kind},
        ).scalar_one()
    )


def result_file(connection: Connection, job: int, kind: str) -> tuple[int, str] | None:
    """(id, content hash) of a result stream that was fetched, or `None`."""
    row = connection.execute(
        text("""
            SELECT id, content_hash FROM extraction.result_files
            WHERE batch_job_id = :job AND kind = :kind
        """),
        {"job": job, "kind": kind},
    ).one_or_none()
    return (row.id, row.content_hash) if row else None
