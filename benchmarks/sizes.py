"""How many bytes a document leaves in each table and in the store, all told.

    python -m benchmarks.sizes 2000

A fresh home in a temporary folder, the embedded PostgreSQL, the batch server with its rules, and
the real jobs: scan, submit, collect, the checks. Sizes are those of tables with their indexes and
TOAST, after VACUUM, less what they have in an empty installation, for each document.
"""

import argparse
import os
from pathlib import Path

from sqlalchemy import Connection, text

from benchmarks.arguments import positive
from benchmarks.ending import ended_in_order, temporary_folder
from benchmarks.synthetic import COLLECTION, write_documents
from extraction_pipeline.installation.session import driving
from extraction_pipeline.orchestration.driving import Driver, Target
from extraction_pipeline.reports.table import render_table
from extraction_pipeline.settings import load_settings

_SIZES = text("""
    SELECT n.nspname || '.' || c.relname AS name, pg_total_relation_size(c.oid) AS whole,
           pg_indexes_size(c.oid) AS indexes
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND n.nspname IN ('public', 'extraction')
""")
LEAST = 1
"""Bytes a document below which a table is counted among the others."""


def _sizes(connection: Connection) -> dict[str, tuple[int, int]]:
    return {row.name: (row.whole, row.indexes) for row in connection.execute(_SIZES)}


def _vacuumed(driver: Driver) -> dict[str, tuple[int, int]]:
    engine = driver.pipeline.engine.execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("VACUUM"))
        return _sizes(connection)


def measure(count: int, root: Path) -> tuple[list[list[str | int | float | None]], int, int]:
    """Rows of name, bytes, of which indexes, rows a document; bytes a document in the store; and
    connections to the database at the end."""
    write_documents(root / "documents", 0, count)
    collections = root / "collections"
    collections.mkdir()
    (collections / "bench.yaml").write_text(COLLECTION.format(folder=root / "documents"))
    os.environ["EXTRACTION_HOME"] = str(root / "home")
    os.environ["EXTRACTION_COLLECTIONS"] = str(collections)
    os.environ["EXTRACTION_POLL_SECONDS"] = "0.2"
    os.environ["EXTRACTION_POLL_MAX_SECONDS"] = "0.5"
    with driving(load_settings(), lambda line: None) as driver:
        before = _vacuumed(driver)
        driver.scan(["bench"])
        driver.finish([Target("bench", "v1")])
        after = _vacuumed(driver)
        with driver.pipeline.engine.connect() as connection:
            rows = {
                name: connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one()
                for name in after
            }
            sessions = connection.execute(
                text("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")
            ).scalar_one()
    grown: list[list[str | int | float | None]] = [
        [
            name,
            round((whole - before[name][0]) / count),
            round((indexes - before[name][1]) / count),
            round(rows[name] / count, 2),
        ]
        for name, (whole, indexes) in after.items()
    ]
    return grown, round(stored_bytes(root / "home" / "store") / count), int(sessions)


def stored_bytes(store: Path) -> int:
    """Bytes of the files, which is what an object store has: folders are none of it."""
    return sum(one.stat().st_size for one in store.rglob("*") if one.is_file())


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("documents", type=positive, nargs="?", default=2000)
    count = parser.parse_args().documents
    with temporary_folder("sizes") as folder:
        grown, stored, sessions = measure(count, folder)
    grown.sort(key=lambda row: -float(row[1] or 0))
    shown = [row for row in grown if float(row[1] or 0) >= LEAST]
    for schema in ("public", "extraction"):
        ours = [row for row in grown if str(row[0]).startswith(schema)]
        sums = [sum(float(row[column] or 0) for row in ours) for column in (1, 2)]
        shown.append([f"all of {schema}", *map(round, sums), None])
    shown.append(["store", stored, None, None])
    header = ["table", "bytes a document", "of which indexes", "rows a document"]
    print(render_table(header, shown))  # noqa: T201
    print(f"{sessions} connections at the end, of one process that drives all")  # noqa: T201


if __name__ == "__main__":
    ended_in_order(main)
