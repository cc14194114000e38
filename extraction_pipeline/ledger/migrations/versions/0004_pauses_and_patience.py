"""Pauses of accounts, a count for each kind of trouble, and answers that come too late.

A job that is in trouble keeps its count as that of a provider that could not be reached, which
decides nothing: its other patiences begin again.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "account_pauses",
        sa.Column("account", sa.Text(), nullable=False, comment="a hash; the key is not kept"),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("base_url", sa.Text(), nullable=False),
        sa.Column("refusals", sa.Integer(), nullable=False, comment="pauses in a row"),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("account", name=op.f("account_pauses_pkey")),
        schema="extraction",
    )
    for column in (
        sa.Column(
            "account", sa.Text(), nullable=True, comment="a hash; that of the last create call"
        ),
        sa.Column(
            "troubles", JSONB(), server_default="{}", nullable=False, comment="counts by kind"
        ),
        sa.Column("failing_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("moved_at", sa.DateTime(timezone=True), nullable=True),
    ):
        op.add_column("batch_jobs", column, schema="extraction")
    op.execute("ALTER TYPE extraction.item_state ADD VALUE 'superseded'")
    op.execute("""
        UPDATE extraction.batch_jobs
        SET failing_since = CASE WHEN trouble_count > 0 THEN now() END,
            troubles = CASE WHEN trouble_count > 0
                            THEN jsonb_build_object('unreachable', trouble_count)
                            ELSE '{}' END,
            moved_at = coalesce(ended_at, submitted_at),
            provider_state = nullif(provider_state, 'not_found')
        WHERE state NOT IN ('published', 'rejected', 'failed')
    """)


def downgrade() -> None:
    """Decisions were made by these counts: drop the columns by hand if they must go."""
