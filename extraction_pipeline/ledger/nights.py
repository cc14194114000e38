"""What came in since the last nightly refresh of a collection."""

from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import Connection, text


@dataclass(frozen=True)
class Night:
    """Extractions published, and tokens answered, since the last night that was recorded.

    `unpriced` answers have no cost in the currency asked for.
    """

    published: int
    input_tokens: int
    output_tokens: int
    cost: Decimal
    unpriced: int


def since_last_night(
    connection: Connection, collection: str, version: str, currency: str | None
) -> Night:
    """Count from the last `night_done` of this collection, or from the beginning."""
    row = connection.execute(
        text("""
            WITH last AS (
                SELECT coalesce(max(at), '-infinity') AS at FROM extraction.audit_events
                WHERE event = 'night_done' AND collection = :collection
            ), version AS (
                SELECT id FROM extraction.extraction_versions
                WHERE collection = :collection AND name = :version
            )
            SELECT (SELECT count(*) FROM extraction.extractions e
                    WHERE e.version_id = (SELECT id FROM version)
                      AND e.published_at > (SELECT at FROM last)) AS published,
                   coalesce(sum(c.input_tokens), 0)::bigint AS input_tokens,
                   coalesce(sum(c.output_tokens), 0)::bigint AS output_tokens,
                   coalesce(sum(c.amount) FILTER (WHERE c.currency = :currency), 0) AS cost,
                   count(*) FILTER (WHERE c.amount IS NULL
                                    OR c.currency IS DISTINCT FROM :currency) AS unpriced
            FROM extraction.request_costs c JOIN extraction.batch_items i ON i.id = c.item_id
            WHERE i.version_id = (SELECT id FROM version)
              AND c.at > (SELECT at FROM last)
        """),
        {"collection": collection, "version": version, "currency": currency},
    ).one()
    return Night(**row._mapping)
