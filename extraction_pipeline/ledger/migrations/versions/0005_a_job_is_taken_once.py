"""A job whose id at the provider is known is never sent again.

One that was about to be is held: it is asked for by its id when a person has it searched for.
"""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Apply."""
    op.execute("""
        UPDATE extraction.batch_jobs SET state = 'held'
        WHERE state IN ('prepared', 'submitting') AND job_id IS NOT NULL
    """)
    op.create_check_constraint(
        op.f("batch_jobs_taken_is_never_sent_again_check"),
        "batch_jobs",
        "state NOT IN ('preparing', 'prepared', 'submitting') OR job_id IS NULL",
        schema="extraction",
    )


def downgrade() -> None:
    """Without it a job may be paid for twice: drop the constraint by hand if it must go."""
