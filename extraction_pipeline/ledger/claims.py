"""Claims: which documents a new batch job may ask about. The partial unique index decides."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from extraction_pipeline.ledger.database import CLAIM_LOCK, lock_until_commit
from extraction_pipeline.prices.estimate import Estimate


@dataclass(frozen=True)
class Claimable:
    """A readable document without an extraction, an open request or a spent last attempt."""

    document_id: int
    payload_bytes: int


@dataclass(frozen=True)
class NewJob:
    """A job to be made: its key, the documents it asks about, and what they may cost."""

    job_key: str
    document_ids: tuple[int, ...]
    estimate: Estimate


@dataclass(frozen=True)
class ClaimedJob:
    """A job that was made, with as many members as could be claimed."""

    id: int
    job_key: str
    request_count: int


def claimable_documents(
    connection: Connection,
    collection: str,
    version: int,
    *,
    max_attempts: int,
    hashes: Sequence[str] | None,
) -> list[Claimable]:
    """Documents that need a request, in order of registration; `hashes` narrows the question.

    Without `hashes`, documents that are no longer in their source are left out: nobody asked for
    them by name.

    Holds the claim lock of this version until the transaction ends, so that two runs that start at
    once make the jobs of one.
    """
    lock_until_commit(connection, CLAIM_LOCK, f"{collection}/{version}")
    narrowed = (
        "AND d.document_hash = ANY(:hashes)"
        if hashes is not None
        else """AND EXISTS (SELECT FROM extraction.document_sources s
                            WHERE s.document_id = d.id AND s.vanished_at IS NULL)"""
    )
    rows = connection.execute(
        text(f"""
            SELECT d.id, d.payload_bytes FROM extraction.documents d
            WHERE d.collection = :collection AND d.state = 'readable' {narrowed}
              AND NOT EXISTS (
                SELECT FROM extraction.extractions e
                WHERE e.document_id = d.id AND e.version_id = :version)
              AND NOT EXISTS (
                SELECT FROM extraction.batch_items i
                WHERE i.document_id = d.id AND i.version_id = :version
                  AND (i.state IN ('claimed', 'answered', 'published')
                       OR i.failure_kind = 'rejected'))
              AND (SELECT count(*) FROM extraction.batch_items i
                   WHERE i.document_id = d.id AND i.version_id = :version
                     AND i.failure_kind IN ('model', 'transport')) < :max_attempts
            ORDER BY d.id
        """),
        {
            "collection": collection,
            "version": version,
            "max_attempts": max_attempts,
            **({"hashes": list(hashes)} if hashes is not None else {}),
        },
    )
    return [Claimable(*row) for row in rows]


def create_jobs(
    connection: Connection,
    version: int,
    *,
    provider: str,
    base_url: str,
    jobs: Sequence[NewJob],
) -> list[ClaimedJob]:
    """Make jobs in state `preparing` and claim their members.

    They are due in a minute: the run that made them sends them right away, and only if it died does
    another need to.

    A member that somebody else claimed meanwhile is left out, by the partial unique index; a job
    without members is not made.
    """
    made: list[ClaimedJob] = []
    for job in jobs:
        job_id = connection.execute(
            text("""
                INSERT INTO extraction.batch_jobs
                    (job_key, version_id, provider, base_url, state, request_count, due_at,
                     estimated_input_tokens, estimated_output_tokens, estimated_amount,
                     estimated_currency)
                VALUES (:key, :version, :provider, :base_url, 'preparing', 0,
                        now() + interval '60 seconds', :inputs, :outputs, :amount, :currency)
                RETURNING id
            """),
            {
                "key": job.job_key,
                "version": version,
                "provider": provider,
                "base_url": base_url,
                "inputs": job.estimate.input_tokens,
                "outputs": job.estimate.output_tokens,
                "amount": job.estimate.amount,
                "currency": job.estimate.currency,
            },
        ).scalar_one()
        claimed = connection.execute(
            text("""
                INSERT INTO extraction.batch_items
                    (batch_job_id, document_id, version_id, attempt, state, text_hash)
                SELECT :job, d.id, :version,
                       1 + coalesce((SELECT max(i.attempt) FROM extraction.batch_items i
                                     WHERE i.document_id = d.id AND i.version_id = :version), 0),
                       'claimed', d.text_hash
                FROM extraction.documents d
                WHERE d.id = ANY(:documents) AND d.text_hash IS NOT NULL
                ORDER BY d.id
                ON CONFLICT DO NOTHING
            """),
            {"job": job_id, "version": version, "documents": list(job.document_ids)},
        ).rowcount
        if claimed == 0:
            connection.execute(
                text("DELETE FROM extraction.batch_jobs WHERE id = :job"), {"job": job_id}
            )
            continue
        connection.execute(
            text("UPDATE extraction.batch_jobs SET request_count = :count WHERE id = :job"),
            {"count": claimed, "job": job_id},
        )
        made.append(ClaimedJob(job_id, job.job_key, claimed))
    return made


def refuse_documents(
    connection: Connection, version: int, documents: Sequence[int], kind: str, reason: str
) -> None:
    """Note that no job can ask about these documents; they end as failed with this reason."""
    connection.execute(
        text("""
            INSERT INTO extraction.batch_items
                (document_id, version_id, attempt, state, text_hash, failure_kind, failure_reason)
            SELECT d.id, :version,
                   1 + coalesce((SELECT max(i.attempt) FROM extraction.batch_items i
                                 WHERE i.document_id = d.id AND i.version_id = :version), 0),
                   'failed', d.text_hash, :kind, :reason
            FROM extraction.documents d WHERE d.id = ANY(:documents)
        """),
        {"version": version, "documents": list(documents), "kind": kind, "reason": reason},
    )
