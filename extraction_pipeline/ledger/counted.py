"""Has PostgreSQL count its tables anew once they have grown in bulk.

Plans are made by these counts. Autovacuum makes them, but up to minutes later, and until then a
table of a hundred thousand rows is read by the plan for an empty one: each document by way of all.
"""

from sqlalchemy import Engine, text

FACTOR = 2
"""How much larger than when it was counted a table must be."""


def count_anew(engine: Engine) -> None:
    """Count the tables of the ledger that have doubled since they last were. Those that something
    else is counting or cleaning right now are left to it, and so are those of another owner."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        grown = connection.execute(
            text("""
                SELECT c.oid::regclass::text FROM pg_class c
                WHERE c.relnamespace = 'extraction'::regnamespace AND c.relkind = 'r'
                  AND pg_has_role(c.relowner, 'USAGE')
                  AND pg_relation_size(c.oid) / current_setting('block_size')::int
                      > greatest(c.relpages, 1) * :factor
            """),
            {"factor": FACTOR},
        ).scalars()
        for table in grown.all():
            connection.execute(text(f"ANALYZE (SKIP_LOCKED) {table}"))
