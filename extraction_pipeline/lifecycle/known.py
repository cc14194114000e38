"""Documents that a person names by their hashes must all be of the collection."""

import re
from collections.abc import Sequence

from extraction_pipeline.errors import ConfigurationError, LedgerError

NAMED_AT_MOST = 3
_HASH = re.compile(r"[0-9a-f]{64}")


def require_named(hashes: Sequence[str], done: str) -> None:
    """Raise `ConfigurationError` if the list is empty: that of a script that found nothing must not
    stand for all documents."""
    if not hashes:
        raise ConfigurationError(
            f"document_hashes names no document, so none was {done}.",
            remedy="Give partition keys in it.",
        )


def require_known(collection: str, unknown: Sequence[str], done: str) -> None:
    """Raise `LedgerError` if there are any such: nothing of the list is `done` then.

    Only what has the form of a hash is named: the rest was typed, and could be anything.
    """
    if not unknown:
        return
    named = [one for one in unknown if _HASH.fullmatch(one)][:NAMED_AT_MOST]
    which = f" ({', '.join(named)}{', …' if len(named) < len(unknown) else ''})" if named else ""
    count = "1 is" if len(unknown) == 1 else f"{len(unknown):,} are"
    raise LedgerError(
        f"Of these documents {count} not in {collection}{which}; none was {done}.",
        remedy="Give partition keys as Dagster shows them for the collection's documents: 64 "
        "hexadecimal digits each, without the version.",
    )
