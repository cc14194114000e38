"""The counts of a campaign: out of the provider's own statistics, the ledger and Dagster's events.

Nothing here asks the pipeline what it believes: rows are counted, and compared.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dagster._core.events.log import EventLogEntry
from dagster._serdes import deserialize_value
from sqlalchemy import Connection, text

CONTENT = {
    "documents": "content_hash",
    "batch_submissions": "job_id",
    "raw_responses": "raw_hash",
    "extractions": "extraction_hash",
}
"""Which metadata of a stage's records names its content."""

_LEDGER = {
    "documents": """
        SELECT collection, document_hash, content_hash FROM extraction.documents
        WHERE state = 'readable'
    """,
    "batch_submissions": """
        SELECT d.collection, d.document_hash || '|' || v.name, j.job_id
        FROM extraction.batch_items i JOIN extraction.documents d ON d.id = i.document_id
        JOIN extraction.extraction_versions v ON v.id = i.version_id
        JOIN extraction.batch_jobs j ON j.id = i.batch_job_id
        WHERE j.job_id IS NOT NULL
    """,
    "raw_responses": """
        SELECT d.collection, d.document_hash || '|' || v.name, r.body_hash
        FROM extraction.batch_items i JOIN extraction.documents d ON d.id = i.document_id
        JOIN extraction.extraction_versions v ON v.id = i.version_id
        JOIN extraction.raw_responses r ON r.item_id = i.id
    """,
    "extractions": """
        SELECT d.collection, d.document_hash || '|' || v.name, e.body_hash
        FROM extraction.extractions e JOIN extraction.documents d ON d.id = e.document_id
        JOIN extraction.extraction_versions v ON v.id = e.version_id
    """,
}
"""Collection, partition and content of all that has passed a stage."""


PROMISES = (
    "duplicates",
    "lost",
    "failed",
    "without_end",
    "false_materializations",
    "missing_materializations",
)
"""Counts of what must never be."""


@dataclass(frozen=True)
class Harm:
    """What was done to those who were counted."""

    kills: int = 0
    collections: int = 0
    seconds: int = 0
    seed: int = 0


@dataclass(frozen=True)
class Counts:
    """What came of a campaign. Every count of `PROMISES` must be zero."""

    kills: int
    collections_harmed: int
    """Collections of which a process died while it dealt with their provider."""
    faults: int
    provider_jobs: int
    requests_accepted: int
    requests_answered: int
    documents: int
    extractions: int
    published_documents: int
    asked_again: int
    duplicates: int
    lost: int
    failed: int
    without_end: int
    false_materializations: int
    missing_materializations: int
    seconds: int
    seed: int

    @property
    def broken(self) -> dict[str, int]:
        """The promises that were not kept, with how often."""
        counted = asdict(self)
        return {name: counted[name] for name in PROMISES if counted[name]}

    def line(self) -> str:
        """All in one line."""
        return " ".join(f"{name}={value}" for name, value in asdict(self).items())


@dataclass(frozen=True)
class Requests:
    """What the ledger knows of requests that a provider has, and what the provider says."""

    jobs_known: int
    requests_known: int
    asked: int
    """Documents and versions that a provider was asked about."""
    lost_on_record: int
    """Requests that a provider had and that ended without an answer of use, with a reason."""
    jobs_created: int
    accepted: int
    answered_again: int
    """Questions that were answered, and would have been paid for, more than once."""
    records: int
    documents_with_record: int

    @property
    def asked_again(self) -> int:
        """Requests beyond the first for the same document and version."""
        return self.requests_known - self.asked

    @property
    def duplicates(self) -> int:
        """Requests that the ledger does not know or that were repeated without a recorded lost
        answer, or where there are none, jobs that it does not know; and second records."""
        return (
            max(
                abs(self.accepted - self.requests_known),
                abs(self.jobs_created - self.jobs_known),
                self.asked_again - self.lost_on_record,
                self.answered_again - self.lost_on_record,
            )
            + self.records
            - self.documents_with_record
        )


def requests(connection: Connection, statistics: Mapping[str, Any]) -> Requests:
    """The ledger's and the provider's counts of requests."""
    known = connection.execute(
        text("""
            SELECT count(DISTINCT j.id) AS jobs, count(*) AS requests,
                   count(DISTINCT (i.document_id, i.version_id)) AS asked,
                   count(*) FILTER (WHERE i.state IN ('failed', 'released')) AS lost
            FROM extraction.batch_items i JOIN extraction.batch_jobs j ON j.id = i.batch_job_id
            WHERE j.job_id IS NOT NULL
        """)
    ).one()
    records = connection.execute(
        text("""
            SELECT count(*) AS records, count(DISTINCT (document_id, version_id)) AS documents
            FROM extraction.extractions
        """)
    ).one()
    return Requests(
        known.jobs,
        known.requests,
        known.asked,
        known.lost,
        statistics["jobs_created"],
        statistics["requests_accepted"],
        sum(one["requests_answered_again"] for one in statistics["dialects"].values()),
        records.records,
        records.documents,
    )


