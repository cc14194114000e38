"""A service without an API, as a script of somebody's: it reads the outbox and fills the inbox."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from extraction_pipeline.batch_server.baseline import extract

Line = dict[str, Any]


@dataclass(frozen=True)
class OutsideService:
    """One shared folder, seen from the other side."""

    folder: Path

    @property
    def inbox(self) -> Path:
        return self.folder / "inbox"

    @property
    def outbox(self) -> Path:
        return self.folder / "outbox"

    def jobs(self) -> list[str]:
        """Keys of all jobs that wait in the outbox."""
        return sorted(path.stem for path in self.outbox.glob("*.jsonl"))

    def requests(self, job_key: str) -> list[Line]:
        content = (self.outbox / f"{job_key}.jsonl").read_bytes()
        return [json.loads(line) for line in content.split(b"\n") if line]

    def answers(self, job_key: str) -> list[Line]:
        """What it makes of each request, in an order of its own, keyed by document hash alone."""
        return [
            {
                "document_hash": request["document_hash"],
                "record": extract(request["schema_name"], request["document"]),
            }
            for request in reversed(self.requests(job_key))
        ]

    def deliver(self, job_key: str, lines: Iterable[Line]) -> Path:
        """Put a whole file of these lines into the inbox."""
        return self.place(job_key, delivery(lines))

    def place(self, job_key: str, content: bytes) -> Path:
        """Let a file of this content stand in the inbox."""
        path = self.inbox / f"{job_key}.jsonl"
        path.write_bytes(content)
        return path


def delivery(lines: Iterable[Line]) -> bytes:
    """A whole result file."""
    written = [json.dumps(line).encode() + b"\n" for line in lines]
    return b"".join([*written, json.dumps({"end_of_results": len(written)}).encode() + b"\n"])
