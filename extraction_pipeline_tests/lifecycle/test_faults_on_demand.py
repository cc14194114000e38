"""Every fault that the batch server can be told to make, in every wire format.

For each: how many jobs the provider made, how many questions it answered more than once, how many
records there are, and why the other documents have none. The provider's own statistics say the
first two, the ledger the rest.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import requests
from sqlalchemy import text

from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.collecting import collect
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.polling import poll_due
from extraction_pipeline.lifecycle.publishing import publish_job
from extraction_pipeline.lifecycle.registration import scan
from extraction_pipeline.lifecycle.resolution import resolve
from extraction_pipeline.providers.errors import ProviderError
from extraction_pipeline_tests.batch_server.process import ServerProcess, wait_until
from extraction_pipeline_tests.conftest import TEMPLATE, Workplace
from extraction_pipeline_tests.ledger.databases import database
from extraction_pipeline_tests.lifecycle.driving import ACTOR, Driven
from extraction_pipeline_tests.lifecycle.fault_cases import CASES, DIALECTS, DOCUMENTS, Case

GLANCES = 4
"""Ticks after which nothing may have ended that waits."""
NUMBERED_FROM = 50_000
"""The server answers other tests, too, and counts what it is asked again."""
COUNTS = ("jobs_created", "requests_answered_again")
STEPS: Mapping[JobState, Callable[[Pipeline, int, str], object]] = {
    JobState.PREPARING: resolve,
    JobState.PREPARED: resolve,
    JobState.SUBMITTING: resolve,
    JobState.UNRESOLVED: resolve,
    JobState.ENDED: collect,
    JobState.COLLECTED: publish_job,
}


@dataclass
class Bench:
    """One installation with a collection for each wire format."""

    workplace: Workplace
    server: ServerProcess
    pipeline: Pipeline
    unused: Mapping[str, Iterator[str]]
    """Documents of each collection that no test had yet, by hash."""

    def put(self, *faults: Mapping[str, object]) -> None:
        answer = requests.put(f"{self.server.root_url}/faults", json={"faults": faults}, timeout=5)
        assert answer.status_code == 200, answer.text

    def asked(self, dialects: Sequence[str]) -> list[tuple[Driven, list[str]]]:
        """The collections of these wire formats, each with documents that no test had before."""
        return [
            (
                Driven(self.pipeline, self.server, name),
                [next(self.unused[name]) for _ in range(DOCUMENTS)],
            )
            for name in dialects
        ]

    def newest_job(self) -> int:
        """The id of the ledger's newest job."""
        with self.pipeline.engine.connect() as connection:
            newest = connection.execute(text("SELECT max(id) FROM extraction.batch_jobs"))
            return newest.scalar() or 0

    def counts(self) -> Mapping[tuple[str, str], int]:
        """What the provider counts."""
        dialects: Any = self.server.statistics()["dialects"]
        return Counter(
            {(name, what): counts[what] for name, counts in dialects.items() for what in COUNTS}
        )


@pytest.fixture(scope="module")
def bench(
    tmp_path_factory: pytest.TempPathFactory, postgres_url: str, shared_server: ServerProcess
) -> Iterator[Bench]:
    root = tmp_path_factory.mktemp("faults")
    collections, documents = root / "collections", root / "documents"
    collections.mkdir()
    documents.mkdir()
    with database(postgres_url, TEMPLATE) as url, pytest.MonkeyPatch.context() as environment:
        environment.setenv("EXTRACTION_HOME", str(root / "home"))
        environment.setenv("EXTRACTION_DATABASE_URL", url)
        environment.setenv("EXTRACTION_COLLECTIONS", str(collections))
        workplace = Workplace(root, collections, documents, environment)
        for name in DIALECTS:
            workplace.declare(name, provider=name)
            path = "/v1" if name == "openai" else ""
            environment.setenv(f"EXTRACTION_{name.upper()}_API_KEY", "k-1")
            environment.setenv(f"EXTRACTION_{name.upper()}_BASE_URL", shared_server.root_url + path)
        pipeline = workplace.open(
            POLL_SECONDS="0.02",
            POLL_MAX_SECONDS="0.05",
            READ_TIMEOUT="0.5",
            CONNECT_TIMEOUT="0.5",
            RESOLVE_GRACE_SECONDS="0",
        )
        unused = {name: iter(registered(workplace, pipeline, name)) for name in DIALECTS}
        yield Bench(workplace, shared_server, pipeline, unused)
        pipeline.engine.dispose()


def registered(workplace: Workplace, pipeline: Pipeline, collection: str) -> list[str]:
    """As many documents as all tests need; in one scan, which costs less than one for each."""
    paths = workplace.write(DOCUMENTS * (len(CASES) + 2), collection, start=NUMBERED_FROM)
    scan(pipeline, pipeline.collection(collection))
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]


