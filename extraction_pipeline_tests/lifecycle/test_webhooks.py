"""Jobs that are announced, and what comes of it: field reports 56 and 59.

A real batch server, a real receiver over the same database, and announcements as they come: many,
at once, too early, too late, of jobs that are nobody's here.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import requests
from sqlalchemy import Connection, text

from extraction_pipeline.batch_server.config import ServerConfig
from extraction_pipeline.errors import ExtractionPipelineError
from extraction_pipeline.installation.local_receiver import local_receiver
from extraction_pipeline.ledger import deliveries, jobs
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.announcements import attend
from extraction_pipeline.lifecycle.collecting import collect
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.polling import poll, poll_due
from extraction_pipeline.lifecycle.publishing import publish_job
from extraction_pipeline.lifecycle.registration import scan
from extraction_pipeline.lifecycle.submission import submit_documents
from extraction_pipeline.settings import load_settings
from extraction_pipeline.webhooks.senders import senders
from extraction_pipeline.webhooks.server import receiving
from extraction_pipeline_tests.batch_server.in_process import served
from extraction_pipeline_tests.batch_server.process import wait_until
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import Hold, answer, forward_then_drop, saying
from extraction_pipeline_tests.faults.proxy import CONTENT, CREATE, POLL, Exchange, Fault, Proxy
from extraction_pipeline_tests.faults.worker import working
from extraction_pipeline_tests.lifecycle.driving import ACTOR, Driven
from extraction_pipeline_tests.webhooks.signing import SECRET, batch_event, fresh_id, headers


class Announcer:
    """The provider's side: it announces jobs to one of several receivers."""

    def __init__(self, driven: Driven, urls: list[str]) -> None:
        self._driven = driven
        self._urls = urls

    def __call__(
        self, job_id: str, delivery_id: str | None = None, *, replica: int = 0, age: float = 0.0
    ) -> int:
        body = batch_event(job_id)
        return requests.post(
            f"{self._urls[replica]}/webhooks/local",
            data=body,
            headers=headers(body, delivery_id=delivery_id, age=age),
            timeout=20,
        ).status_code

    def outcomes(self) -> list[str]:
        return [
            row[0]
            for row in self._driven.rows(
                "SELECT outcome::text FROM extraction.webhook_deliveries ORDER BY id"
            )
        ]


@pytest.fixture
def announce(driven: Driven, database_url: str, workplace: Workplace) -> Iterator[Announcer]:
    """Three receivers over the database of the test."""
    workplace.environment.setenv("EXTRACTION_LOCAL_WEBHOOK_SECRET", SECRET)
    known = senders(load_settings())
    with ExitStack() as stack:
        urls = [
            stack.enter_context(receiving(known, database_url, "127.0.0.1", 0)).url
            for _ in range(3)
        ]
        yield Announcer(driven, urls)


def postponed(driven: Driven, job_id: int) -> str:
    """The provider's id of a job that is at its end there, and not to be read for long here."""
    provider_job_id = driven.job(job_id).job_id
    assert provider_job_id is not None
    provider = driven.pipeline.provider("local")
    wait_until(lambda: provider.status(provider_job_id).phase.is_end)
    driven.execute("UPDATE extraction.batch_jobs SET due_at = now() + interval '1 day'")
    return provider_job_id


def tick(driven: Driven) -> list[str]:
    """What the sensor does; the keys of jobs whose end was read."""
    attend(driven.pipeline)
    readings = poll_due(driven.pipeline, ACTOR, 100, seconds=20)
    return [reading.job_key for reading in readings if reading.ended]


