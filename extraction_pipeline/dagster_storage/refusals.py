"""What the database last refused of Dagster's own statements, without their contents.

Dagster makes a failed run of such an error, or loses it with the event that would have told of it.
Whoever executes runs asks here why.
"""

from collections.abc import Iterable

from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError

from extraction_pipeline.errors import LedgerError
from extraction_pipeline.ledger.lost_database import lost_database

_EXPECTED = "23"
"""Beginning of the codes of constraints: from them Dagster sees that a row is there already."""


class Refusals:
    """The errors of this process, of each kind the last, until they are forgotten."""

    def __init__(self) -> None:
        self.last: LedgerError | None = None
        self._told: dict[str, LedgerError] = {}

    def forget(self) -> None:
        """What comes from here on is news."""
        self.last = None
        self._told = {}

    def behind(self, messages: Iterable[str]) -> LedgerError | None:
        """The refusal that one of these messages tells of: those of an exception and of what led to
        it, the last first. `None` where it has nothing to do with any."""
        for message in messages:
            for told, refusal in tuple(self._told.items()):
                if told in message:
                    return refusal
        return None

    def note(self, context: ExceptionContext) -> None:
        """Keep the cause of an error that SQLAlchemy has met, unless it is one to be expected."""
        raised = context.sqlalchemy_exception
        if isinstance(raised, DBAPIError):
            self.keep(raised, expected=context.is_pre_ping)

    def keep(self, raised: DBAPIError, *, expected: bool = False) -> None:
        """Keep the cause of an error, unless it was `expected`, and take the server's sentence from
        it: that can hold a record's values."""
        original = raised.orig
        code = getattr(original, "pgcode", None)
        told = f"({type(original).__name__}) code {code}"
        raised.args = (told,)
        if original is not None:
            original.args = raised.args
        if expected or (code or "").startswith(_EXPECTED):
            return
        self.last = self._told[told] = lost_database(raised) or LedgerError(
            f"The database refused a statement of Dagster's ({type(original).__name__}, code "
            f"{code or 'none'}).",
            remedy="The server's log says why; what was under way is repeated safely.",
        )


refusals = Refusals()
"""Those of this process."""
