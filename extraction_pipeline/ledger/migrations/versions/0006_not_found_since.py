"""Since when a provider says that it does not know a job, so that a person sees how sure it is."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Apply."""
    op.add_column(
        "batch_jobs",
        sa.Column("not_found_since", sa.DateTime(timezone=True), nullable=True),
        schema="extraction",
    )


def downgrade() -> None:
    """A person decided by it: drop the column by hand if it must go."""
