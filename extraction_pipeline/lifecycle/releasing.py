"""Releasing: a person lets documents that ended without a record be asked about again."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from extraction_pipeline.errors import LedgerError
from extraction_pipeline.ledger import items
from extraction_pipeline.ledger.audit import note
from extraction_pipeline.ledger.states import AuditEvent, ItemState
from extraction_pipeline.ledger.versions import find_version
from extraction_pipeline.lifecycle.known import require_known, require_named
from extraction_pipeline.lifecycle.pipeline import Pipeline

_LEFT: Mapping[ItemState | None, str] = {
    None: "never asked about at this version",
    ItemState.CLAIMED: "waiting for an answer",
    ItemState.ANSWERED: "with an answer that is about to be published",
    ItemState.PUBLISHED: "with a record",
    ItemState.FAILED: "failed in the meantime",
    ItemState.RELEASED: "released before",
    ItemState.SUPERSEDED: "with another answer as the record",
}
"""What is said of documents that were left as they are, by how they stand."""


@dataclass(frozen=True)
class Released:
    """How many documents were released, and one line on these and on those that were not."""

    count: int
    line: str


def release(
    pipeline: Pipeline,
    collection: str,
    version_name: str,
    hashes: Sequence[str],
    actor: str,
    reason: str,
) -> Released:
    """Let documents that ended as failed or invalid be asked about again, with all attempts;
    documents in any other state stay as they are.

    Nothing is done if one of them is not of the collection. Raises `LedgerError` for such, and for
    a version that was never used; `ConfigurationError` where no document is named.
    """
    asked = sorted(set(hashes))
    require_named(asked, "released")
    with pipeline.engine.begin() as connection:
        version = find_version(connection, collection, version_name)
        if version is None:
            raise LedgerError(
                f"{collection} was never extracted at version {version_name}.",
                remedy="`extraction-pipeline status` shows the versions.",
            )
        released = items.release_documents(connection, version.id, asked)
        standing = items.standings(connection, collection, version.id, asked)
        require_known(collection, [one for one in asked if one not in standing], "released")
        note(
            connection,
            AuditEvent.DOCUMENTS_RELEASED,
            actor,
            collection=collection,
            details={"version": version_name, "documents": released, "reason": reason},
        )
    left = Counter(standing[one] for one in set(asked).difference(released))
    return Released(len(released), _told(len(released), len(asked), left))


def _told(released: int, asked: int, left: Mapping[ItemState | None, int]) -> str:
    line = f"Released {released:,} of {asked:,} document{'' if asked == 1 else 's'}"
    kinds = ", ".join(f"{count:,} {_LEFT[state]}" for state, count in _by_number(left.items()))
    return f"{line}; not released: {kinds}." if kinds else f"{line}."


def _by_number(
    counts: Iterable[tuple[ItemState | None, int]],
) -> list[tuple[ItemState | None, int]]:
    return sorted(counts, key=lambda one: (-one[1], _LEFT[one[0]]))
