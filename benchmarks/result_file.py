"""Memory against the size of a result file: the same documents with answers as they are, then with
a file of N megabytes.

    python -m benchmarks.result_file 1024 1000

Between the end of the job and its collection, each line of the batch server's result file gets a
member that no reader knows, until the file has the size; the second argument is how many documents
its one job has. The file is then fetched over HTTP, stored, landed and published as any other.
"""

import argparse
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from sqlalchemy import select

from benchmarks.arguments import positive
from benchmarks.ending import ended_in_order, temporary_folder
from benchmarks.synthetic import bench, write_documents
from benchmarks.watch import Stage, Watch, report
from extraction_pipeline.ledger.tables import result_files
from extraction_pipeline.lifecycle.collecting import collect
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.polling import poll_due
from extraction_pipeline.lifecycle.publishing import publish_job
from extraction_pipeline.lifecycle.registration import scan
from extraction_pipeline.lifecycle.submission import submit_documents

MEGABYTE = 2**20


def measure(megabytes: int, count: int, root: Path) -> list[Stage]:
    """Both rounds; raises if a document was lost or a file has another size."""
    with bench(root) as (pipeline, _, watch):
        _round(pipeline, watch, root, 0, count, 0)
        _round(pipeline, watch, root, count, count, megabytes)
    return watch.stages


def _round(
    pipeline: Pipeline, watch: Watch, root: Path, first: int, count: int, megabytes: int
) -> None:
    collection = pipeline.collection("bench")
    write_documents(root / "documents", first, count)
    scan(pipeline, collection)
    (job,) = submit_documents(pipeline, collection, collection.active, actor="benchmark").submitted
    while not sum(one.ended for one in poll_due(pipeline, "benchmark", 50, seconds=10)):
        time.sleep(0.1)
    if megabytes:
        _stretch(root / "home" / "batch_server", count, megabytes)
    with watch.stage(f"collect, {megabytes or 'usual'} MB", count):
        collect(pipeline, job, "benchmark")
    with watch.stage(f"publish, {megabytes or 'usual'} MB", count):
        publication = publish_job(pipeline, job, "benchmark")
    with pipeline.engine.connect() as connection:
        size = connection.execute(
            select(result_files.c.byte_size).where(result_files.c.batch_job_id == job)
        ).scalar_one()
    if len(publication.published) != count or size < megabytes * MEGABYTE:
        raise SystemExit(f"{len(publication.published)} documents of a file of {size} bytes")


def _stretch(server: Path, count: int, megabytes: int) -> None:
    """Make the lines of the newest result file longer."""
    padding = b'"padding":"' + b"x" * (megabytes * MEGABYTE // count) + b'",'
    newest = max((server / "files").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    stretched = server / "stretched"
    with newest.open("rb") as lines, stretched.open("wb") as out:
        for line in lines:
            out.write(b"{" + padding + line.removeprefix(b"{"))
    stretched.replace(newest)
    with closing(sqlite3.connect(server / "server.sqlite3")) as database, database:
        database.execute(
            "UPDATE files SET size = ? WHERE id = ?", (newest.stat().st_size, newest.name)
        )


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("megabytes", type=positive, nargs="?", default=1024)
    parser.add_argument("documents", type=positive, nargs="?", default=1000)
    arguments = parser.parse_args()
    with temporary_folder("benchmark") as folder:
        stages = measure(arguments.megabytes, arguments.documents, folder)
    report(stages, print, total=False)


if __name__ == "__main__":
    ended_in_order(main)
