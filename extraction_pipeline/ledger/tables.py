"""The tables of the ledger, in their own schema. Constraints here keep promise 1 of the design."""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Enum,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    Numeric,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from extraction_pipeline.ledger.states import (
    OPEN_ITEM_STATES,
    DeliveryOutcome,
    DocumentState,
    ItemState,
    JobState,
)

SCHEMA = "extraction"

metadata = MetaData(
    schema=SCHEMA,
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    },
)

SHA256 = r"'^[0-9a-f]{64}$'"


def _enum(kind: type[StrEnum], name: str) -> Enum:
    return Enum(
        kind,
        name=name,
        schema=SCHEMA,
        values_callable=lambda members: [member.value for member in members],
        metadata=metadata,
    )


def _id() -> Column[int]:
    return Column("id", BigInteger, Identity(always=True), primary_key=True)


def _time(name: str, *, nullable: bool = True, now: bool = False) -> Column[datetime]:
    return Column(
        name,
        DateTime(timezone=True),
        nullable=nullable and not now,
        server_default=func.now() if now else None,
    )


documents = Table(
    "documents",
    metadata,
    _id(),
    Column("collection", Text, nullable=False),
    Column("document_hash", Text, nullable=False),
    Column("state", _enum(DocumentState, "document_state"), nullable=False),
    Column("unreadable_reason", Text),
    Column("kind", Text),
    Column("encoding", Text),
    Column("pages", Integer),
    Column("pages_without_text", Integer),
    Column("content_hash", Text, nullable=False),
    Column("byte_size", BigInteger, nullable=False),
    Column("text_hash", Text),
    Column("text_characters", Integer),
    Column("payload_bytes", BigInteger, comment="bytes of the text as a JSON string"),
    _time("first_seen_at", now=True),
    _time("updated_at", now=True),
    _time("recorded_at"),
    UniqueConstraint("collection", "document_hash"),
    CheckConstraint(f"document_hash ~ {SHA256}", name="document_hash"),
    CheckConstraint(
        "(state = 'readable') = (text_hash IS NOT NULL AND payload_bytes IS NOT NULL)",
        name="readable_has_text",
    ),
    CheckConstraint(
        "(state = 'unreadable') = (unreadable_reason IS NOT NULL)", name="unreadable_has_reason"
    ),
)
Index(
    "documents_unrecorded_idx",
    documents.c.collection,
    postgresql_where=text("recorded_at IS NULL"),
)

