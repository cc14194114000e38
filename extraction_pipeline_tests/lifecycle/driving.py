"""The steps of the lifecycle as tests take them, and what they look at afterwards."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, text

from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.ledger import jobs
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.ledger.summary import CollectionSummary, summarize
from extraction_pipeline.lifecycle.collecting import collect
from extraction_pipeline.lifecycle.landing import Landing
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.polling import poll
from extraction_pipeline.lifecycle.publishing import Publication, publish_job
from extraction_pipeline.lifecycle.registration import ScanReport, scan
from extraction_pipeline.lifecycle.resolution import resolve
from extraction_pipeline.lifecycle.sent import Sent
from extraction_pipeline.lifecycle.submission import SubmissionReport, submit_documents
from extraction_pipeline_tests.batch_server.process import ServerProcess, wait_until

ACTOR = "test"

SOURCES = (
    "SELECT s.path, d.document_hash, s.problem IS NOT NULL, s.vanished_at IS NOT NULL"
    " FROM extraction.document_sources s LEFT JOIN extraction.documents d ON d.id = s.document_id"
    " ORDER BY s.id"
)
"""Path, document, whether it is a problem, and whether it is gone."""


@dataclass(frozen=True)
class Driven:
    """One collection of a pipeline, and the batch server behind it."""

    pipeline: Pipeline
    server: ServerProcess
    name: str = "notes"

    @property
    def collection(self) -> Collection:
        return self.pipeline.collection(self.name)

    def scan(self) -> ScanReport:
        return scan(self.pipeline, self.collection)

    def submit(self, hashes: Sequence[str] | None = None) -> SubmissionReport:
        return submit_documents(
            self.pipeline, self.collection, self.collection.active, hashes=hashes, actor=ACTOR
        )

    def submitted(self, count: int = 1) -> tuple[int, ...]:
        """Scan and submit everything; the ids of the jobs, which all must have gone out."""
        self.scan()
        report = self.submit()
        assert (len(report.submitted), report.waiting) == (count, [])
        return tuple(report.submitted)

    def resolve(self, job_id: int) -> Sent:
        return resolve(self.pipeline, job_id, ACTOR)

    def resolved(self, job_id: int) -> None:
        """Resolve again and again, as the sensor does, until the provider has the job."""
        wait_until(lambda: self.resolve(job_id).state is JobState.SUBMITTED)

    def ended(self, job_id: int) -> jobs.JobRow:
        """Poll again and again, as the sensor does, until the job is at its end."""

        def end() -> jobs.JobRow | None:
            job = self.job(job_id)
            if job.state is JobState.SUBMITTED:
                poll(self.pipeline, job, ACTOR)
                return None
            return job

        job: jobs.JobRow = wait_until(end)
        return job

    def collect(self, job_id: int) -> tuple[jobs.JobRow, Landing]:
        return collect(self.pipeline, job_id, ACTOR)

    def publish(self, job_id: int) -> Publication:
        return publish_job(self.pipeline, job_id, ACTOR)

    def finished(self, job_id: int) -> Publication:
        """Take a submitted job to its end."""
        self.ended(job_id)
        self.collect(job_id)
        return self.publish(job_id)

    def job(self, job_id: int) -> jobs.JobRow:
        with self.pipeline.engine.connect() as connection:
            return jobs.job_by_id(connection, job_id)

    def summary(self) -> CollectionSummary:
        """The counts by status, which must add up."""
        with self.pipeline.engine.connect() as connection:
            counted = summarize(
                connection,
                self.name,
                self.collection.active_version,
                self.collection.active.max_attempts,
            )
        assert counted.documents == sum(
            (
                counted.published,
                counted.invalid,
                counted.unreadable,
                counted.failed,
                counted.waiting,
            )
        )
        return counted

    def creates(self, job_id: int) -> int:
        """How often the server took this job, by its own statistics."""
        return self.creates_by_key()[self.job(job_id).job_key]

    def creates_by_key(self) -> Counter[str]:
        """How often the server took each job, by job key."""
        by_metadata = self.server.statistics()["jobs_by_metadata"]
        assert isinstance(by_metadata, dict)
        return Counter(by_metadata.get("extraction_job_key", {}))

    def rows(self, statement: str, **values: object) -> Sequence[Row[Any]]:
        with self.pipeline.engine.connect() as connection:
            return connection.execute(text(statement), values).all()

    def execute(self, statement: str, **values: object) -> None:
        with self.pipeline.engine.begin() as connection:
            connection.execute(text(statement), values)

    def pause_ends(self) -> None:
        """Let the pauses of all accounts be over, just now."""
        self.execute("UPDATE extraction.account_pauses SET until = now() WHERE until > now()")

    def later(self, hours: float, job_id: int | None = None) -> None:
        """Let the create calls of jobs, or of one, lie so many hours further back."""
        back = {"back": hours * 3600, "job": job_id}
        self.execute(
            "UPDATE extraction.batch_jobs"
            " SET submit_started_at = submit_started_at - make_interval(secs => :back),"
            " created_at = created_at - make_interval(secs => :back)"
            " WHERE id = :job OR :job IS NULL",
            **back,
        )
        self.execute(
            "UPDATE extraction.audit_events SET at = at - make_interval(secs => :back)"
            " WHERE batch_job_id = :job OR :job IS NULL",
            **back,
        )

    def items(self) -> Counter[tuple[str, str | None, str | None]]:
        """How many requests there are by state, failure kind and reason."""
        found = self.rows(
            "SELECT state::text, failure_kind, failure_reason FROM extraction.batch_items"
        )
        return Counter((row[0], row[1], row[2]) for row in found)

    def audited(self) -> Counter[str]:
        """How many audit rows there are by event."""
        return Counter(row[0] for row in self.rows("SELECT event FROM extraction.audit_events"))


def current(driven: Driven) -> dict[str, str | None]:
    """Document by path, of what is there now."""
    return {row[0]: row[1] for row in driven.rows(SOURCES) if not row[3]}
