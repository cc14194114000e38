"""What every test stands on: an embedded PostgreSQL, a batch server, and folders of its own."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from dagster import DagsterInstance
from hypothesis import settings as hypothesis_settings
from sqlalchemy import create_engine, make_url, text

from extraction_pipeline.installation.embedded_postgres import embedded_postgres
from extraction_pipeline.installation.instance_file import INSTANCE_FILE
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.ledger.migrate import migrate
from extraction_pipeline.lifecycle.opening import open_pipeline
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.settings import load_settings
from extraction_pipeline_tests.batch_server.process import ServerProcess, running_server
from extraction_pipeline_tests.faults.signals import heed_signals

TEMPLATE = "template_ready"

# The same examples in every run: a red build is red again. `--hypothesis-profile explore` looks for
# new ones.
hypothesis_settings.register_profile("same", derandomize=True)
hypothesis_settings.register_profile("explore", derandomize=False, max_examples=1_000)
hypothesis_settings.load_profile("same")


def pytest_configure() -> None:
    """Heed signals, whatever the shell that runs the tests says: programs inherit it."""
    heed_signals()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spread the longest tests over the first quarter: what begins last must not last longest."""
    longest = [item for item in items if item.get_closest_marker("long")]
    if longest:
        others = [item for item in items if item not in longest]
        apart = max(1, len(items) // (4 * len(longest)))
        for place, item in enumerate(longest):
            others.insert(place * apart, item)
        items[:] = others


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A running server, with one database in it that has all tables of ours and of Dagster."""
    # Not in pytest's folder: as root the server runs as another user, and pytest closes its folder
    # to all others whenever a second test run begins.
    with (
        TemporaryDirectory(prefix="extraction-tests-") as folder,
        embedded_postgres(Path(folder) / "data") as url,
    ):
        _sql(url, f"CREATE DATABASE {TEMPLATE}")
        ready = _named(url, TEMPLATE)
        engine = open_engine(ready)
        migrate(engine)
        engine.dispose()
        home = tmp_path_factory.mktemp("dagster_template")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("EXTRACTION_DATABASE_URL", ready)
            with _instance(home):
                pass
        yield url


@pytest.fixture
def database_url(postgres_url: str) -> Iterator[str]:
    """A fresh database of its own, with all tables."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    _sql(postgres_url, f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
    yield _named(postgres_url, name)
    _sql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A batch server process of its own, answering by the rules baseline."""
    with running_server(tmp_path / "batch_server") as running:
        yield running


@dataclass
class Workplace:
    """An installation in a temporary folder: collections, documents, database and environment."""

    root: Path
    collections: Path
    documents: Path
    environment: pytest.MonkeyPatch

    def declare(self, name: str = "notes", extra: str = "", **version: object) -> None:
        """Declare a collection of discharge summaries in `documents/<name>`; `version` overrides
        keys of its version `v1`, `extra` is YAML at the top level."""
        settings = {
            "provider": "local",
            "model": "rules-baseline",
            "max_output_tokens": 4096,
            "max_attempts": 2,
            **version,
        }
        lines = "\n".join(f"    {key}: {value}" for key, value in settings.items())
        (self.documents / name).mkdir(exist_ok=True)
        (self.collections / f"{name}.yaml").write_text(
            f"name: {name}\n"
            "description: Fictional notes.\n"
            "document_type: discharge_summary\n"
            f"source: {{kind: folder, path: {self.documents / name}}}\n"
            "active_version: v1\n"
            f"{extra}\n"
            f"extraction_versions:\n  v1:\n{lines}\n"
        )

    def write(self, count: int, collection: str = "notes", start: int = 0) -> list[Path]:
        """Write fictional notes, all different; returns their paths."""
        paths = []
        for number in range(start, start + count):
            path = self.documents / collection / f"note-{number:05}.txt"
            path.write_text(
                f"DISCHARGE SUMMARY\n\nRecord {number}\n\nDISCHARGE DIAGNOSES:\n"
                f"1. Fictional condition number {number}.\n\n"
                "DISCHARGE MEDICATIONS:\n1. Examplol 20 mg p.o. daily.\n\n"
                "ALLERGIES: None known.\n"
            )
            paths.append(path)
        return paths

    def open(self, base_url: str | None = None, **environment: str) -> Pipeline:
        """Open the pipeline as a process would, from the environment."""
        if base_url is not None:
            self.environment.setenv("EXTRACTION_LOCAL_BASE_URL", base_url)
        for name, value in environment.items():
            self.environment.setenv(f"EXTRACTION_{name}", value)
        return open_pipeline(load_settings())


@pytest.fixture
def workplace(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workplace]:
    """An installation over the test's own database, with one empty collection `notes`."""
    collections, documents = tmp_path / "collections", tmp_path / "documents"
    collections.mkdir()
    documents.mkdir()
    monkeypatch.setenv("EXTRACTION_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("EXTRACTION_DATABASE_URL", database_url)
    monkeypatch.setenv("EXTRACTION_COLLECTIONS", str(collections))
    monkeypatch.setenv("EXTRACTION_POLL_SECONDS", "0.05")
    monkeypatch.setenv("EXTRACTION_RESOLVE_GRACE_SECONDS", "0")
    monkeypatch.setenv("EXTRACTION_READ_TIMEOUT", "2")
    workplace = Workplace(tmp_path, collections, documents, monkeypatch)
    workplace.declare()
    yield workplace


@pytest.fixture
def pipeline(workplace: Workplace, server: ServerProcess) -> Iterator[Pipeline]:
    """A pipeline over the workplace and a batch server of its own."""
    opened = workplace.open(server.base_url)
    yield opened
    opened.engine.dispose()


@pytest.fixture
def instance(workplace: Workplace, tmp_path: Path) -> Iterator[DagsterInstance]:
    """A Dagster instance over the test's own database, from the project's instance file."""
    with _instance(tmp_path / "dagster_home") as opened:
        yield opened


def _instance(home: Path) -> DagsterInstance:
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_bytes(INSTANCE_FILE.read_bytes())
    return DagsterInstance.from_config(str(home))


def _named(url: str, database: str) -> str:
    return make_url(url).set(database=database).render_as_string(hide_password=False)


def _sql(url: str, statement: str) -> None:
    engine = create_engine(
        make_url(url).set(drivername="postgresql+psycopg2"), isolation_level="AUTOCOMMIT"
    )
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()
