"""Any order of steps, with any faults in between: what must hold, holds after each of them.

The steps are those of the sensor, of receivers of webhooks, of runs and of people; the faults are
those of networks, providers, models and the database, and any step may die at any of its crash
points. At the end all faults are over, and every document must come to
an end that a person can see.
"""

import time
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from hypothesis.strategies import SearchStrategy

from extraction_pipeline.errors import DatabaseUnavailable
from extraction_pipeline.ledger import deliveries, jobs
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.announcements import attend
from extraction_pipeline.lifecycle.decisions import adopt, give_up
from extraction_pipeline.lifecycle.holding import GONE_PATIENCE
from extraction_pipeline.lifecycle.polling import poll, poll_due
from extraction_pipeline.lifecycle.publishing import replay
from extraction_pipeline.lifecycle.releasing import release
from extraction_pipeline.providers.errors import CallFailed, CallRefused
from extraction_pipeline_tests.batch_server.process import ServerProcess, wait_until
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import (
    answer,
)
from extraction_pipeline_tests.faults.proxy import (
    POLL,
    Proxy,
)
from extraction_pipeline_tests.lifecycle.driving import ACTOR
from extraction_pipeline_tests.lifecycle.state_machine_bench import Bench, Died

MAX_ATTEMPTS = 2
EXAMPLES_PER_HUNDRED = 20
"""Of the examples that a property has: one of them lasts seconds."""
STEP_COUNT = 12
REASON = "decided by hand"
LOOKS = 20
"""At jobs that were given up, while the server is still at work on them."""
TO_SEND = (
    JobState.PREPARING,
    JobState.PREPARED,
    JobState.SUBMITTING,
    JobState.UNRESOLVED,
)
CREATING = (
    "create never arrives",
    "create is taken and lost",
    "create is taken and answered 500",
    "create is limited",
    "create finds no credit",
    "create is rejected",
    "database gone after create",
)
SENDING = (
    "upload fails",
    "upload is lost",
    "database gone after upload",
    "search fails",
    *2 * CREATING,
)
READING = (
    "poll fails",
    "poll finds nothing",
    "poll is late",
    "job fails",
    "database gone after poll",
)
RESULTS = (
    "download fails",
    "download is cut",
    "database gone after download",
    "rows are shuffled",
    "a row is missing",
    "a row comes twice",
    "a row is no JSON",
    "an answer is no JSON",
    "an answer is refused",
)
NOTHING: tuple[str, ...] = ()
STEPS = (
    ("new_documents", NOTHING),
    ("a_source_vanishes", NOTHING),
    ("replay", NOTHING),
    ("go_on_in_another_process", NOTHING),
    ("publish", NOTHING),
    ("poll", READING),
    ("collect", READING + RESULTS),
    ("collect", READING + RESULTS),
    ("resolve", SENDING),
    ("resolve_later", SENDING),
    ("submit", SENDING),
    ("submit", SENDING),
    ("submit", SENDING),
    ("tick", READING + RESULTS),
    ("tick", NOTHING),
    ("tick", NOTHING),
    ("deliver", READING),
    ("forgotten", NOTHING),
    ("give_up", NOTHING),
    ("adopt", NOTHING),
    ("release", NOTHING),
    ("late_results", NOTHING),
    ("late_results", NOTHING),
)
"""Steps with the faults that can meet them. What one does not meet waits for a later one."""
ARRIVALS = st.none() | st.integers(1, 4)
"""At which of the crash points that it comes by a step dies, if at all."""


def step_and_faults(step: tuple[str, tuple[str, ...]]) -> SearchStrategy[tuple[str, list[str]]]:
    name, faults = step
    planned = (
        st.lists(st.sampled_from(faults), min_size=1, max_size=2)
        if faults
        else st.just(list[str]())
    )
    return st.tuples(st.just(name), planned)


