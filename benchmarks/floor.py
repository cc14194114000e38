"""How far each stage is from what its bytes cost at least.

    python -m benchmarks.floor 10000

Runs the stages of `throughput`, and then does with the same rows and bytes what no way around does
without, and nothing else: raw COPY into empty tables of the same form and indexes (but without
foreign keys, which COPY would check row by row), the same bytes over HTTP to a server that throws
them away, the same hashes, the same files read and written. Parsing, validating and Dagster's own
code have no floor here.
"""

import argparse
import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO

import requests
from sqlalchemy import Engine, text

from benchmarks.arguments import positive
from benchmarks.ending import ended_in_order, temporary_folder
from benchmarks.synthetic import bench, write_documents
from benchmarks.throughput import WAITING, run_stages
from benchmarks.watch import Stage
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.reports.table import render_table

PIECE = 1 << 20

TABLES = {
    "register": ("extraction.documents", "extraction.document_sources"),
    "submit": ("extraction.batch_items",),
    "collect": ("extraction.raw_responses", "extraction.request_costs"),
    "publish": ("extraction.extractions",),
    "records": (
        "public.event_logs",
        "public.asset_event_tags",
        "public.dynamic_partitions",
    ),
}
"""What each stage fills. The three stages of records fill the same tables and count as one."""


class _Sink(BaseHTTPRequestHandler):
    """Throws away what is posted, and gives out as many bytes as are asked for."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        left = int(self.headers["Content-Length"])
        while left > 0:
            left -= len(self.rfile.read(min(left, PIECE)))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        left = int(self.path.strip("/"))
        self.send_response(200)
        self.send_header("Content-Length", str(left))
        self.end_headers()
        while left > 0:
            piece = bytes(min(left, PIECE))
            self.wfile.write(piece)
            left -= len(piece)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@contextmanager
def _sink() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Sink)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()


def copy_seconds(engine: Engine, table: str, scratch: Path) -> float:
    """COPY the rows of a table into an empty one of its form."""
    connection = engine.raw_connection()
    cursor: Any = connection.cursor()  # psycopg2's, which has a call for COPY
    try:
        with scratch.open("wb") as out:
            cursor.copy_expert(f"COPY {table} TO STDOUT (FORMAT binary)", out)
        cursor.execute(f"CREATE TABLE floor_of_it (LIKE {table} INCLUDING ALL)")
        started = time.perf_counter()
        with scratch.open("rb") as rows:
            cursor.copy_expert("COPY floor_of_it FROM STDIN (FORMAT binary)", rows)
        return time.perf_counter() - started
    finally:
        connection.rollback()
        connection.close()


class _Zeros:
    """So many bytes to send."""

    def __init__(self, size: int) -> None:
        self._size = self._left = size

    def __len__(self) -> int:
        return self._size

    def read(self, most: int = -1, /) -> bytes:
        """The next piece."""
        piece = bytes(self._left if most < 0 else min(most, self._left))
        self._left -= len(piece)
        return piece


def _hashed(stream: BinaryIO) -> None:
    digest = hashlib.sha256()
    while piece := stream.read(PIECE):
        digest.update(piece)


def file_seconds(sources: Path, target: Path) -> float:
    """Read every file, hash it, and write it once more under its hash."""
    target.mkdir()
    started = time.perf_counter()
    for path in sources.iterdir():
        data = path.read_bytes()
        (target / hashlib.sha256(data).hexdigest()).write_bytes(data)
    return time.perf_counter() - started


def stored_seconds(pipeline: Pipeline, hashes: list[str]) -> float:
    """Hash contents of the store."""
    started = time.perf_counter()
    for one in hashes:
        with pipeline.store.open(one) as stream:
            _hashed(stream)
    return time.perf_counter() - started


def sent_seconds(url: str, sizes: list[int], *, up: bool) -> float:
    """Send, or fetch, bodies of these sizes over one connection."""
    started = time.perf_counter()
    with requests.Session() as session:
        for size in sizes:
            if up:
                session.post(url, data=_Zeros(size)).raise_for_status()
            else:
                with session.get(f"{url}{size}", stream=True) as reply:
                    for _ in reply.iter_content(PIECE):
                        pass
    return time.perf_counter() - started


def measure(count: int, root: Path) -> tuple[list[Stage], dict[str, dict[str, float]]]:
    """The stages, and the floors of each by what they are of."""
    write_documents(root / "documents", 0, count)
    with bench(root) as (pipeline, to, watch):
        run_stages(pipeline, to, watch, count)
        floors = {
            stage: {
                "COPY": sum(copy_seconds(pipeline.engine, one, root / "rows") for one in tables)
            }
            for stage, tables in TABLES.items()
        }
        with pipeline.engine.connect() as connection:
            sent = connection.execute(
                text("SELECT payload_hash, payload_bytes FROM extraction.batch_jobs")
            ).all()
            came = connection.execute(
                text("SELECT content_hash, byte_size FROM extraction.result_files")
            ).all()
        floors["register"]["files"] = file_seconds(root / "documents", root / "copies")
        floors["submit"]["hashes"] = stored_seconds(pipeline, [row[0] for row in sent])
        floors["collect"]["hashes"] = stored_seconds(pipeline, [row[0] for row in came])
        with _sink() as url:
            floors["submit"]["HTTP"] = sent_seconds(url, [row[1] for row in sent], up=True)
            floors["collect"]["HTTP"] = sent_seconds(url, [row[1] for row in came], up=False)
    return watch.stages, floors


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("documents", type=positive, nargs="?", default=10_000)
    arguments = parser.parse_args()
    with temporary_folder("benchmark") as folder:
        stages, floors = measure(arguments.documents, folder)
    seconds: dict[str, float] = {}
    for stage in stages:
        name = "records" if stage.name.startswith("records") else stage.name
        seconds[name] = seconds.get(name, 0.0) + stage.seconds
    seconds.pop(WAITING)
    rows: list[list[str | int | float | None]] = [
        [
            name,
            round(spent, 2),
            round(sum(floors[name].values()), 2),
            round(spent / sum(floors[name].values()), 1),
            ", ".join(f"{what} {part:.2f}" for what, part in floors[name].items()),
        ]
        for name, spent in seconds.items()
    ]
    whole, floor = sum(seconds.values()), sum(sum(one.values()) for one in floors.values())
    rows.append(["all", round(whole, 2), round(floor, 2), round(whole / floor, 1), None])
    print(render_table(["stage", "seconds", "floor", "ratio", "of which"], rows))  # noqa: T201


if __name__ == "__main__":
    ended_in_order(main)
