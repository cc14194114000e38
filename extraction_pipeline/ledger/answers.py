"""Raw responses and extractions: landing what came back, and publishing what is valid."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sqlalchemy import Connection, text

from extraction_pipeline.prices.price_list import Price

CHUNK = 500


@dataclass(frozen=True)
class RawRow:
    """One landed answer: where its bytes lie in the result file, and what its envelope said."""

    item_id: int
    byte_offset: int
    byte_length: int
    body_hash: str
    outcome: str
    http_status: int | None
    request_id: str | None
    model: str | None
    input_tokens: int | None
    output_tokens: int | None


@dataclass(frozen=True)
class StoredAnswer:
    """A landed answer with all that publishing needs."""

    raw_id: int
    item_id: int
    document_id: int
    document_hash: str
    text_hash: str
    content_hash: str
    byte_offset: int
    byte_length: int
    body_hash: str
    schema_version: str
    late: bool = False
    """Whether its job had been given up when it came."""


@dataclass(frozen=True)
class ExtractionRow:
    """A valid answer on its way to be published. `body` is JSON text, `late` as in an answer."""

    raw_id: int
    item_id: int
    document_id: int
    text_hash: str
    schema_version: str
    body: str
    body_hash: str
    evidence_found: int
    evidence_total: int
    late: bool = False


def wait_for_publishing(connection: Connection, job: int) -> bool:
    """Whether an answer of a job is stored and not published."""
    return bool(
        connection.execute(
            text("""
                SELECT EXISTS (SELECT FROM extraction.batch_items
                               WHERE batch_job_id = :job AND state = 'answered')
            """),
            {"job": job},
        ).scalar_one()
    )


def land(
    connection: Connection,
    result_file_id: int,
    schema_version: str,
    rows: Sequence[RawRow],
    *,
    price: Price | None,
    unasked: Collection[str],
) -> int:
    """Store answers with what they cost, and move their members to `answered`.

    Returns how many came. One of a member that was given up or superseded is kept all the same, and
    leaves it in its state. An answer that is there stays, and so does its cost. An outcome of
    `unasked`, where no model was asked, used no tokens unless it says so.
    """
    return int(
        connection.execute(
            text("""
            WITH landed AS (
                INSERT INTO extraction.raw_responses
                    (item_id, result_file_id, byte_offset, byte_length, body_hash, schema_version,
                     outcome, http_status, request_id, model, input_tokens, output_tokens)
                SELECT r.item_id, :file, r.byte_offset, r.byte_length, r.body_hash, :schema,
                       r.outcome, r.http_status, r.request_id, r.model, r.input_tokens,
                       r.output_tokens
                FROM unnest(
                    CAST(:items AS bigint[]), CAST(:offsets AS bigint[]), CAST(:lengths AS int[]),
                    CAST(:hashes AS text[]), CAST(:outcomes AS text[]), CAST(:statuses AS int[]),
                    CAST(:requests AS text[]), CAST(:models AS text[]), CAST(:inputs AS bigint[]),
                    CAST(:outputs AS bigint[])
                ) AS r(item_id, byte_offset, byte_length, body_hash, outcome, http_status,
                       request_id, model, input_tokens, output_tokens)
                ON CONFLICT (item_id) DO NOTHING
                RETURNING item_id, outcome, input_tokens, output_tokens
            ), used AS (
                SELECT item_id,
                       coalesce(input_tokens, CASE WHEN unasked THEN 0 END) AS input_tokens,
                       coalesce(output_tokens, CASE WHEN unasked THEN 0 END) AS output_tokens
                FROM (SELECT *, outcome = ANY(:unasked) AS unasked FROM landed) l
            ), costed AS (
                INSERT INTO extraction.request_costs
                    (item_id, input_tokens, output_tokens, input_price, output_price, amount,
                     currency)
                SELECT u.item_id, u.input_tokens, u.output_tokens, p.input, p.output,
                       (u.input_tokens * p.input + u.output_tokens * p.output) * 0.000001,
                       p.currency
                FROM used u
                LEFT JOIN (VALUES (CAST(:input_price AS numeric), CAST(:output_price AS numeric),
                                   CAST(:currency AS text))) AS p(input, output, currency)
                       ON p.currency IS NOT NULL AND u.input_tokens IS NOT NULL
                          AND u.output_tokens IS NOT NULL
                ON CONFLICT (item_id) DO NOTHING
            ), answered AS (
                UPDATE extraction.batch_items i SET state = 'answered', updated_at = now()
                FROM landed WHERE i.id = landed.item_id AND i.state = 'claimed'
            )
            SELECT count(*) FROM landed
        """),
            {
                "file": result_file_id,
                "schema": schema_version,
                "items": [row.item_id for row in rows],
                "offsets": [row.byte_offset for row in rows],
                "lengths": [row.byte_length for row in rows],
                "hashes": [row.body_hash for row in rows],
                "outcomes": [row.outcome for row in rows],
                "statuses": [row.http_status for row in rows],
                "requests": [row.request_id for row in rows],
                "models": [row.model for row in rows],
                "inputs": [row.input_tokens for row in rows],
                "outputs": [row.output_tokens for row in rows],
                "unasked": sorted(unasked),
                "input_price": price.input if price else None,
                "output_price": price.output if price else None,
                "currency": price.currency if price else None,
            },
        ).scalar_one()
    )


def answers_of_job(connection: Connection, job: int) -> Iterator[list[StoredAnswer]]:
    """Answers of a job that wait to be validated, in file order, in chunks."""
    last = 0
    while True:
        rows = connection.execute(
            text("""
                SELECT r.id, i.id, i.document_id, d.document_hash, i.text_hash, f.content_hash,
                       r.byte_offset, r.byte_length, r.body_hash, r.schema_version,
                       i.state <> 'answered' AS late
                FROM extraction.raw_responses r
                JOIN extraction.batch_items i ON i.id = r.item_id
                JOIN extraction.documents d ON d.id = i.document_id
                JOIN extraction.result_files f ON f.id = r.result_file_id
                WHERE i.batch_job_id = :job AND r.id > :last
                  AND (i.state = 'answered'
                       OR (i.state IN ('failed', 'released') AND i.failure_reason = 'given_up'))
                ORDER BY r.id LIMIT :chunk
            """),
            {"job": job, "last": last, "chunk": CHUNK},
        ).all()
        if not rows:
            return
        yield [StoredAnswer(*row) for row in rows]
        last = rows[-1][0]


def latest_answers(
    connection: Connection, version: int, hashes: Sequence[str]
) -> list[StoredAnswer]:
    """The newest completed answer of each of these documents at a version, for a replay."""
    rows = connection.execute(
        text("""
            SELECT DISTINCT ON (i.document_id)
                   r.id, i.id, i.document_id, d.document_hash, i.text_hash, f.content_hash,
                   r.byte_offset, r.byte_length, r.body_hash, r.schema_version
            FROM extraction.documents d
            JOIN extraction.batch_items i ON i.document_id = d.id AND i.version_id = :version
            JOIN extraction.extraction_versions v ON v.id = i.version_id
                 AND v.collection = d.collection
            JOIN extraction.raw_responses r ON r.item_id = i.id
            JOIN extraction.result_files f ON f.id = r.result_file_id
            WHERE d.document_hash = ANY(:hashes) AND r.outcome = 'completed'
            ORDER BY i.document_id, (i.state = 'published') DESC, r.id DESC
        """),
        {"version": version, "hashes": list(hashes)},
    )
    return [StoredAnswer(*row) for row in rows]


def publish(
    connection: Connection, version: int, rows: Sequence[ExtractionRow], run_id: str | None
) -> int:
    """Upsert extractions and move their members to `published`. Returns how many rows changed.

    A row with equal content stays as it is, with its first time of publication. A replayed answer
    of a failed attempt becomes the published one unless a later attempt is under way.
    """
    arrays = {
        "version": version,
        "run": run_id,
        "raws": [row.raw_id for row in rows],
        "items": [row.item_id for row in rows],
        "documents": [row.document_id for row in rows],
        "texts": [row.text_hash for row in rows],
        "schemas": [row.schema_version for row in rows],
        "bodies": [row.body for row in rows],
        "hashes": [row.body_hash for row in rows],
        "found": [row.evidence_found for row in rows],
        "total": [row.evidence_total for row in rows],
    }
    changed = connection.execute(
        text("""
            INSERT INTO extraction.extractions AS e
                (document_id, version_id, raw_response_id, schema_version, text_hash, body,
                 body_hash, evidence_found, evidence_total, published_by)
            SELECT r.document_id, :version, r.raw_id, r.schema_version, r.text_hash,
                   CAST(r.body AS jsonb), r.body_hash, r.found, r.total, :run
            FROM unnest(
                CAST(:documents AS bigint[]), CAST(:raws AS bigint[]), CAST(:schemas AS text[]),
                CAST(:texts AS text[]), CAST(:bodies AS text[]), CAST(:hashes AS text[]),
                CAST(:found AS int[]), CAST(:total AS int[])
            ) AS r(document_id, raw_id, schema_version, text_hash, body, body_hash, found, total)
            ON CONFLICT (document_id, version_id) DO UPDATE SET
                raw_response_id = excluded.raw_response_id,
                schema_version = excluded.schema_version, text_hash = excluded.text_hash,
                body = excluded.body, body_hash = excluded.body_hash,
                evidence_found = excluded.evidence_found,
                evidence_total = excluded.evidence_total,
                published_by = excluded.published_by, published_at = now()
            WHERE e.body_hash <> excluded.body_hash
        """),
        arrays,
    ).rowcount
    connection.execute(
        text("""
            UPDATE extraction.batch_items i
            SET state = 'published', failure_kind = NULL, failure_reason = NULL, updated_at = now()
            WHERE id = ANY(:items) AND (state = 'answered' OR (
                state IN ('failed', 'released') AND NOT EXISTS (
                SELECT FROM extraction.batch_items o
                WHERE o.document_id = i.document_id AND o.version_id = i.version_id
                  AND o.state IN ('claimed', 'answered', 'published'))))
        """),
        {"items": arrays["items"]},
    )
    return changed


STANDS = (
    "({item}.state = 'published') DESC, ({item}.state <> 'superseded') DESC, {item}.attempt DESC"
)
"""Order in which the answers about one document at one version count: the published one, then the
latest that was not superseded."""


@dataclass(frozen=True)
class RecordRow:
    """What the materializations of one document at one version say."""

    document_hash: str
    attempt: int
    state: str
    failure_kind: str | None
    failure_reason: str | None
    last_sent: bool
    """Whether no later request about the document reached a provider."""
    answer_stands: bool
    """Whether no other answer about the document counts before this one."""
    custom_id: str | None
    document_key: str | None
    text_hash: str
    raw_hash: str | None
    outcome: str | None
    http_status: int | None
    request_id: str | None
    model: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost: Decimal | None
    currency: str | None
    received_at: datetime | None
    extraction_hash: str | None
    extraction_schema: str | None
    evidence_found: int | None
    evidence_total: int | None
    published_at: datetime | None


def record_rows(
    connection: Connection, job: int, hashes: Sequence[str] | None = None
) -> Iterator[list[RecordRow]]:
    """What to record of a job's documents, a thousand at a time; `hashes` narrows it."""
    last = 0
    narrowed = "AND d.document_hash = ANY(:hashes)" if hashes is not None else ""
    while True:
        rows = connection.execute(
            text(f"""
                SELECT i.id, d.document_hash, i.attempt, i.state::text, i.failure_kind,
                       i.failure_reason,
                       NOT EXISTS (
                           SELECT FROM extraction.batch_items o
                           JOIN extraction.batch_jobs oj ON oj.id = o.batch_job_id
                           WHERE o.document_id = i.document_id AND o.version_id = i.version_id
                             AND o.attempt > i.attempt AND oj.job_id IS NOT NULL),
                       i.id = (
                           SELECT o.id FROM extraction.batch_items o
                           JOIN extraction.raw_responses ro ON ro.item_id = o.id
                           WHERE o.document_id = i.document_id AND o.version_id = i.version_id
                           ORDER BY {STANDS.format(item="o")} LIMIT 1) IS TRUE,
                       i.custom_id, i.document_key, i.text_hash,
                       r.body_hash, r.outcome, r.http_status, r.request_id, r.model,
                       r.input_tokens, r.output_tokens, c.amount, c.currency, r.received_at,
                       e.body_hash, e.schema_version, e.evidence_found, e.evidence_total,
                       e.published_at
                FROM extraction.batch_items i
                JOIN extraction.documents d ON d.id = i.document_id
                LEFT JOIN extraction.raw_responses r ON r.item_id = i.id
                LEFT JOIN extraction.request_costs c ON c.item_id = i.id
                LEFT JOIN extraction.extractions e ON e.raw_response_id = r.id
                WHERE i.batch_job_id = :job AND i.id > :last {narrowed}
                ORDER BY i.id LIMIT 1000
            """),
            {
                "job": job,
                "last": last,
                **({"hashes": list(hashes)} if hashes is not None else {}),
            },
        ).all()
        if not rows:
            return
        yield [RecordRow(*row[1:]) for row in rows]
        last = rows[-1][0]
