"""The two programs that are compared, each in a folder of its own, with the same documents."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import orjson

POLL_SECONDS = "0.2"
READ_TIMEOUT = "3"
COLLECTION = """\
name: letters
description: Fictional letters.
document_type: discharge_summary
source: {{kind: folder, path: "{documents}"}}
active_version: v1
extraction_versions:
  v1: {{provider: local, model: rules-baseline, max_attempts: 3}}
"""


class Subject(Protocol):
    """A program that extracts a folder of documents."""

    def start(self) -> "subprocess.Popen[bytes]":
        """Begin, or go on after trouble; exit code 0 says that it is done."""
        ...

    def records(self) -> list[str]:
        """The documents of all published records, one entry for each record."""
        ...

    def explained(self) -> int:
        """Documents without a record of which the program says why."""
        ...


class PlainScript:
    """The script in `script.py`."""

    def __init__(self, folder: Path, documents: Path, base_url: str) -> None:
        self._records = folder / "records.jsonl"
        self._arguments = [str(documents), base_url, str(self._records)]

    def start(self) -> "subprocess.Popen[bytes]":
        """See `Subject`."""
        module = "benchmarks.plain_script.script"
        return quiet([sys.executable, "-m", module, *self._arguments], dict(os.environ))

    def records(self) -> list[str]:
        """See `Subject`."""
        if not self._records.exists():
            return []
        return [json.loads(line)["id"] for line in self._records.read_text().splitlines()]

    def explained(self) -> int:
        """See `Subject`: it knows nothing of what it has no record of."""
        return 0


class Pipeline:
    """`extraction-pipeline run --wait`, with an embedded PostgreSQL in its home.

    `more` are settings beside those, or in place of them.
    """

    def __init__(
        self, folder: Path, documents: Path, base_url: str, more: Mapping[str, str] | None = None
    ) -> None:
        self._exported = folder / "records.jsonl"
        collections = folder / "collections"
        collections.mkdir()
        (collections / "letters.yaml").write_text(COLLECTION.format(documents=documents))
        self._environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("EXTRACTION_", "DAGSTER_"))
            },
            "EXTRACTION_HOME": str(folder / "home"),
            "EXTRACTION_COLLECTIONS": str(collections),
            "EXTRACTION_LOCAL_BASE_URL": base_url,
            "EXTRACTION_READ_TIMEOUT": READ_TIMEOUT,
            "EXTRACTION_POLL_SECONDS": POLL_SECONDS,
            "EXTRACTION_POLL_MAX_SECONDS": "1",
            "EXTRACTION_RESOLVE_GRACE_SECONDS": "2",
            **(more or {}),
        }

    def start(self) -> "subprocess.Popen[bytes]":
        """See `Subject`."""
        return quiet([*_COMMAND, "run", "--collection", "letters", "--wait"], self._environment)

    def records(self) -> list[str]:
        """See `Subject`."""
        self.tell("export", "--collection", "letters", "--output", str(self._exported))
        rows = self._exported.read_bytes().splitlines()
        return [str(orjson.loads(row)["document_hash"]) for row in rows]

    def explained(self) -> int:
        """See `Subject`."""
        counts = orjson.loads(self.tell("status", "--json"))["collections"]["letters"]
        return int(counts["invalid"] + counts["failed"] + counts["unreadable"])

    def tell(self, *words: str) -> bytes:
        """Run another command of it; what that prints."""
        return subprocess.run(
            [*_COMMAND, *words], env=self._environment, check=True, capture_output=True
        ).stdout


_COMMAND = (sys.executable, "-m", "extraction_pipeline.cli")


def quiet(command: list[str], environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    """Start a program of whose output nothing is shown."""
    return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
