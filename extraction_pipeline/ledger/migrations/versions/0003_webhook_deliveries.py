"""Deliveries of webhooks, each once by its sender's id."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column(
            "delivery_id",
            sa.Text(),
            nullable=False,
            comment="the sender's, the same at each try",
        ),
        sa.Column(
            "event", sa.Text(), nullable=True, comment="the kind of event, in the sender's word"
        ),
        sa.Column(
            "job_id",
            sa.Text(),
            nullable=True,
            comment="the provider's id of the job that it is about",
        ),
        sa.Column(
            "outcome",
            sa.Enum(
                "unknown_job",
                "made_due",
                "settled",
                "ignored",
                "unreadable",
                name="delivery_outcome",
                schema="extraction",
            ),
            nullable=False,
        ),
        sa.Column("batch_job_id", sa.BigInteger(), nullable=True),
        sa.Column("times_received", sa.Integer(), server_default="1", nullable=False),
        sa.Column(
            "received_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("processed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "(outcome = 'unknown_job') = (processed_at IS NULL)",
            name=op.f("webhook_deliveries_processed_or_unknown_check"),
        ),
        sa.CheckConstraint(
            "(outcome IN ('made_due', 'settled')) = (batch_job_id IS NOT NULL)",
            name=op.f("webhook_deliveries_names_its_job_check"),
        ),
        sa.CheckConstraint(
            "outcome <> 'unknown_job' OR job_id IS NOT NULL",
            name=op.f("webhook_deliveries_unknown_has_id_check"),
        ),
        sa.ForeignKeyConstraint(
            ["batch_job_id"],
            ["extraction.batch_jobs.id"],
            name=op.f("webhook_deliveries_batch_job_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("webhook_deliveries_pkey")),
        sa.UniqueConstraint(
            "provider", "delivery_id", name=op.f("webhook_deliveries_provider_delivery_id_key")
        ),
        schema="extraction",
    )
    op.create_index(
        "webhook_deliveries_unknown_idx",
        "webhook_deliveries",
        ["provider", "job_id"],
        unique=False,
        schema="extraction",
        postgresql_where=sa.text("processed_at IS NULL"),
    )
    op.create_index(
        "webhook_deliveries_received_at_idx",
        "webhook_deliveries",
        ["received_at"],
        unique=False,
        schema="extraction",
    )
    op.create_index(
        "webhook_deliveries_batch_job_id_idx",
        "webhook_deliveries",
        ["batch_job_id"],
        unique=False,
        schema="extraction",
    )


def downgrade() -> None:
    """Deliveries say why a job was read early: drop the table by hand if it must go."""
