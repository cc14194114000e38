"""Costs of requests, and estimates of jobs.

Answers that are there get their row with their tokens and without a price: the ledger does not
know prices, and the next submission with a price list fills them in. Requests that no model was
asked for, and that say nothing of tokens, used none.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "request_costs",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("item_id", sa.BigInteger(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("output_tokens", sa.BigInteger(), nullable=True),
        sa.Column("input_price", sa.Numeric(), nullable=True),
        sa.Column("output_price", sa.Numeric(), nullable=True),
        sa.Column("amount", sa.Numeric(), nullable=True),
        sa.Column("currency", sa.Text(), nullable=True),
        sa.Column(
            "at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.CheckConstraint(
            "(amount IS NULL) = (currency IS NULL) AND (amount IS NULL) = (input_price IS NULL) "
            "AND (amount IS NULL) = (output_price IS NULL)",
            name=op.f("request_costs_priced_whole_check"),
        ),
        sa.CheckConstraint(
            "amount IS NULL OR (input_tokens IS NOT NULL AND output_tokens IS NOT NULL)",
            name=op.f("request_costs_priced_has_tokens_check"),
        ),
        sa.ForeignKeyConstraint(
            ["item_id"],
            ["extraction.batch_items.id"],
            name=op.f("request_costs_item_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("request_costs_pkey")),
        sa.UniqueConstraint("item_id", name=op.f("request_costs_item_id_key")),
        schema="extraction",
    )
    for column in (
        sa.Column("estimated_input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("estimated_output_tokens", sa.BigInteger(), nullable=True),
        sa.Column("estimated_amount", sa.Numeric(), nullable=True),
        sa.Column("estimated_currency", sa.Text(), nullable=True),
    ):
        op.add_column("batch_jobs", column, schema="extraction")
    op.create_check_constraint(
        op.f("batch_jobs_estimate_has_currency_check"),
        "batch_jobs",
        "(estimated_amount IS NULL) = (estimated_currency IS NULL)",
        schema="extraction",
    )
    op.execute("""
        INSERT INTO extraction.request_costs (item_id, input_tokens, output_tokens, at)
        SELECT item_id,
               coalesce(input_tokens, CASE WHEN unasked THEN 0 END),
               coalesce(output_tokens, CASE WHEN unasked THEN 0 END), received_at
        FROM (SELECT *, outcome IN ('errored', 'rejected', 'account', 'expired', 'cancelled')
                        AS unasked
              FROM extraction.raw_responses) r
    """)
    op.execute("""
        UPDATE extraction.batch_jobs j
        SET estimated_input_tokens = (j.payload_bytes + 1) / 2,
            estimated_output_tokens =
                j.request_count * CAST(v.recipe ->> 'max_output_tokens' AS bigint)
        FROM extraction.extraction_versions v
        WHERE v.id = j.version_id AND j.payload_bytes IS NOT NULL
    """)


def downgrade() -> None:
    """Costs that are known must not be forgotten: drop the table by hand if it must go."""