class AnyOrder(RuleBasedStateMachine):
    """Subclassed with its bench by the test."""

    bench: Bench

    def __init__(self) -> None:
        super().__init__()
        self.bench.reset()
        self.driven = self.bench.driven
        self.faults = self.bench.faults()
        self.written = 0
        self.published: Counter[str] = Counter()
        self.releases = 0
        self.announced = 0
        self.dies_at: int | None = None

    @initialize(count=st.integers(1, 4))
    def first_documents(self, count: int) -> None:
        self._write(count)

    @rule(planned=st.sampled_from(STEPS).flatmap(step_and_faults), dies_at=ARRIVALS)
    def step(self, planned: tuple[str, list[str]], dies_at: int | None) -> None:
        name, faults = planned
        for fault in faults:
            self.faults[fault]()
        self.dies_at = dies_at
        getattr(self, name)()
        self.dies_at = None

    def new_documents(self) -> None:
        self._write(2)

    def a_source_vanishes(self) -> None:
        for path in sorted((self.bench.workplace.documents / "notes").iterdir())[:1]:
            path.unlink()
        self.driven.scan()

    def submit(self) -> None:
        self._write(1)
        self._may_fail(self.driven.submit)

    def resolve(self) -> None:
        for job in self._jobs(*TO_SEND):
            self._may_fail(partial(self.driven.resolve, job.id))

    def resolve_later(self) -> None:
        self.driven.execute(
            "UPDATE extraction.batch_jobs SET submit_started_at = submit_started_at - interval '1h'"
        )
        self.resolve()

    def poll(self) -> None:
        for job in self._jobs(JobState.SUBMITTED):
            self._may_fail(partial(poll, self.driven.pipeline, job, ACTOR))

    def collect(self) -> None:
        for job in self._jobs(JobState.ENDED):
            self._may_fail(partial(self.driven.collect, job.id))

    def publish(self) -> None:
        for job in self._jobs(JobState.COLLECTED):
            self._may_fail(partial(self._publish, job.id))

    def tick(self) -> None:
        self.resolve_later()
        self.poll()
        self.collect()
        self.publish()

    def replay(self) -> None:
        self._may_fail(
            lambda: replay(self.driven.pipeline, self.driven.collection, "v1", self._hashes(), None)
        )

    def deliver(self) -> None:
        """Every job of the provider is announced, by a new id and by one that was there before."""
        self.announced += 1
        for (job_id,) in self.driven.rows(
            "SELECT job_id FROM extraction.batch_jobs WHERE job_id IS NOT NULL"
        ):
            for number in {1, self.announced}:
                event = deliveries.Delivery("local", f"{job_id} {number}", "ended", job_id)
                with self.driven.pipeline.engine.begin() as connection:
                    deliveries.keep(connection, event)
        self._may_fail(partial(attend, self.driven.pipeline))
        self._may_fail(partial(poll_due, self.driven.pipeline, ACTOR, 100, seconds=5))

    def forgotten(self) -> None:
        """The provider does not know its jobs for so long that they are held for a person."""
        if not self._jobs(JobState.SUBMITTED):
            self.submit()
        for job in self._jobs(JobState.SUBMITTED)[:1]:
            self.bench.proxy.plan(POLL, answer(404), times=GONE_PATIENCE)
            for _ in range(GONE_PATIENCE):
                self._may_fail(partial(poll, self.driven.pipeline, self.driven.job(job.id), ACTOR))
            self.bench.proxy.forget_plans(POLL)  # else a person is told, too, that it is unknown

    def give_up(self) -> None:
        self.forgotten()
        for job in self._jobs(JobState.HELD):
            self._may_fail(partial(give_up, self.driven.pipeline, job.id, ACTOR, REASON))

    def adopt(self) -> None:
        self.forgotten()
        for job in self._jobs(JobState.HELD):
            if job.job_id is not None:
                batch = partial(adopt, self.driven.pipeline, job.id, job.job_id, ACTOR, REASON)
                self._may_fail(batch)

    def release(self) -> None:
        """A person lets all that failed be asked about again, with all attempts."""
        if self._jobs():
            self.releases += 1
            release(self.driven.pipeline, "notes", "v1", self._hashes(), ACTOR, REASON)

    def late_results(self) -> None:
        """Jobs that were given up are looked at again, as after some hours, when their documents
        have been asked about once more."""
        self.give_up()
        self._may_fail(self.driven.submit)
        self._may_fail(self._look_until_one_ends)

    def _look_until_one_ends(self) -> None:
        for _ in range(LOOKS):
            self.driven.execute(
                "UPDATE extraction.batch_jobs SET due_at = now() WHERE failure_code = 'given_up'"
            )
            read = poll_due(self.driven.pipeline, ACTOR, 100, seconds=5)
            if not read or any(one.ended for one in read):
                return
            time.sleep(0.02)

    def go_on_in_another_process(self) -> None:
        self.driven.pipeline.engine.dispose()

    @invariant()
    def no_job_was_made_twice(self) -> None:
        keys = [row[0] for row in self.driven.rows("SELECT job_key FROM extraction.batch_jobs")]
        creates = self.driven.creates_by_key()
        assert all(creates[key] <= 1 for key in keys)

    @invariant()
    def every_document_has_one_status(self) -> None:
        counted = self.driven.summary()
        assert counted.documents + counted.vanished == self.written

    @invariant()
    def nothing_is_published_twice(self) -> None:
        assert all(times == 1 for times in self.published.values())
        ((rows, documents),) = self.driven.rows(
            "SELECT count(*), count(DISTINCT document_id) FROM extraction.extractions"
        )
        assert rows == documents

    @invariant()
    def nobody_waits_for_a_job_that_is_over(self) -> None:
        assert not self.driven.rows(
            "SELECT FROM extraction.batch_items i JOIN extraction.batch_jobs j"
            " ON j.id = i.batch_job_id"
            " WHERE (i.state = 'claimed' AND j.state = 'collected')"
            " OR (i.state IN ('claimed', 'answered')"
            "     AND j.state IN ('published', 'rejected', 'failed'))"
        )

    @invariant()
    def attempts_are_bounded_and_a_record_is_not_asked_for_again(self) -> None:
        ((most,),) = self.driven.rows(
            "SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM extraction.batch_items"
            " WHERE failure_kind IN ('model', 'transport') GROUP BY document_id) f"
        )
        assert most <= MAX_ATTEMPTS * (1 + self.releases)
        assert not self.driven.rows(
            "SELECT FROM extraction.batch_items i JOIN extraction.extractions e"
            " ON e.document_id = i.document_id WHERE i.state = 'claimed'"
        )

    def teardown(self) -> None:
        """No more faults: everything comes to an end."""
        self.bench.proxy.forget_plans()

        def over() -> bool:
            self.tick()
            for job in self._jobs(JobState.HELD):
                self.driven.resolve(job.id)  # a person has it searched for again
            waiting = self._jobs(
                JobState.HELD, *TO_SEND, JobState.SUBMITTED, JobState.ENDED, JobState.COLLECTED
            )
            return not waiting and not self.driven.submit().jobs

        wait_until(over)
        assert self.driven.summary().waiting == 0
        self.no_job_was_made_twice()
        self.nobody_waits_for_a_job_that_is_over()

    def _write(self, count: int) -> None:
        self.bench.workplace.write(count, start=self.written)
        self.written += count
        if self.dies_at is not None:
            self._may_fail(self.driven.scan)
        self.driven.scan()

    def _hashes(self) -> list[str]:
        return [
            row[0] for row in self.driven.rows("SELECT document_hash FROM extraction.documents")
        ]

    def _jobs(self, *states: JobState) -> list[jobs.JobRow]:
        """Jobs in these states, or all."""
        found = self.driven.rows(
            "SELECT id FROM extraction.batch_jobs WHERE state::text = ANY(:states) ORDER BY id",
            states=[state.value for state in states or JobState],
        )
        return [self.driven.job(row[0]) for row in found]

    def _publish(self, job_id: int) -> None:
        self.published.update(self.driven.publish(job_id).published)

    def _may_fail(self, step: Callable[[], object]) -> None:
        """A step may meet a fault that was planned, and says so by one of our errors; or it dies.

        Only the first one of a rule does: the others are those of the next process."""
        try:
            if self.dies_at is None:
                step()
            else:
                with self.bench.dying(self.dies_at):
                    step()
        except Died:
            self.dies_at = None
        except (CallFailed, CallRefused, DatabaseUnavailable):
            return


@pytest.mark.long
def test_any_order_of_steps_and_faults(
    workplace: Workplace, proxy: Proxy, shared_server: ServerProcess, postgres_url: str
) -> None:
    bench = Bench(workplace, proxy, shared_server, postgres_url, MAX_ATTEMPTS)
    machine = type("Machine", (AnyOrder,), {"bench": bench})
    try:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=settings().max_examples * EXAMPLES_PER_HUNDRED // 100,
                stateful_step_count=STEP_COUNT,
                deadline=None,
                phases=[Phase.reuse, Phase.generate],  # shrinking would last many minutes
                print_blob=True,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        bench.close()