def test_row_56_ten_ids_ten_threads_three_replicas_one_collection(
    driven: Driven, workplace: Workplace, announce: Announcer
) -> None:
    workplace.write(3)
    (job_id,) = driven.submitted()
    provider_job_id = postponed(driven, job_id)
    assert tick(driven) == []

    def everything(number: int) -> int:
        """Announce it, poll it, collect and publish it: as ten daemons would."""
        said = announce(provider_job_id, replica=number % 3)
        try:
            tick(driven)
            collect(driven.pipeline, job_id, ACTOR)
            publish_job(driven.pipeline, job_id, ACTOR)
        except ExtractionPipelineError as error:
            assert "another run" in str(error)
        return said

    with ThreadPoolExecutor(10) as threads:
        assert list(threads.map(everything, range(10))) == [200] * 10
    driven.collect(job_id)
    driven.publish(job_id)
    assert set(announce.outcomes()) <= {"made_due", "settled"}
    assert len(announce.outcomes()) == 10
    audited = driven.audited()
    assert (audited["job_ended"], audited["job_collected"], audited["job_published"]) == (1, 1, 1)
    assert driven.rows("SELECT count(*) FROM extraction.raw_responses")[0][0] == 3
    assert driven.rows("SELECT count(*) FROM extraction.extractions")[0][0] == 3
    assert driven.creates(job_id) == 1


def test_row_59_an_announcement_before_our_commit_waits_for_its_job(
    driven: Driven, workplace: Workplace, proxy: Proxy, announce: Announcer
) -> None:
    workplace.write(2)
    driven.scan()
    proxy.plan(CREATE, forward_then_drop)
    (job_id,) = driven.submit().jobs
    assert driven.job(job_id).state is JobState.UNRESOLVED
    (provider_job_id,) = [
        one["id"]
        for one in requests.get(f"{driven.server.base_url}/batches", timeout=10).json()["data"]
        if one["metadata"]["extraction_job_key"] == driven.job(job_id).job_key
    ]
    assert announce(provider_job_id) == 200
    assert announce.outcomes() == ["unknown_job"]
    assert tick(driven) == []
    driven.resolved(job_id)
    postponed(driven, job_id)
    assert tick(driven) == [driven.job(job_id).job_key]
    assert announce.outcomes() == ["made_due"]
    assert len(driven.finished(job_id).published) == 2
    assert driven.creates(job_id) == 1


def test_row_59_a_job_that_is_never_ours_stays_unknown_for_a_week(
    driven: Driven, announce: Announcer
) -> None:
    assert announce("batch_of_another_project") == 200
    assert tick(driven) == []
    assert announce.outcomes() == ["unknown_job"]
    older = (
        "UPDATE extraction.webhook_deliveries SET received_at = received_at - interval '{} days'"
    )
    driven.execute(older.format(6))
    tick(driven)
    assert announce.outcomes() == ["unknown_job"]
    driven.execute(older.format(2))
    tick(driven)
    assert announce.outcomes() == []


def test_row_59_an_announcement_of_yesterday_is_refused_and_the_poll_does_it(
    driven: Driven, workplace: Workplace, announce: Announcer
) -> None:
    workplace.write(1)
    (job_id,) = driven.submitted()
    provider_job_id = postponed(driven, job_id)
    assert announce(provider_job_id, age=24 * 3600) == 401
    assert (announce.outcomes(), tick(driven)) == ([], [])
    driven.execute("UPDATE extraction.batch_jobs SET due_at = now()")
    assert tick(driven) == [driven.job(job_id).job_key]


def test_an_announcement_that_is_too_early_at_the_provider_is_asked_for_again_soon(
    driven: Driven, workplace: Workplace, announce: Announcer
) -> None:
    """The provider's reading lags behind its announcement: the long interval begins anew."""
    workplace.write(1)
    (job_id,) = driven.submitted()
    provider_job_id = postponed(driven, job_id)
    driven.execute("UPDATE extraction.batch_jobs SET poll_count = 30")
    assert announce(provider_job_id) == 200
    assert driven.job(job_id).poll_count == 0


