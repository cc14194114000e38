"""What a night asks for a few new documents does not read the whole of the tables for each."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, text

from extraction_pipeline.ledger.claims import claimable_documents
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline_tests.ledger.rows import HASH, insert

STANDING = 8000
NEW = 200
READINGS = 4
"""How often a statement may read a table of which it needs all rows."""


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = open_engine(database_url)
    yield engine
    engine.dispose()


def publish(engine: Engine) -> int:
    """Documents that are published, and counted; the id of their version."""
    with engine.begin() as connection:
        version = insert(connection, "extraction_versions")
        job = insert(
            connection,
            "batch_jobs",
            version_id=version,
            state="published",
            job_id="batch-1",
            payload_hash=HASH,
            request_count=STANDING,
        )
        file = insert(connection, "result_files", batch_job_id=job)
        register(connection, 1, STANDING)
        for statement in (
            """INSERT INTO extraction.batch_items
                   (batch_job_id, document_id, version_id, attempt, state, text_hash)
               SELECT :job, id, :version, 1, 'published', :hash FROM extraction.documents""",
            """INSERT INTO extraction.raw_responses (item_id, result_file_id, byte_offset,
                   byte_length, body_hash, schema_version, outcome)
               SELECT id, :file, id, 1, :hash, 'note/1', 'completed' FROM extraction.batch_items""",
            """INSERT INTO extraction.extractions (document_id, version_id, raw_response_id,
                   schema_version, text_hash, body, body_hash, evidence_found, evidence_total)
               SELECT i.document_id, i.version_id, r.id, 'note/1', :hash, '{}', :hash, 0, 0
               FROM extraction.raw_responses r JOIN extraction.batch_items i ON i.id = r.item_id""",
        ):
            connection.execute(
                text(statement), {"job": job, "version": version, "file": file, "hash": HASH}
            )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))
    return version


def register(connection: Connection, first: int, last: int) -> None:
    """Readable documents, and where they lie."""
    connection.execute(
        text("""
            INSERT INTO extraction.documents
                (collection, document_hash, state, content_hash, byte_size, text_hash,
                 payload_bytes)
            SELECT 'notes', encode(sha256(n::text::bytea), 'hex'), 'readable', :hash, 1, :hash, 3
            FROM generate_series(:first, :last) n
        """),
        {"first": first, "last": last, "hash": HASH},
    )
    connection.execute(
        text("""
            INSERT INTO extraction.document_sources (collection, path, document_id)
            SELECT 'notes', 'file ' || id, id FROM extraction.documents d
            WHERE NOT EXISTS (
                SELECT FROM extraction.document_sources s WHERE s.document_id = d.id)
        """)
    )


def rows_read(connection: Connection) -> int:
    """Rows of our tables that the transaction of this connection has read one after the other."""
    return int(
        connection.execute(
            text("""
                SELECT sum(pg_stat_get_xact_tuples_returned(oid)) FROM pg_class
                WHERE relnamespace = 'extraction'::regnamespace AND relkind = 'r'
            """)
        ).scalar_one()
    )


def test_a_claim_of_new_documents_does_not_read_all_for_each(engine: Engine) -> None:
    version = publish(engine)
    with engine.begin() as connection:
        register(connection, STANDING + 1, STANDING + NEW)
    with engine.begin() as connection:
        found = claimable_documents(connection, "notes", version, max_attempts=3, hashes=None)
        assert rows_read(connection) < 4 * READINGS * STANDING  # of four tables
    assert len(found) == NEW
