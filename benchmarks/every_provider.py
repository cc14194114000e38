"""The same documents through every provider's wire format, and whether the records are the same.

    python -m benchmarks.every_provider              # the shipped samples
    python -m benchmarks.every_provider CORPUS       # a folder with a subfolder for each collection

A fresh home in a temporary folder, one embedded PostgreSQL, one batch server that speaks all the
formats, and the real Dagster jobs and sensor. Every document is extracted at one version for each
provider; then records, counts, jobs and requests are compared. Exit code 1 if any differ.

Anthropic is asked by a tool unless EXTRACTION_ANTHROPIC_OUTPUT says otherwise: two of the
shipped document types use up the 16 union types that its strict output form takes, and nothing says
whether a definition that is used twice counts twice there.
"""

import argparse
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import yaml

from benchmarks.ending import ended_in_order, temporary_folder
from extraction_pipeline.installation.session import driving
from extraction_pipeline.installation.stack import local_stack
from extraction_pipeline.ledger.published import published_rows
from extraction_pipeline.ledger.summary import summarize
from extraction_pipeline.orchestration.driving import Driver, Target
from extraction_pipeline.providers.registry import BUILDERS, ProviderName
from extraction_pipeline.reports.table import Cell, render_table
from extraction_pipeline.settings import SHIPPED_COLLECTIONS, load_settings

PROVIDERS = tuple(name for name in BUILDERS if name is not ProviderName.LOCAL)
WAYS_OF_SPEAKING = frozenset(
    {
        "EXTRACTION_ANTHROPIC_OUTPUT",
        "EXTRACTION_GEMINI_SCHEMA_FIELD",
        "EXTRACTION_INFRAI_CAPABILITY",
    }
)
"""The only settings that are taken over: nothing else of a real installation is touched."""
SAMPLES = SHIPPED_COLLECTIONS.parent / "samples"


@dataclass(frozen=True)
class Line:
    """What came of one collection through one provider. `records` are the hashes of the published
    records by document; `requests` are those that were sent."""

    collection: str
    provider: str
    documents: int
    jobs: int
    requests: int
    invalid: int
    failed: int
    unreadable: int
    waiting: int
    records: Mapping[str, str]

    @property
    def counts(self) -> tuple[int, ...]:
        """Everything that has to be the same for every provider."""
        ended = (self.invalid, self.failed, self.unreadable, self.waiting)
        return (self.documents, self.jobs, self.requests, len(self.records), *ended)


def disagreements(lines: Iterable[Line]) -> list[str]:
    """One line for each provider whose counts or records differ from the first one's: pure."""
    by_collection: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        by_collection[line.collection].append(line)
    found: list[str] = []
    for collection, (first, *others) in by_collection.items():
        for other in others:
            who = f"{collection}: {other.provider} and {first.provider}"
            if other.counts != first.counts:
                found.append(f"{who} differ in counts, {other.counts} and {first.counts}")
            different = sorted(
                document
                for document in {*first.records, *other.records}
                if first.records.get(document) != other.records.get(document)
            )
            if different:
                named = ", ".join(document[:12] for document in different[:5])
                found.append(f"{who} differ in {len(different)} records, among them {named}")
    return found


def declare(corpus: Path, folder: Path) -> list[str]:
    """The shipped collections over this corpus, with a version for each provider; their names."""
    folder.mkdir()
    names = []
    for shipped in sorted(SHIPPED_COLLECTIONS.glob("*.yaml")):
        declared: dict[str, Any] = yaml.safe_load(shipped.read_text())
        documents = corpus / declared["name"]
        if not documents.is_dir():
            continue
        recipe = declared["extraction_versions"][declared["active_version"]]
        declared["source"]["path"] = str(documents)
        declared["active_version"] = PROVIDERS[0].value
        declared["extraction_versions"] = {
            provider.value: {**recipe, "provider": provider.value} for provider in PROVIDERS
        }
        (folder / shipped.name).write_bytes(orjson.dumps(declared))  # JSON is YAML, too
        names.append(declared["name"])
    return names


