"""What came in since the last nightly refresh of a collection."""

from dataclasses import dataclass

from sqlalchemy import Connection, text


@dataclass(frozen=True)
class Night:
    """Extractions published, and tokens answered, since the last night that was recorded."""

    published: int
    input_tokens: int
    output_tokens: int


def since_last_night(connection: Connection, collection: str, version: str) -> Night:
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
                   coalesce(sum(r.input_tokens), 0)::bigint AS input_tokens,
                   coalesce(sum(r.output_tokens), 0)::bigint AS output_tokens
            FROM extraction.raw_responses r JOIN extraction.batch_items i ON i.id = r.item_id
            WHERE i.version_id = (SELECT id FROM version)
              AND r.received_at > (SELECT at FROM last)
        """),
        {"collection": collection, "version": version},
    ).one()
    return Night(**row._mapping)
