"""The size of each stored text, and when each collection was last scanned to the end."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Apply."""
    op.add_column(
        "documents", sa.Column("text_bytes", sa.BigInteger(), nullable=True), schema="extraction"
    )
    op.create_table(
        "source_scans",
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("collection", name=op.f("source_scans_pkey")),
        schema="extraction",
    )


def downgrade() -> None:
    """The last scans would be forgotten: drop both by hand if they must go."""
