"""Lost create calls at providers that cannot simply be searched.

Field report 2: the batch of a provider without any name or metadata of ours. Until it is proven
there or not there, nothing is sent again; where a repetition is harmless, it is the search.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from socket import socket
from typing import Any

import pytest

from extraction_pipeline.ledger.states import JobState
from extraction_pipeline_tests.batch_server.process import ServerProcess
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.lifecycle.driving import Driven
from extraction_pipeline_tests.providers.scripted_server import (
    ScriptedServer,
    answer,
    scripted_server,
)

CREATES = {
    "anthropic": b"POST /v1/messages/batches ",
    "infrai": b"POST /v1/ai/batch/submit ",
}
LIST = b"GET /v1/messages/batches?"


class Outside:
    """A provider as a test wants it: it drops so many create calls, then it gives `created`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.drops = 0
        self.created: dict[str, Any] = {}
        self.listed: list[dict[str, Any]] = []
        self.results: bytes | None = None
        self.server: ScriptedServer | None = None

    def serve(self, connection: socket) -> None:
        request = self.requests[-1]
        if request.startswith(CREATES[self.name]):
            if self.drops:
                self.drops -= 1
                return
            connection.sendall(answer(200, json.dumps(self.created).encode()))
        elif request.startswith(LIST):
            page = {"data": self.listed, "has_more": False}
            connection.sendall(answer(200, json.dumps(page).encode()))
        elif known := [each for each in self.listed if f"/{each['id']} ".encode() in request]:
            connection.sendall(answer(200, json.dumps(known[0]).encode()))
        elif self.results is not None and b"/results " in request:
            connection.sendall(answer(200, self.results))
        else:
            connection.sendall(answer(404))

    @property
    def requests(self) -> list[bytes]:
        assert self.server is not None
        return self.server.requests

    @property
    def creates(self) -> list[bytes]:
        """The create calls, without the connection's own headers."""
        return [one for one in self.requests if one.startswith(CREATES[self.name])]


@contextmanager
def lost_at(
    name: str, workplace: Workplace, server: ServerProcess
) -> Iterator[tuple[Outside, Driven, int]]:
    """A job of two documents whose create call was dropped after it had arrived."""
    outside = Outside(name)
    outside.drops = 1
    with scripted_server(outside.serve) as running:
        outside.server = running
        workplace.declare(provider=name, model="some-model")
        workplace.write(2)
        pipeline = workplace.open(
            **{
                f"{name.upper()}_BASE_URL": running.url.removesuffix("/v1"),
                f"{name.upper()}_API_KEY": "k-1",
                "READ_TIMEOUT": "1",
                "POLL_MAX_SECONDS": "0.05",
            }
        )
        driven = Driven(pipeline, server)
        driven.scan()
        (job_id,) = driven.submit().waiting
        assert driven.job(job_id).state is JobState.UNRESOLVED
        yield outside, driven, job_id
        pipeline.engine.dispose()


def batch(name: str, status: str = "in_progress", requests: int = 2) -> dict[str, Any]:
    ended = status == "ended"
    return {
        "id": f"msgbatch_{name}",
        "processing_status": status,
        "request_counts": {"expired" if ended else "processing": requests},
        "created_at": datetime.now(UTC).isoformat(),
        "results_url": "https://elsewhere.example/results" if ended else None,
    }


def results_of(driven: Driven) -> bytes:
    rows = driven.rows("SELECT custom_id FROM extraction.batch_items")
    lines = [json.dumps({"custom_id": row[0], "result": {"type": "expired"}}) for row in rows]
    return "\n".join(lines).encode() + b"\n"


def test_a_batch_that_may_be_ours_is_waited_for_until_its_results_prove_it(
    workplace: Workplace, shared_server: ServerProcess
) -> None:
    with lost_at("anthropic", workplace, shared_server) as (outside, driven, job_id):
        outside.listed = [batch("other", requests=3), batch("may_be")]
        driven.later(1)  # long past the time after which absence would count
        sent = driven.resolve(job_id)
        assert sent.state is JobState.UNRESOLVED
        assert "cannot be told yet" in (sent.cause or "")
        assert "msgbatch_may_be" in (sent.cause or "")
        assert len(outside.creates) == 1
        outside.listed = [batch("may_be", "ended")]
        outside.results = results_of(driven)
        assert driven.resolve(job_id).state is JobState.SUBMITTED
        assert driven.job(job_id).job_id == "msgbatch_may_be"
        assert len(outside.creates) == 1
        assert driven.audited()["job_adopted"] == 1


def test_a_batch_that_is_known_to_be_another_job_of_ours_leaves_no_doubt(
    workplace: Workplace, shared_server: ServerProcess
) -> None:
    with lost_at("anthropic", workplace, shared_server) as (outside, driven, job_id):
        outside.created = batch("second")
        workplace.write(2, start=2)
        driven.scan()
        driven.submit()
        outside.listed = [batch("second")]
        driven.later(1, job_id)
        outside.created = batch("third")
        assert driven.resolve(job_id).state is JobState.SUBMITTED
        assert driven.job(job_id).job_id == "msgbatch_third"
        assert driven.audited()["job_proven_absent"] == 1


def test_a_job_that_is_proven_absent_is_sent_again_with_the_same_body(
    workplace: Workplace, shared_server: ServerProcess
) -> None:
    with lost_at("anthropic", workplace, shared_server) as (outside, driven, job_id):
        driven.later(1)
        outside.created = batch("1")
        assert driven.resolve(job_id).state is JobState.SUBMITTED
        assert driven.job(job_id).input_id is None
        first, second = outside.creates
        assert first == second
        assert second.endswith(b"]}") and b'{"requests":[{"custom_id":"' in second


