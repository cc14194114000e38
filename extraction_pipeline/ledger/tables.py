"""The tables of the ledger, in their own schema. Constraints here keep promise 1 of the design."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Numeric,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from extraction_pipeline.ledger.columns import (
    SCHEMA,
    SHA256,
    enum_type,
    id_column,
    metadata,
    time_column,
)
from extraction_pipeline.ledger.states import (
    OPEN_ITEM_STATES,
    DeliveryOutcome,
    DocumentState,
    ItemState,
    JobState,
)

documents = Table(
    "documents",
    metadata,
    id_column(),
    Column("collection", Text, nullable=False),
    Column("document_hash", Text, nullable=False),
    Column("state", enum_type(DocumentState, "document_state"), nullable=False),
    Column("unreadable_reason", Text),
    Column("kind", Text),
    Column("encoding", Text),
    Column("pages", Integer),
    Column("pages_without_text", Integer),
    Column("content_hash", Text, nullable=False),
    Column("byte_size", BigInteger, nullable=False),
    Column("text_hash", Text),
    Column("text_bytes", BigInteger),
    Column("text_characters", Integer),
    Column("payload_bytes", BigInteger, comment="bytes of the text as a JSON string"),
    time_column("first_seen_at", now=True),
    time_column("updated_at", now=True),
    time_column("recorded_at"),
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
    id_column(),
    Column("collection", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("record_id", Text, nullable=False, server_default=""),
    Column("document_id", BigInteger, ForeignKey("extraction.documents.id")),
    Column("byte_size", BigInteger),
    Column("change_token", Text),
    Column("problem", Text, comment="why the file could not be read; such a row has no document"),
    time_column("first_seen_at", now=True),
    time_column("last_seen_at", now=True),
    time_column("vanished_at"),
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

source_scans = Table(
    "source_scans",
    metadata,
    Column("collection", Text, primary_key=True),
    time_column("at", nullable=False),
)

document_revisions = Table(
    "document_revisions",
    metadata,
    id_column(),
    Column("document_id", BigInteger, ForeignKey("extraction.documents.id"), nullable=False),
    Column("content_hash", Text, nullable=False),
    Column("text_hash", Text),
    time_column("seen_at", now=True),
    UniqueConstraint("document_id", "content_hash"),
)

extraction_versions = Table(
    "extraction_versions",
    metadata,
    id_column(),
    Column("collection", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("recipe", JSONB, nullable=False),
    Column("schema_version", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("model", Text, nullable=False),
    time_column("first_used_at", now=True),
    UniqueConstraint("collection", "name"),
)

batch_jobs = Table(
    "batch_jobs",
    metadata,
    id_column(),
    Column("job_key", Text, nullable=False, unique=True),
    Column(
        "version_id", BigInteger, ForeignKey("extraction.extraction_versions.id"), nullable=False
    ),
    Column("provider", Text, nullable=False),
    Column("base_url", Text, nullable=False),
    Column("account", Text, comment="a hash; that of the last create call"),
    Column("state", enum_type(JobState, "job_state"), nullable=False),
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
    time_column("failing_since"),
    time_column("not_found_since"),
    time_column("moved_at"),
    Column("run_attempt", Integer, nullable=False, server_default="0"),
    time_column("run_requested_at"),
    time_column("created_at", now=True),
    time_column("submit_started_at"),
    time_column("submitted_at"),
    time_column("submission_recorded_at"),
    time_column("due_at", now=True),
    time_column("ended_at"),
    time_column("collected_at"),
    time_column("published_at"),
    time_column("results_recorded_at"),
    time_column("updated_at", now=True),
    CheckConstraint(
        "(state IN ('submitted', 'ended', 'collected', 'published')) <= (job_id IS NOT NULL)",
        name="job_id_known",
    ),
    CheckConstraint(
        "state NOT IN ('preparing', 'prepared', 'submitting') OR job_id IS NULL",
        name="taken_is_never_sent_again",
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
    time_column("since", nullable=False),
    time_column("until", nullable=False),
)

batch_items = Table(
    "batch_items",
    metadata,
    id_column(),
    Column("batch_job_id", BigInteger, ForeignKey("extraction.batch_jobs.id")),
    Column("document_id", BigInteger, ForeignKey("extraction.documents.id"), nullable=False),
    Column(
        "version_id", BigInteger, ForeignKey("extraction.extraction_versions.id"), nullable=False
    ),
    Column("attempt", Integer, nullable=False),
    Column("state", enum_type(ItemState, "item_state"), nullable=False),
    Column("document_key", Text),
    Column("custom_id", Text),
    Column("text_hash", Text, nullable=False),
    Column("failure_kind", Text),
    Column("failure_reason", Text, comment="a short code, never the provider's sentence"),
    time_column("updated_at", now=True),
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
    id_column(),
    Column("batch_job_id", BigInteger, ForeignKey("extraction.batch_jobs.id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("reference", Text, nullable=False),
    Column("content_hash", Text, nullable=False),
    Column("byte_size", BigInteger, nullable=False),
    time_column("fetched_at", now=True),
    UniqueConstraint("batch_job_id", "kind"),
)

raw_responses = Table(
    "raw_responses",
    metadata,
    id_column(),
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
    time_column("received_at", now=True),
)

request_costs = Table(
    "request_costs",
    metadata,
    id_column(),
    Column(
        "item_id", BigInteger, ForeignKey("extraction.batch_items.id"), nullable=False, unique=True
    ),
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("input_price", Numeric),
    Column("output_price", Numeric),
    Column("amount", Numeric),
    Column("currency", Text),
    time_column("at", now=True),
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
    id_column(),
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
    time_column("published_at", now=True),
    UniqueConstraint("document_id", "version_id"),
)
Index("extractions_raw_response_id_idx", extractions.c.raw_response_id)
Index(
    "extractions_version_id_published_at_idx", extractions.c.version_id, extractions.c.published_at
)

audit_events = Table(
    "audit_events",
    metadata,
    id_column(),
    time_column("at", now=True),
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
    id_column(),
    Column("provider", Text, nullable=False),
    Column("delivery_id", Text, nullable=False, comment="the sender's, the same at each try"),
    Column("event", Text, comment="the kind of event, in the sender's word"),
    Column("job_id", Text, comment="the provider's id of the job that it is about"),
    Column("outcome", enum_type(DeliveryOutcome, "delivery_outcome"), nullable=False),
    Column("batch_job_id", BigInteger, ForeignKey("extraction.batch_jobs.id")),
    Column("times_received", Integer, nullable=False, server_default="1"),
    time_column("received_at", now=True),
    time_column("processed_at"),
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
    "SCHEMA",
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
    "source_scans",
    "webhook_deliveries",
]