def measure(corpus: Path, root: Path) -> list[Line]:
    """Take the corpus through every provider."""
    names = declare(corpus, root / "collections")
    if not names:
        raise SystemExit(f"{corpus} has no folder that is named after a collection")
    for variable in list(os.environ):
        if (
            variable.startswith(("EXTRACTION_", "DAGSTER_HOME"))
            and variable not in WAYS_OF_SPEAKING
        ):
            del os.environ[variable]
    os.environ["EXTRACTION_HOME"] = str(root / "home")
    os.environ["EXTRACTION_COLLECTIONS"] = str(root / "collections")
    os.environ["EXTRACTION_POLL_SECONDS"] = "0.2"
    os.environ.setdefault("EXTRACTION_ANTHROPIC_OUTPUT", "tool")
    for provider in PROVIDERS:
        os.environ[f"EXTRACTION_{provider.upper()}_API_KEY"] = "none-is-asked-for"
    with local_stack(load_settings()) as ready:
        for provider in PROVIDERS:
            # OpenAI's base URL holds the version; the others' begin at the host.
            is_openai = provider is ProviderName.OPENAI
            base_url = ready.local_base_url if is_openai else ready.local_base_url[: -len("/v1")]
            os.environ[f"EXTRACTION_{provider.upper()}_BASE_URL"] = base_url
        with driving(load_settings(), lambda line: print(line, file=sys.stderr)) as driver:  # noqa: T201
            driver.scan(names)
            targets = [Target(name, provider.value) for name in names for provider in PROVIDERS]
            driver.finish(targets)
            return [_line(driver, target) for target in targets]


def _line(driver: Driver, target: Target) -> Line:
    version = driver.pipeline.collection(target.collection).version(target.version)
    with driver.pipeline.engine.connect() as connection:
        counted = summarize(connection, target.collection, version.name, version.max_attempts)
        records = {
            row.document_hash: row.extraction_hash
            for row in published_rows(connection, target.collection, version.name)
        }
        requests = connection.exec_driver_sql(
            "SELECT count(*) FROM extraction.batch_items i"
            " JOIN extraction.batch_jobs j ON j.id = i.batch_job_id"
            " JOIN extraction.documents d ON d.id = i.document_id"
            " WHERE d.collection = %s AND j.provider = %s",
            (target.collection, version.provider),
        ).scalar_one()
    return Line(
        collection=target.collection,
        provider=target.version,
        documents=counted.documents,
        jobs=counted.provider_jobs,
        requests=requests,
        invalid=counted.invalid,
        failed=counted.failed,
        unreadable=counted.unreadable,
        waiting=counted.waiting,
        records=records,
    )


HEADER = [
    *("collection", "provider", "documents", "jobs", "requests", "published", "invalid", "failed"),
    *("unreadable", "waiting"),
]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path, nargs="?", default=SAMPLES)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    arguments = parser.parse_args()
    started = time.monotonic()
    with temporary_folder("providers") as folder:
        lines = measure(arguments.corpus.absolute(), folder)
    found = disagreements(lines)
    rows: list[list[Cell]] = [[line.collection, line.provider, *line.counts] for line in lines]
    if arguments.json:
        shown = {"lines": [dict(zip(HEADER, row, strict=True)) for row in rows], "differ": found}
        print(orjson.dumps(shown).decode())  # noqa: T201
    else:
        seconds = time.monotonic() - started
        verdict = "\n".join(found) or "Counts and records are the same for every provider."
        output = os.environ["EXTRACTION_ANTHROPIC_OUTPUT"]
        print(render_table(HEADER, rows))  # noqa: T201
        print(f"\n{verdict}\nAnthropic was asked by {output}; {seconds:.0f} s.")  # noqa: T201
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    ended_in_order(main)
