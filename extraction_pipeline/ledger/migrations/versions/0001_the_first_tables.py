"""The first tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "documents",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("document_hash", sa.Text(), nullable=False),
        sa.Column(
            "state",
            sa.Enum("readable", "unreadable", name="document_state", schema="extraction"),
            nullable=False,
        ),
        sa.Column("unreadable_reason", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=True),
        sa.Column("encoding", sa.Text(), nullable=True),
        sa.Column("pages", sa.Integer(), nullable=True),
        sa.Column("pages_without_text", sa.Integer(), nullable=True),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("byte_size", sa.BigInteger(), nullable=False),
        sa.Column("text_hash", sa.Text(), nullable=True),
        sa.Column("text_characters", sa.Integer(), nullable=True),
        sa.Column(
            "payload_bytes",
            sa.BigInteger(),
            nullable=True,
            comment="bytes of the text as a JSON string",
        ),
        sa.Column(
            "first_seen_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "(state = 'readable') = (text_hash IS NOT NULL AND payload_bytes IS NOT NULL)",
            name=op.f("documents_readable_has_text_check"),
        ),
        sa.CheckConstraint(
            "(state = 'unreadable') = (unreadable_reason IS NOT NULL)",
            name=op.f("documents_unreadable_has_reason_check"),
        ),
        sa.CheckConstraint(
            "document_hash ~ '^[0-9a-f]{64}$'", name=op.f("documents_document_hash_check")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("documents_pkey")),
        sa.UniqueConstraint(
            "collection", "document_hash", name=op.f("documents_collection_document_hash_key")
        ),
        schema="extraction",
    )
    op.create_index(
        "documents_unrecorded_idx",
        "documents",
        ["collection"],
        unique=False,
        schema="extraction",
        postgresql_where=sa.text("recorded_at IS NULL"),
    )
    op.create_table(
        "extraction_versions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("recipe", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("schema_version", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column(
            "first_used_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("extraction_versions_pkey")),
        sa.UniqueConstraint(
            "collection", "name", name=op.f("extraction_versions_collection_name_key")
        ),
        schema="extraction",
    )
    op.create_table(
        "batch_jobs",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("job_key", sa.Text(), nullable=False),
        sa.Column("version_id", sa.BigInteger(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("base_url", sa.Text(), nullable=False),
        sa.Column(
            "state",
            sa.Enum(
                "preparing",
                "prepared",
                "submitting",
                "unresolved",
                "held",
                "submitted",
                "ended",
                "collected",
                "published",
                "rejected",
                "failed",
                name="job_state",
                schema="extraction",
            ),
            nullable=False,
        ),
        sa.Column("request_count", sa.Integer(), nullable=False),
        sa.Column("payload_hash", sa.Text(), nullable=True),
        sa.Column("payload_bytes", sa.BigInteger(), nullable=True),
        sa.Column("input_id", sa.Text(), nullable=True),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("provider_state", sa.Text(), nullable=True),
        sa.Column("submit_attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("submit_http_status", sa.Integer(), nullable=True),
        sa.Column("submit_request_id", sa.Text(), nullable=True),
        sa.Column("provider_total", sa.Integer(), nullable=True),
        sa.Column("provider_completed", sa.Integer(), nullable=True),
        sa.Column("provider_failed", sa.Integer(), nullable=True),
        sa.Column("phase", sa.Text(), nullable=True, comment="how the provider ended the job"),
        sa.Column("failure_kind", sa.Text(), nullable=True),
        sa.Column("failure_code", sa.Text(), nullable=True),
        sa.Column("poll_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("trouble_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("run_attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("run_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("submit_started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("submitted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("submission_recorded_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "due_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("collected_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("results_recorded_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "(state IN ('submitted', 'ended', 'collected', 'published')) <= (job_id IS NOT NULL)",
            name=op.f("batch_jobs_job_id_known_check"),
        ),
        sa.CheckConstraint(
            "state = 'preparing' OR payload_hash IS NOT NULL OR state = 'rejected'",
            name=op.f("batch_jobs_payload_before_call_check"),
        ),
        sa.ForeignKeyConstraint(
            ["version_id"],
            ["extraction.extraction_versions.id"],
            name=op.f("batch_jobs_version_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("batch_jobs_pkey")),
        sa.UniqueConstraint("job_key", name=op.f("batch_jobs_job_key_key")),
        schema="extraction",
    )
    op.create_index(
        "batch_jobs_open_idx",
        "batch_jobs",
        ["due_at"],
        unique=False,
        schema="extraction",
        postgresql_where=sa.text(
            "state NOT IN ('published', 'rejected', 'failed') OR results_recorded_at IS NULL"
        ),
    )
    op.create_index(
        "batch_jobs_provider_job_id_idx",
        "batch_jobs",
        ["provider", "job_id"],
        unique=True,
        schema="extraction",
        postgresql_where=sa.text("job_id IS NOT NULL"),
    )
    op.create_table(
        "document_revisions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("document_id", sa.BigInteger(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("text_hash", sa.Text(), nullable=True),
        sa.Column(
            "seen_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["extraction.documents.id"],
            name=op.f("document_revisions_document_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("document_revisions_pkey")),
        sa.UniqueConstraint(
            "document_id",
            "content_hash",
            name=op.f("document_revisions_document_id_content_hash_key"),
        ),
        schema="extraction",
    )
    op.create_table(
        "document_sources",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("record_id", sa.Text(), server_default="", nullable=False),
        sa.Column("document_id", sa.BigInteger(), nullable=True),
        sa.Column("byte_size", sa.BigInteger(), nullable=True),
        sa.Column("change_token", sa.Text(), nullable=True),
        sa.Column(
            "problem",
            sa.Text(),
            nullable=True,
            comment="why the file could not be read; such a row has no document",
        ),
        sa.Column(
            "first_seen_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "last_seen_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("vanished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "(document_id IS NULL) = (problem IS NOT NULL)",
            name=op.f("document_sources_document_or_problem_check"),
        ),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["extraction.documents.id"],
            name=op.f("document_sources_document_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("document_sources_pkey")),
        schema="extraction",
    )
    op.create_index(
        "document_sources_current_idx",
        "document_sources",
        ["collection", "path", "record_id"],
        unique=True,
        schema="extraction",
        postgresql_where=sa.text("vanished_at IS NULL"),
    )
    op.create_index(
        "document_sources_document_id_idx",
        "document_sources",
        ["document_id"],
        unique=False,
        schema="extraction",
    )
    op.create_table(
        "audit_events",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("collection", sa.Text(), nullable=True),
        sa.Column("batch_job_id", sa.BigInteger(), nullable=True),
        sa.Column("document_id", sa.BigInteger(), nullable=True),
        sa.Column(
            "details", postgresql.JSONB(astext_type=sa.Text()), server_default="{}", nullable=False
        ),
        sa.ForeignKeyConstraint(
            ["batch_job_id"],
            ["extraction.batch_jobs.id"],
            name=op.f("audit_events_batch_job_id_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["document_id"], ["extraction.documents.id"], name=op.f("audit_events_document_id_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("audit_events_pkey")),
        schema="extraction",
    )
    op.create_index(
        "audit_events_batch_job_id_idx",
        "audit_events",
        ["batch_job_id"],
        unique=False,
        schema="extraction",
    )
    op.create_index(
        "audit_events_event_at_idx",
        "audit_events",
        ["event", "at"],
        unique=False,
        schema="extraction",
    )
    op.create_table(
        "batch_items",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("batch_job_id", sa.BigInteger(), nullable=True),
        sa.Column("document_id", sa.BigInteger(), nullable=False),
        sa.Column("version_id", sa.BigInteger(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column(
            "state",
            sa.Enum(
                "claimed",
                "answered",
                "published",
                "failed",
                "released",
                name="item_state",
                schema="extraction",
            ),
            nullable=False,
        ),
        sa.Column("document_key", sa.Text(), nullable=True),
        sa.Column("custom_id", sa.Text(), nullable=True),
        sa.Column("text_hash", sa.Text(), nullable=False),
        sa.Column("failure_kind", sa.Text(), nullable=True),
        sa.Column(
            "failure_reason",
            sa.Text(),
            nullable=True,
            comment="a short code, never the provider's sentence",
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "(state = 'failed') = (failure_kind IS NOT NULL)",
            name=op.f("batch_items_failed_has_kind_check"),
        ),
        sa.CheckConstraint(
            "state = 'failed' OR batch_job_id IS NOT NULL",
            name=op.f("batch_items_member_of_a_job_check"),
        ),
        sa.ForeignKeyConstraint(
            ["batch_job_id"],
            ["extraction.batch_jobs.id"],
            name=op.f("batch_items_batch_job_id_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["document_id"], ["extraction.documents.id"], name=op.f("batch_items_document_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["version_id"],
            ["extraction.extraction_versions.id"],
            name=op.f("batch_items_version_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("batch_items_pkey")),
        sa.UniqueConstraint(
            "batch_job_id", "custom_id", name=op.f("batch_items_batch_job_id_custom_id_key")
        ),
        sa.UniqueConstraint(
            "document_id",
            "version_id",
            "attempt",
            name=op.f("batch_items_document_id_version_id_attempt_key"),
        ),
        schema="extraction",
    )
    op.create_index(
        "batch_items_job_state_idx",
        "batch_items",
        ["batch_job_id", "state"],
        unique=False,
        schema="extraction",
    )
    op.create_index(
        "batch_items_one_open_idx",
        "batch_items",
        ["document_id", "version_id"],
        unique=True,
        schema="extraction",
        postgresql_where=sa.text("state IN ('claimed', 'answered', 'published')"),
    )
    op.create_table(
        "result_files",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("batch_job_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("reference", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("byte_size", sa.BigInteger(), nullable=False),
        sa.Column(
            "fetched_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["batch_job_id"],
            ["extraction.batch_jobs.id"],
            name=op.f("result_files_batch_job_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("result_files_pkey")),
        sa.UniqueConstraint(
            "batch_job_id", "kind", name=op.f("result_files_batch_job_id_kind_key")
        ),
        schema="extraction",
    )
    op.create_table(
        "raw_responses",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("item_id", sa.BigInteger(), nullable=False),
        sa.Column("result_file_id", sa.BigInteger(), nullable=False),
        sa.Column("byte_offset", sa.BigInteger(), nullable=False),
        sa.Column("byte_length", sa.Integer(), nullable=False),
        sa.Column("body_hash", sa.Text(), nullable=False),
        sa.Column("schema_version", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("request_id", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("output_tokens", sa.BigInteger(), nullable=True),
        sa.Column(
            "received_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["item_id"], ["extraction.batch_items.id"], name=op.f("raw_responses_item_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["result_file_id"],
            ["extraction.result_files.id"],
            name=op.f("raw_responses_result_file_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("raw_responses_pkey")),
        sa.UniqueConstraint("item_id", name=op.f("raw_responses_item_id_key")),
        schema="extraction",
    )
    op.create_table(
        "extractions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("document_id", sa.BigInteger(), nullable=False),
        sa.Column("version_id", sa.BigInteger(), nullable=False),
        sa.Column("raw_response_id", sa.BigInteger(), nullable=False),
        sa.Column("schema_version", sa.Text(), nullable=False),
        sa.Column("text_hash", sa.Text(), nullable=False),
        sa.Column("body", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("body_hash", sa.Text(), nullable=False),
        sa.Column("evidence_found", sa.Integer(), nullable=False),
        sa.Column("evidence_total", sa.Integer(), nullable=False),
        sa.Column("published_by", sa.Text(), nullable=True, comment="the run that wrote it"),
        sa.Column(
            "published_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["document_id"], ["extraction.documents.id"], name=op.f("extractions_document_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["raw_response_id"],
            ["extraction.raw_responses.id"],
            name=op.f("extractions_raw_response_id_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["version_id"],
            ["extraction.extraction_versions.id"],
            name=op.f("extractions_version_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("extractions_pkey")),
        sa.UniqueConstraint(
            "document_id", "version_id", name=op.f("extractions_document_id_version_id_key")
        ),
        schema="extraction",
    )
    op.create_index(
        "extractions_raw_response_id_idx",
        "extractions",
        ["raw_response_id"],
        unique=False,
        schema="extraction",
    )
    op.create_index(
        "extractions_version_id_published_at_idx",
        "extractions",
        ["version_id", "published_at"],
        unique=False,
        schema="extraction",
    )


def downgrade() -> None:
    """There is nothing before this: drop the schema by hand if it must go."""