def test_an_announcement_that_comes_while_its_job_is_read_has_it_read_again(
    driven: Driven, workplace: Workplace, proxy: Proxy, announce: Announcer
) -> None:
    """What that reading says is older than what was announced, and must not postpone it."""
    workplace.write(1)
    (job_id,) = driven.submitted()
    provider_job_id = postponed(driven, job_id)

    def announced_before(said: Fault) -> Fault:
        def fault(exchange: Exchange) -> None:
            assert announce(provider_job_id) == 200
            said(exchange)

        return fault

    for said in (saying(status="in_progress"), answer(404), answer(500)):
        proxy.plan(POLL, announced_before(said))
        driven.execute("UPDATE extraction.batch_jobs SET due_at = now(), poll_count = 30")
        assert tick(driven) == []
    assert announce.outcomes() == ["made_due"] * 3
    assert tick(driven) == [driven.job(job_id).job_key]


def test_an_announcement_does_not_end_the_pause_of_an_account(
    driven: Driven, workplace: Workplace, proxy: Proxy, announce: Announcer
) -> None:
    workplace.write(1)
    (job_id,) = driven.submitted()
    provider_job_id = postponed(driven, job_id)
    proxy.plan(POLL, answer(429, retry_after="500"), times=1)
    assert poll(driven.pipeline, driven.job(job_id), ACTOR).paused
    asked = proxy.count(POLL)
    assert announce(provider_job_id) == 200
    assert announce.outcomes() == ["made_due"]
    assert tick(driven) == []
    assert proxy.count(POLL) == asked
    driven.pause_ends()
    assert tick(driven) == [driven.job(job_id).job_key]


def test_a_worker_that_restarts_finds_what_was_done_and_submits_nothing(
    driven: Driven, workplace: Workplace, proxy: Proxy, announce: Announcer
) -> None:
    """Killed between fetching and committing; announced again; restarted twice."""
    workplace.write(3)
    (job_id,) = driven.submitted()
    provider_job_id, delivery_id = postponed(driven, job_id), fresh_id()
    assert announce(provider_job_id, delivery_id) == 200
    assert tick(driven) == [driven.job(job_id).job_key]
    hold = Hold(forward=True)
    proxy.plan(CONTENT, hold)
    with working("collect", str(job_id)) as worker:
        assert hold.reached.wait(20)
        worker.kill()
    wait_until(lambda: not driven.rows("SELECT FROM pg_locks WHERE locktype = 'advisory'"))
    assert (announce(provider_job_id, delivery_id), announce(provider_job_id)) == (200, 200)
    assert driven.submit().jobs == []
    restarted = workplace.open()
    _, landing = collect(restarted, job_id, ACTOR)
    assert (landing.landed, len(publish_job(restarted, job_id, ACTOR).published)) == (3, 3)
    restarted.engine.dispose()
    # The marker of the job says that it is done, and that of the version that it is this one.
    again = workplace.open()
    assert announce(provider_job_id) == 200
    job, landing = collect(again, job_id, ACTOR)
    assert (job.state, landing.landed) == (JobState.PUBLISHED, 0)
    assert publish_job(again, job_id, ACTOR).published == []
    again.engine.dispose()
    assert driven.submit().jobs == []
    assert announce.outcomes() == ["made_due", "settled", "settled"]
    assert (driven.creates(job_id), driven.audited()["job_collected"]) == (1, 1)


def test_two_daemons_meet_and_forget_each_delivery_once(
    driven: Driven, workplace: Workplace, announce: Announcer
) -> None:
    workplace.write(1)
    (job_id,) = driven.submitted()
    provider_job_id = driven.job(job_id).job_id
    for _ in range(5):
        announce("batch_early")
    driven.execute(
        "UPDATE extraction.webhook_deliveries SET job_id = :job_id", job_id=provider_job_id
    )

    def in_four(step: Callable[[Connection], int]) -> int:
        def once(_: int) -> int:
            with driven.pipeline.engine.begin() as connection:
                return step(connection)

        with ThreadPoolExecutor(4) as threads:
            return sum(threads.map(once, range(4)))

    assert in_four(deliveries.meet) == 5
    assert announce.outcomes() == ["made_due"] * 5
    assert in_four(deliveries.forget_old) == 0
    driven.execute("UPDATE extraction.webhook_deliveries SET received_at = '2026-01-01'")
    assert in_four(deliveries.forget_old) == 5