def test_what_stays_uncertain_is_held_and_a_person_can_have_it_searched_for_again(
    workplace: Workplace, shared_server: ServerProcess
) -> None:
    with lost_at("anthropic", workplace, shared_server) as (outside, driven, job_id):
        outside.listed = [batch("may_be") | {"created_at": None}]
        driven.later(49)
        sent = driven.resolve(job_id)
        assert sent.state is JobState.HELD
        assert "msgbatch_may_be" in (sent.cause or "") and "held" in (sent.cause or "")
        assert (driven.audited()["job_held"], len(outside.creates)) == (1, 1)
        assert driven.submit().jobs == []  # its documents are claimed
        outside.listed = []
        outside.created = batch("1")
        assert driven.resolve(job_id).state is JobState.SUBMITTED
        assert len(outside.creates) == 2


def test_where_a_repetition_gives_the_same_job_it_is_the_search(
    workplace: Workplace, shared_server: ServerProcess
) -> None:
    with lost_at("infrai", workplace, shared_server) as (outside, driven, job_id):
        early = driven.resolve(job_id)
        assert early.state is JobState.UNRESOLVED  # the first call could still be under way
        driven.later(1)
        outside.created = {"ok": True, "data": {"batch_id": "b1", "state": "queued"}}
        assert driven.resolve(job_id).state is JobState.SUBMITTED
        first, second = outside.creates
        assert first == second
        key = driven.job(job_id).job_key.encode()
        assert b"\r\nIdempotency-Key: " + key + b"\r\n" in first
        assert driven.job(job_id).job_id == "b1"
        assert driven.audited()["job_proven_absent"] == 0


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_repetition_that_the_provider_may_have_forgotten_is_not_made(
    workplace: Workplace, shared_server: ServerProcess, attempts: int
) -> None:
    with lost_at("infrai", workplace, shared_server) as (outside, driven, job_id):
        if attempts == 2:
            driven.later(1)
            outside.drops = 1
            assert driven.resolve(job_id).state is JobState.UNRESOLVED
        # A second attempt does not make the first one any younger.
        driven.execute("UPDATE extraction.batch_jobs SET created_at = now() - interval '24 hours'")
        if attempts == 1:
            driven.later(24)
        sent = driven.resolve(job_id)
        assert sent.state is JobState.UNRESOLVED
        assert "cannot be told yet" in (sent.cause or "")
        assert len(outside.creates) == attempts


@pytest.mark.parametrize("name", ["infrai", "anthropic"])
def test_with_another_key_and_no_other_job_nothing_is_proven_and_nothing_sent(
    workplace: Workplace, shared_server: ServerProcess, name: str
) -> None:
    """The key was changed in mid-flight: its account may be another, which has no such job."""
    with lost_at(name, workplace, shared_server) as (outside, driven, job_id):
        driven.later(1)
        key = f"{name.upper()}_API_KEY"
        other = Driven(workplace.open(**{key: "k-2"}), shared_server)
        sent = other.resolve(job_id)
        assert sent.state is JobState.UNRESOLVED
        assert "is it the same account?" in (sent.cause or "")
        assert len(outside.creates) == 1
        outside.created = batch("1")
        if name == "infrai":
            outside.created = {"ok": True, "data": {"batch_id": "b1", "state": "queued"}}
        back = Driven(workplace.open(**{key: "k-1"}), shared_server)
        assert back.resolve(job_id).state is JobState.SUBMITTED
        other.pipeline.engine.dispose()
        back.pipeline.engine.dispose()


def test_a_call_whose_end_was_not_seen_may_still_be_under_way(
    workplace: Workplace, shared_server: ServerProcess
) -> None:
    """Its payload is sent with it. The run that sends may have lost its lock, and send on."""
    workplace.environment.setenv("EXTRACTION_SEND_TIMEOUT", "1000")
    with lost_at("anthropic", workplace, shared_server) as (outside, driven, job_id):
        driven.execute("UPDATE extraction.batch_jobs SET state = 'submitting'")
        driven.later(0.25)
        outside.created = batch("late")
        assert driven.resolve(job_id).state is JobState.UNRESOLVED
        driven.later(0.01)  # the grace period is over, the longest call is not
        sent = driven.resolve(job_id)
        assert sent.state is JobState.UNRESOLVED
        assert "counts as absent in" in (sent.cause or "")
        assert len(outside.creates) == 1
        driven.later(0.1)
        assert driven.resolve(job_id).state is JobState.SUBMITTED
        assert len(outside.creates) == 2


@pytest.mark.parametrize("name", ["anthropic", "infrai"])
def test_a_gateway_at_another_port_of_this_machine_is_another_place(
    workplace: Workplace, shared_server: ServerProcess, name: str
) -> None:
    with lost_at(name, workplace, shared_server) as (first, driven, job_id):
        other = Outside(name)
        with scripted_server(other.serve) as running:
            other.server = running
            elsewhere = workplace.open(
                **{f"{name.upper()}_BASE_URL": running.url.removesuffix("/v1")}
            )
            driven.later(1)
            sent = Driven(elsewhere, shared_server).resolve(job_id)
            elsewhere.engine.dispose()
        assert sent.state is JobState.UNRESOLVED
        assert "Set the base URL back" in (sent.cause or "")
        assert (len(first.creates), len(other.creates)) == (1, 0)