def documents(connection: Connection, version: str) -> tuple[int, int]:
    """How many documents there are, and how many of them have a record at this version."""
    row = connection.execute(
        text("""
            SELECT (SELECT count(*) FROM extraction.documents) AS known,
                   (SELECT count(*) FROM extraction.extractions e
                    JOIN extraction.extraction_versions v ON v.id = e.version_id
                    WHERE v.name = :version) AS published
        """),
        {"version": version},
    ).one()
    return row.known, row.published


def lost_documents(
    connection: Connection, written: Mapping[str, set[str]], version: str
) -> tuple[int, int]:
    """How many of the written documents the ledger does not know, and how many that it knows have
    neither a record at this version nor failed for good, or wait at another."""
    known: dict[str, set[str]] = defaultdict(set)
    for collection, document in connection.execute(
        text("SELECT collection, document_hash FROM extraction.documents")
    ):
        known[collection].add(document)
    lost = sum(len(hashes - known[name]) for name, hashes in written.items())
    without = connection.execute(
        text("""
            SELECT (SELECT count(*) FROM extraction.documents d WHERE NOT EXISTS (
                       SELECT FROM extraction.extractions e
                       JOIN extraction.extraction_versions v ON v.id = e.version_id
                       WHERE e.document_id = d.id AND v.name = :version)
                     AND NOT EXISTS (
                       SELECT FROM extraction.batch_items i
                       WHERE i.document_id = d.id AND i.failure_kind = 'rejected'))
                 + (SELECT count(*) FROM extraction.batch_items i
                    WHERE i.state IN ('claimed', 'answered'))
        """),
        {"version": version},
    ).scalar_one()
    return lost, int(without)


def failed_requests(connection: Connection) -> int:
    """Requests that ended for good without a record, for a reason that a person can see."""
    return int(
        connection.execute(
            text("""
                SELECT count(*) FROM extraction.batch_items WHERE failure_kind = 'rejected'
            """)
        ).scalar_one()
    )


def records(connection: Connection) -> tuple[int, int]:
    """How many materializations say what the ledger does not, and how many it has rows for lack."""
    false = missing = 0
    said: dict[tuple[str, str, str], set[object]] = defaultdict(set)
    rows = connection.execute(
        text("""
            SELECT event FROM event_logs
            WHERE dagster_event_type = 'ASSET_MATERIALIZATION'
        """)
    ).scalars()
    for row in rows:
        one = deserialize_value(row, EventLogEntry).asset_materialization
        assert one is not None
        if len(one.asset_key.path) == 2:  # the nights have one
            collection, stage = one.asset_key.path
            named = one.metadata.get(CONTENT[stage])
            said[collection, stage, str(one.partition)].add(named.value if named else None)
    true: dict[tuple[str, str, str], set[object]] = defaultdict(set)
    for stage, statement in _LEDGER.items():
        for collection, partition, content in connection.execute(text(statement)):
            true[collection, stage, partition].add(content)
    for key, contents in said.items():
        false += len(contents - true[key])
    for key, contents in true.items():
        missing += len(contents - said[key])
    return false, missing


def counted(
    connection: Connection,
    statistics: Mapping[str, Any],
    written: Mapping[str, set[str]],
    version: str,
    harm: Harm,
) -> Counts:
    """All counts, of documents that were `written` into each collection."""
    asked = requests(connection, statistics)
    lost, without = lost_documents(connection, written, version)
    false, missing = records(connection)
    known, published = documents(connection, version)
    return Counts(
        kills=harm.kills,
        collections_harmed=harm.collections,
        faults=sum(statistics["faults_applied"].values()),
        provider_jobs=asked.jobs_created,
        requests_accepted=asked.accepted,
        requests_answered=sum(one["requests_completed"] for one in statistics["dialects"].values()),
        documents=known,
        extractions=asked.records,
        published_documents=published,
        asked_again=asked.asked_again,
        duplicates=asked.duplicates,
        lost=lost,
        failed=failed_requests(connection),
        without_end=without,
        false_materializations=false,
        missing_materializations=missing,
        seconds=harm.seconds,
        seed=harm.seed,
    )