class Announced:
    """A pipeline whose batch server tells of its jobs."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.collection = pipeline.collection("notes")

    def close(self) -> None:
        self.pipeline.engine.dispose()

    def submitted_and_postponed(self) -> jobs.JobRow:
        """A job of the one new note, which is not due for long."""
        scan(self.pipeline, self.collection)
        (job_id,) = submit_documents(
            self.pipeline, self.collection, self.collection.active, actor=ACTOR
        ).submitted
        self.execute("UPDATE extraction.batch_jobs SET due_at = now() + interval '1 day'")
        with self.pipeline.engine.connect() as connection:
            return jobs.job_by_id(connection, job_id)

    def ended_there(self, job: jobs.JobRow) -> bool:
        return self.pipeline.provider("local").status(job.job_id or "").phase.is_end

    def read(self) -> list[str]:
        """What the sensor does; the keys of jobs whose end was read."""
        attend(self.pipeline)
        readings = poll_due(self.pipeline, ACTOR, 100, seconds=20)
        return [reading.job_key for reading in readings if reading.ended]

    def outcomes(self) -> Counter[str]:
        with self.pipeline.engine.connect() as connection:
            counted = deliveries.counts(connection)
        return Counter({outcome.value: number for outcome, number in counted.items()})

    def count(self, table: str) -> int:
        with self.pipeline.engine.connect() as connection:
            return int(
                connection.execute(text(f"SELECT count(*) FROM extraction.{table}")).scalar_one()
            )

    def execute(self, statement: str) -> None:
        with self.pipeline.engine.begin() as connection:
            connection.execute(text(statement))


HOW = {
    "as it should be": (None, {"made_due": 1}, True),
    "ten times with one id": ({"what": "repeated"}, {"made_due": 1}, True),
    "ten times with ten ids": ({"what": "renumbered"}, {"made_due": 10}, True),
    "with one for nobody's job": ({"what": "foreign"}, {"unknown_job": 1, "made_due": 1}, True),
    "a day late": ({"what": "late"}, {}, False),
    "not at all": ({"what": "lost"}, {}, False),
}
"""How a job is announced, what is kept of that, and whether it is read without being due."""


def test_rows_56_and_59_however_a_job_is_announced_its_records_are_there_once(
    workplace: Workplace, tmp_path: Path
) -> None:
    """The batch server tells a receiver as `dev` has it, by a plan of faults."""
    targets = tmp_path / "webhooks.json"
    server = ServerConfig(tmp_path / "served", port=0, delay=0.4, webhooks=targets)
    with (
        served(server) as root_url,
        closing(Announced(workplace.open(f"{root_url}/v1", POLL_SECONDS="3600"))) as desk,
        local_receiver(load_settings(), 0, targets),
    ):
        for number, (fault, kept, announced) in enumerate(HOW.values()):
            plan = [] if fault is None else [{"kind": "webhook", **fault}]
            requests.put(f"{root_url}/faults", json={"faults": plan}, timeout=5)
            workplace.write(1, start=number)
            job = desk.submitted_and_postponed()
            if announced:
                wait_until(lambda kept=kept: desk.outcomes() == kept)
            else:
                wait_until(lambda job=job: desk.ended_there(job))
                assert desk.read() == []
                desk.execute("UPDATE extraction.batch_jobs SET due_at = now()")
            assert desk.read() == [job.job_key]
            collect(desk.pipeline, job.id, ACTOR)
            assert len(publish_job(desk.pipeline, job.id, ACTOR).published) == 1
            assert desk.outcomes() == kept
            desk.execute("DELETE FROM extraction.webhook_deliveries")
        assert desk.count("raw_responses") == desk.count("extractions") == len(HOW)
        said = requests.get(f"{root_url}/statistics", timeout=5).json()
        assert (said["jobs_created"], said["requests_accepted"]) == (len(HOW), len(HOW))
    assert not targets.exists()
