"""What the database last refused of Dagster's own statements, without their contents.

Dagster makes a failed run of such an error, or loses it with the event that would have told of it.
Whoever executes runs asks here why.
"""

from sqlalchemy.engine import ExceptionContext

from extraction_pipeline.errors import LedgerError
from extraction_pipeline.ledger.lost_database import lost_database

_EXPECTED = "23"
"""Beginning of the codes of constraints: from them Dagster sees that a row is there already."""


class Refusals:
    """The last error of this process, until it is forgotten."""

    def __init__(self) -> None:
        self.last: LedgerError | None = None

    def forget(self) -> None:
        """What comes from here on is news."""
        self.last = None

    def note(self, context: ExceptionContext) -> None:
        """Keep the cause of an error, and take the server's sentence from it: that can hold a
        record's values."""
        original, raised = context.original_exception, context.sqlalchemy_exception
        code = getattr(original, "pgcode", None)
        if raised is None or not isinstance(original, Exception):
            return
        told = f"({type(original).__name__}) code {code}"
        original.args = raised.args = (told,)
        if context.is_pre_ping or (code or "").startswith(_EXPECTED):
            return
        self.last = lost_database(raised) or LedgerError(
            f"The database refused a statement of Dagster's ({type(original).__name__}, code "
            f"{code or 'none'}).",
            remedy="The server's log says why; what was under way is repeated safely.",
        )


refusals = Refusals()
"""Those of this process."""