document_sources = Table(
    "document_sources",
    metadata,
    _id(),
    Column("collection", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("record_id", Text, nullable=False, server_default=""),
    Column("document_id", BigInteger, ForeignKey("extraction.documents.id")),
    Column("byte_size", BigInteger),
    Column("change_token", Text),
    Column("problem", Text, comment="why the file could not be read; such a row has no document"),
    _time("first_seen_at", now=True),
    _time("last_seen_at", now=True),
    _time("vanished_at"),
    CheckConstraint("(document_id IS NULL) = (problem IS NOT NULL)", name="document_or_problem"),
)
Index(
    "document_sources_current_idx",
    document_sources.c.collection,
    document_sources.c.path,
    document_sources.c.record_id,
    unique=True,
    postgresql_where=text("vanished_at IS NULL"),
)
Index("document_sources_document_id_idx", document_sources.c.document_id)

document_revisions = Table(
    "document_revisions",
    metadata,
    _id(),
    Column("document_id", BigInteger, ForeignKey("extraction.documents.id"), nullable=False),
    Column("content_hash", Text, nullable=False),
    Column("text_hash", Text),
    _time("seen_at", now=True),
    UniqueConstraint("document_id", "content_hash"),
)

extraction_versions = Table(
    "extraction_versions",
    metadata,
    _id(),
    Column("collection", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("recipe", JSONB, nullable=False),
    Column("schema_version", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("model", Text, nullable=False),
    _time("first_used_at", now=True),
    UniqueConstraint("collection", "name"),
)

batch_jobs = Table(
    "batch_jobs",
    metadata,
    _id(),
    Column("job_key", Text, nullable=False, unique=True),
    Column(
        "version_id", BigInteger, ForeignKey("extraction.extraction_versions.id"), nullable=False
    ),
    Column("provider", Text, nullable=False),
    Column("base_url", Text, nullable=False),
    Column("account", Text, comment="a hash; that of the last create call"),
    Column("state", _enum(JobState, "job_state"), nullable=False),
    Column("request_count", Integer, nullable=False),
    Column("payload_hash", Text),
    Column("payload_bytes", BigInteger),
    Column("input_id", Text),
    Column("job_id", Text),
    Column("provider_state", Text),
    Column("submit_attempt", Integer, nullable=False, server_default="0"),
    Column("submit_http_status", Integer),
    Column("submit_request_id", Text),
    Column("provider_total", Integer),
    Column("provider_completed", Integer),
    Column("provider_failed", Integer),
    Column("estimated_input_tokens", BigInteger),
    Column("estimated_output_tokens", BigInteger),
    Column("estimated_amount", Numeric),
    Column("estimated_currency", Text),
    Column("phase", Text, comment="how the provider ended the job"),
    Column("failure_kind", Text),
    Column("failure_code", Text),
    Column("poll_count", Integer, nullable=False, server_default="0"),
    Column("trouble_count", Integer, nullable=False, server_default="0"),
    Column("troubles", JSONB, nullable=False, server_default="{}", comment="counts by kind"),
    _time("failing_since"),
    _time("moved_at"),
    Column("run_attempt", Integer, nullable=False, server_default="0"),
    _time("run_requested_at"),
    _time("created_at", now=True),
    _time("submit_started_at"),
    _time("submitted_at"),
    _time("submission_recorded_at"),
    _time("due_at", now=True),
    _time("ended_at"),
    _time("collected_at"),
    _time("published_at"),
    _time("results_recorded_at"),
    _time("updated_at", now=True),
    CheckConstraint(
        "(state IN ('submitted', 'ended', 'collected', 'published')) <= (job_id IS NOT NULL)",
        name="job_id_known",
    ),
    CheckConstraint(
        "state = 'preparing' OR payload_hash IS NOT NULL OR state = 'rejected'",
        name="payload_before_call",
    ),
    CheckConstraint(
        "(estimated_amount IS NULL) = (estimated_currency IS NULL)", name="estimate_has_currency"
    ),
)
Index(
    "batch_jobs_provider_job_id_idx",
    batch_jobs.c.provider,
    batch_jobs.c.job_id,
    unique=True,
    postgresql_where=text("job_id IS NOT NULL"),
)
Index(
    "batch_jobs_open_idx",
    batch_jobs.c.due_at,
    postgresql_where=text(
        "state NOT IN ('published', 'rejected', 'failed') OR results_recorded_at IS NULL"
    ),
)

account_pauses = Table(
    "account_pauses",
    metadata,
    Column("account", Text, primary_key=True, comment="a hash; the key is not kept"),
    Column("provider", Text, nullable=False),
    Column("base_url", Text, nullable=False),
    Column("refusals", Integer, nullable=False, comment="pauses in a row"),
    Column("http_status", Integer),
    _time("since", nullable=False),
    _time("until", nullable=False),
)

batch_items = Table(
    "batch_items",
    metadata,
    _id(),
    Column("batch_job_id", BigInteger, ForeignKey("extraction.batch_jobs.id")),
    Column("document_id", BigInteger, ForeignKey("extraction.documents.id"), nullable=False),
    Column(
        "version_id", BigInteger, ForeignKey("extraction.extraction_versions.id"), nullable=False
    ),
    Column("attempt", Integer, nullable=False),
    Column("state", _enum(ItemState, "item_state"), nullable=False),
    Column("document_key", Text),
    Column("custom_id", Text),
    Column("text_hash", Text, nullable=False),
    Column("failure_kind", Text),
    Column("failure_reason", Text, comment="a short code, never the provider's sentence"),
    _time("updated_at", now=True),
    UniqueConstraint("batch_job_id", "custom_id"),
    UniqueConstraint("document_id", "version_id", "attempt"),
    CheckConstraint("(state = 'failed') = (failure_kind IS NOT NULL)", name="failed_has_kind"),
    CheckConstraint("state = 'failed' OR batch_job_id IS NOT NULL", name="member_of_a_job"),
)
Index(
    "batch_items_one_open_idx",
    batch_items.c.document_id,
    batch_items.c.version_id,
    unique=True,
    postgresql_where=text(
        f"state IN ({', '.join(repr(state.value) for state in OPEN_ITEM_STATES)})"
    ),
)
Index("batch_items_job_state_idx", batch_items.c.batch_job_id, batch_items.c.state)

result_files = Table(
    "result_files",
    metadata,
    _id(),
    Column("batch_job_id", BigInteger, ForeignKey("extraction.batch_jobs.id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("reference", Text, nullable=False),
    Column("content_hash", Text, nullable=False),
    Column("byte_size", BigInteger, nullable=False),
    _time("fetched_at", now=True),
    UniqueConstraint("batch_job_id", "kind"),
)

raw_responses = Table(
    "raw_responses",
    metadata,
    _id(),
    Column(
        "item_id", BigInteger, ForeignKey("extraction.batch_items.id"), nullable=False, unique=True
    ),
    Column("result_file_id", BigInteger, ForeignKey("extraction.result_files.id"), nullable=False),
    Column("byte_offset", BigInteger, nullable=False),
    Column("byte_length", Integer, nullable=False),
    Column("body_hash", Text, nullable=False),
    Column("schema_version", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("http_status", Integer),
    Column("request_id", Text),
    Column("model", Text),
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    _time("received_at", now=True),
)

request_costs = Table(
    "request_costs",
    metadata,
    _id(),
    Column(
        "item_id", BigInteger, ForeignKey("extraction.batch_items.id"), nullable=False, unique=True
    ),
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("input_price", Numeric),
    Column("output_price", Numeric),
    Column("amount", Numeric),
    Column("currency", Text),
    _time("at", now=True),
    CheckConstraint(
        "(amount IS NULL) = (currency IS NULL) AND (amount IS NULL) = (input_price IS NULL) "
        "AND (amount IS NULL) = (output_price IS NULL)",
        name="priced_whole",
    ),
    CheckConstraint(
        "amount IS NULL OR (input_tokens IS NOT NULL AND output_tokens IS NOT NULL)",
        name="priced_has_tokens",
    ),
)

extractions = Table(
    "extractions",
    metadata,
    _id(),
    Column("document_id", BigInteger, ForeignKey("extraction.documents.id"), nullable=False),
    Column(
        "version_id", BigInteger, ForeignKey("extraction.extraction_versions.id"), nullable=False
    ),
    Column(
        "raw_response_id", BigInteger, ForeignKey("extraction.raw_responses.id"), nullable=False
    ),
    Column("schema_version", Text, nullable=False),
    Column("text_hash", Text, nullable=False),
    Column("body", JSONB, nullable=False),
    Column("body_hash", Text, nullable=False),
    Column("evidence_found", Integer, nullable=False),
    Column("evidence_total", Integer, nullable=False),
    Column("published_by", Text, comment="the run that wrote it"),
    _time("published_at", now=True),
    UniqueConstraint("document_id", "version_id"),
)
Index("extractions_raw_response_id_idx", extractions.c.raw_response_id)
Index(
    "extractions_version_id_published_at_idx", extractions.c.version_id, extractions.c.published_at
)

audit_events = Table(
    "audit_events",
    metadata,
    _id(),
    _time("at", now=True),
    Column("event", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("collection", Text),
    Column("batch_job_id", BigInteger, ForeignKey("extraction.batch_jobs.id")),
    Column("document_id", BigInteger, ForeignKey("extraction.documents.id")),
    Column("details", JSONB, nullable=False, server_default="{}"),
)
Index("audit_events_batch_job_id_idx", audit_events.c.batch_job_id)
Index("audit_events_event_at_idx", audit_events.c.event, audit_events.c.at)

webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    _id(),
    Column("provider", Text, nullable=False),
    Column("delivery_id", Text, nullable=False, comment="the sender's, the same at each try"),
    Column("event", Text, comment="the kind of event, in the sender's word"),
    Column("job_id", Text, comment="the provider's id of the job that it is about"),
    Column("outcome", _enum(DeliveryOutcome, "delivery_outcome"), nullable=False),
    Column("batch_job_id", BigInteger, ForeignKey("extraction.batch_jobs.id")),
    Column("times_received", Integer, nullable=False, server_default="1"),
    _time("received_at", now=True),
    _time("processed_at"),
    UniqueConstraint("provider", "delivery_id"),
    CheckConstraint(
        "(outcome = 'unknown_job') = (processed_at IS NULL)", name="processed_or_unknown"
    ),
    CheckConstraint(
        "(outcome IN ('made_due', 'settled')) = (batch_job_id IS NOT NULL)", name="names_its_job"
    ),
    CheckConstraint("outcome <> 'unknown_job' OR job_id IS NOT NULL", name="unknown_has_id"),
)
Index(
    "webhook_deliveries_unknown_idx",
    webhook_deliveries.c.provider,
    webhook_deliveries.c.job_id,
    postgresql_where=text("processed_at IS NULL"),
)
Index("webhook_deliveries_received_at_idx", webhook_deliveries.c.received_at)
Index("webhook_deliveries_batch_job_id_idx", webhook_deliveries.c.batch_job_id)

__all__ = [
    "account_pauses",
    "audit_events",
    "batch_items",
    "batch_jobs",
    "document_revisions",
    "document_sources",
    "documents",
    "extraction_versions",
    "extractions",
    "metadata",
    "raw_responses",
    "request_costs",
    "result_files",
    "webhook_deliveries",
]