@pytest.fixture(autouse=True)
def no_faults_afterwards(bench: Bench) -> Iterator[None]:
    yield
    bench.put()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_fault_ends_as_it_must(bench: Bench, case: Case) -> None:
    before = bench.counts()
    asked = bench.asked(case.only)
    earlier = bench.newest_job()
    bench.put(*(one | {"dialect": dialect} for one in case.faults for dialect in case.only))
    for driven, hashes in asked:
        driven.submit(hashes)
    if case.waits:
        for _ in range(GLANCES):
            assert not tick(bench.pipeline, asked, earlier)
        assert {ends(*one) for one in asked} == {(0, ((None, DOCUMENTS),))}
        bench.put()
    wait_until(lambda: tick(bench.pipeline, asked, earlier))
    made = bench.counts()
    found = {driven.name: ends(driven, hashes) for driven, hashes in asked}
    for dialect, (published, reasons) in found.items():
        jobs_made, again = (made[dialect, what] - before[dialect, what] for what in COUNTS)
        assert (dialect, jobs_made, again) == (dialect, case.jobs, case.again)
        assert (dialect, published) == (dialect, case.published), reasons
        assert sum(count for _, count in reasons) == DOCUMENTS - published
        assert None not in dict(reasons)
        if case.reasons:
            assert dict(reasons) == case.reasons


def test_credit_that_runs_out_stops_the_rest_and_uses_no_attempt_up(bench: Bench) -> None:
    asked = bench.asked(DIALECTS)
    earlier, before = bench.newest_job(), bench.counts()
    bench.put(*({"kind": "no_credit", "dialect": name, "skip": 1} for name in DIALECTS))
    for driven, (first, *rest) in asked:
        assert len(driven.submit([first]).submitted) == 1
        report = driven.submit(rest)
        assert (report.submitted, len(report.waiting), report.stopped) == ([], 1, True)
        assert driven.submit(rest).jobs == []
    assert not tick(bench.pipeline, asked, earlier)
    assert {ends(*one)[1] for one in asked} <= {((None, 2),), ((None, 3),)}
    bench.put()
    wait_until(lambda: tick(bench.pipeline, asked, earlier))
    assert {ends(*one) for one in asked} == {(DOCUMENTS, ())}
    made = bench.counts()
    assert {made[name, "jobs_created"] - before[name, "jobs_created"] for name in DIALECTS} == {2}
    assert all(made[name, COUNTS[1]] == before[name, COUNTS[1]] for name in DIALECTS)


def test_a_key_that_was_replaced_stops_everything_until_the_new_one_is_given(bench: Bench) -> None:
    asked = bench.asked(DIALECTS)
    earlier, before = bench.newest_job(), bench.counts()
    for driven, (first, *_) in asked:
        assert len(driven.submit([first]).submitted) == 1
    bench.put(*({"kind": "key_rotated", "dialect": name} for name in DIALECTS))
    for _ in range(GLANCES):
        assert not tick(bench.pipeline, asked, earlier)
    for driven, (_, *rest) in asked:
        report = driven.submit(rest)
        assert (report.submitted, report.stopped) == ([], True)
    assert {ends(*one) for one in asked} == {(0, ((None, DOCUMENTS),))}
    for name in DIALECTS:
        bench.workplace.environment.setenv(f"EXTRACTION_{name.upper()}_API_KEY", "k-2")
    renewed = bench.workplace.open()
    wait_until(lambda: tick(renewed, asked, earlier))
    renewed.engine.dispose()
    assert {ends(*one) for one in asked} == {(DOCUMENTS, ())}
    made = bench.counts()
    assert {made[name, "jobs_created"] - before[name, "jobs_created"] for name in DIALECTS} == {2}


def tick(pipeline: Pipeline, asked: Sequence[tuple[Driven, Sequence[str]]], earlier: int) -> bool:
    """What the sensor and its runs do, without their pauses; whether nothing is left to do for the
    jobs after `earlier`."""
    poll_due(pipeline, ACTOR, 100, seconds=5)
    with pipeline.engine.connect() as connection:
        open_jobs = connection.execute(
            text(
                "SELECT id, state::text FROM extraction.batch_jobs WHERE id > :earlier"
                " AND state::text = ANY(:states) ORDER BY id"
            ),
            {"earlier": earlier, "states": [JobState.SUBMITTED, *STEPS]},
        ).all()
    for job_id, state in open_jobs:
        step = STEPS.get(JobState(state))
        if step is not None:
            try:
                step(pipeline, job_id, ACTOR)
            except ProviderError:
                continue  # tried again, as the sensor does
    if open_jobs:
        return False
    again = [replace(driven, pipeline=pipeline).submit(hashes) for driven, hashes in asked]
    return not any(report.jobs for report in again)


def ends(driven: Driven, hashes: Sequence[str]) -> tuple[int, tuple[tuple[str | None, int], ...]]:
    """How many documents have a record, and the last reason of each that has none."""
    found = driven.rows(
        "SELECT DISTINCT ON (d.id) e.id IS NOT NULL, i.failure_reason"
        " FROM extraction.documents d LEFT JOIN extraction.extractions e ON e.document_id = d.id"
        " LEFT JOIN extraction.batch_items i ON i.document_id = d.id"
        " WHERE d.document_hash = ANY(:hashes) AND d.collection = :it ORDER BY d.id, i.id DESC",
        hashes=list(hashes),
        it=driven.name,
    )
    reasons = Counter(row[1] for row in found if not row[0])
    return sum(row[0] for row in found), tuple(reasons.items())
