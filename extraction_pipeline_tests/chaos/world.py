"""What a campaign works on: collections, documents, and the environment of its processes."""

import json
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import yaml

from extraction_pipeline.installation.instance_file import INSTANCE_FILE
from extraction_pipeline.providers.registry import BUILDERS, ProviderName

PROVIDERS = tuple(name for name in BUILDERS if name is not ProviderName.LOCAL)
ACTIVE, OTHER = "v1", "v2"

_TIMES = {
    "POLL_SECONDS": "0.2",
    "POLL_MAX_SECONDS": "1",
    "RESOLVE_GRACE_SECONDS": "0",
    "CONNECT_TIMEOUT": "2",
    "READ_TIMEOUT": "4",
    "SEND_TIMEOUT": "4",
    "POLL_TIMEOUT": "4",
}
"""So short that what is not known after a kill is known before the next."""


@dataclass
class World:
    """Folders of one campaign, with two collections of each provider, or one where there are more
    providers; `written` are the hashes of the documents that were put into each."""

    root: Path
    providers: Sequence[ProviderName]
    port: int = field(default_factory=lambda: _free_port())
    written: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the folders, and declare the collections."""
        self.dagster_home.mkdir(parents=True)
        (self.dagster_home / "dagster.yaml").write_bytes(INSTANCE_FILE.read_bytes())
        (self.root / "collections").mkdir()
        kinds = ("notes", "letters") if len(self.providers) == 1 else ("notes",)
        for provider in self.providers:
            for kind in kinds:
                self._declare(f"{provider}_{kind}", provider)

    @property
    def dagster_home(self) -> Path:
        return self.root / "dagster"

    @property
    def postgres(self) -> Path:
        return self.root / "postgres"

    @property
    def requests(self) -> Path:
        """What the sensor has asked for: a line of JSON for each run."""
        return self.root / "run_requests"

    @property
    def root_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def collections(self) -> list[str]:
        return sorted(self.written)

    def write(self, collection: str, count: int) -> None:
        """Put so many new fictional documents into a collection."""
        for _ in range(count):
            number = sum(map(len, self.written.values()))
            note = (
                f"DISCHARGE SUMMARY\n\nRecord {number}\n\nDISCHARGE DIAGNOSES:\n"
                f"1. Fictional condition number {number}.\n\n"
                "DISCHARGE MEDICATIONS:\n1. Examplol 20 mg p.o. daily.\n\n"
                "ALLERGIES: None known.\n"
            ).encode()
            draft = self.root / "draft"
            draft.write_bytes(note)
            draft.rename(self._documents(collection) / f"note-{number:05}.txt")
            self.written[collection].add(sha256(note).hexdigest())

    def environment(self, database_url: str) -> dict[str, str]:
        """The environment of every process: nothing of a real installation comes into it."""
        others = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("EXTRACTION_", "DAGSTER_"))
        }
        return others | self.variables(database_url)

    def variables(self, database_url: str) -> dict[str, str]:
        """The settings of the campaign."""
        found = {
            "DAGSTER_HOME": str(self.dagster_home),
            "EXTRACTION_HOME": str(self.root / "home"),
            "EXTRACTION_DATABASE_URL": database_url,
            "EXTRACTION_COLLECTIONS": str(self.root / "collections"),
            "EXTRACTION_NIGHTLY_START": "2026-11-01",
            "EXTRACTION_ANTHROPIC_OUTPUT": "tool",
            **{f"EXTRACTION_{name}": value for name, value in _TIMES.items()},
        }
        for name in PROVIDERS:
            path = "/v1" if name is ProviderName.OPENAI else ""
            found[f"EXTRACTION_{name.upper()}_BASE_URL"] = self.root_url + path
            found[f"EXTRACTION_{name.upper()}_API_KEY"] = "none-is-asked-for"
        return found

    def _documents(self, collection: str) -> Path:
        return self.root / "documents" / collection

    def _declare(self, name: str, provider: ProviderName) -> None:
        self._documents(name).mkdir(parents=True)
        self.written[name] = set()
        recipe = {"provider": provider.value, "model": "rules-baseline", "max_attempts": 5}
        declared = {
            "name": name,
            "description": "Fictional notes.",
            "document_type": "discharge_summary",
            "source": {"kind": "folder", "path": str(self._documents(name))},
            "active_version": ACTIVE,
            "extraction_versions": {
                ACTIVE: {**recipe, "max_output_tokens": 4096},
                OTHER: {**recipe, "max_output_tokens": 2048},
            },
        }
        file = self.root / "collections" / f"{name}.yaml"
        file.write_text(yaml.safe_dump(json.loads(json.dumps(declared))))


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
