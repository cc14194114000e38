"""The ways in which a provider ends a job, and what becomes of the members without an answer."""

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from extraction_pipeline.ledger import items
from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.collecting import EMPTY_END_PATIENCE
from extraction_pipeline.providers.errors import CallFailed
from extraction_pipeline_tests.batch_server.chat_endpoint import (
    Answer,
    chat_endpoint,
    completion,
    refusal,
)
from extraction_pipeline_tests.batch_server.process import ServerProcess, running_server, wait_until
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import saying
from extraction_pipeline_tests.faults.proxy import POLL, Proxy
from extraction_pipeline_tests.lifecycle.driving import Driven
from extraction_pipeline_tests.lifecycle.model_answers import NOTHING_STATED


class Model:
    """Answers by the number of the note: some are refused. After `patience` requests it answers no
    more until it is released, and then slowly."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.refused: set[int] = set()
        self.patience = 1000
        self.asked: list[int] = []
        self.released = threading.Event()

    def answer(self, body: dict[str, Any]) -> Answer:
        number = int(str(body["messages"][-1]["content"]).partition("Record ")[2].split()[0])
        self.asked.append(number)
        if len(self.asked) > self.patience:
            self.released.wait(20)
            time.sleep(0.1)  # the server looks a few times a second whether to go on
        return refusal(400) if number in self.refused else completion(json.dumps(NOTHING_STATED))


@pytest.fixture(scope="module")
def model() -> Iterator[tuple[Model, str]]:
    model = Model()
    with chat_endpoint(model.answer) as endpoint:
        yield model, endpoint.url
        model.released.set()


@pytest.fixture(scope="module")
def relay_server(
    model: tuple[Model, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """A batch server in front of that model, which it asks one request at a time."""
    state = tmp_path_factory.mktemp("relay") / "state"
    with running_server(state, relay_url=model[1], relay_concurrency=1, relay_attempts=1) as server:
        yield server


def relayed(workplace: Workplace, server: ServerProcess, model: Model, **values: object) -> Driven:
    model.reset()
    workplace.declare("notes", "", model="any", **values)
    return Driven(workplace.open(server.base_url, POLL_MAX_SECONDS="0.05"), server)


def test_a_batch_with_an_error_file_only_is_no_crash_and_no_success(
    workplace: Workplace, model: tuple[Model, str], relay_server: ServerProcess
) -> None:
    """Field reports 16, 17, 18: completed, all lines failed, no output file."""
    driven = relayed(workplace, relay_server, model[0])
    model[0].refused = {0, 1, 2}
    workplace.write(3)
    (job_id,) = driven.submitted()
    publication = driven.finished(job_id)
    assert (publication.published, publication.failed) == ([], 3)
    assert [row[0] for row in driven.rows("SELECT kind FROM extraction.result_files")] == ["error"]
    assert driven.items() == {("failed", "rejected", "rejected:c"): 3}
    assert (driven.job(job_id).state, driven.summary().failed) == (JobState.PUBLISHED, 3)
    assert driven.submit().jobs == []


def test_answered_and_failed_together_are_what_was_sent(
    workplace: Workplace, model: tuple[Model, str], relay_server: ServerProcess
) -> None:
    """Field report 19: the error file was never read, and failures vanished."""
    driven = relayed(workplace, relay_server, model[0])
    model[0].refused = {1, 3}
    workplace.write(5)
    (job_id,) = driven.submitted()
    driven.ended(job_id)
    assert driven.collect(job_id)[1].landed == 5
    publication = driven.publish(job_id)
    assert (len(publication.published), publication.failed) == (3, 2)
    counted = driven.summary()
    assert (counted.published, counted.failed, counted.documents) == (3, 2, 5)


def test_a_cancelled_batch_gives_what_was_done_and_the_rest_back(
    workplace: Workplace, model: tuple[Model, str], relay_server: ServerProcess
) -> None:
    """Field reports 9, 11, 22: paid answers are kept, and no attempt is counted for the rest."""
    driven = relayed(workplace, relay_server, model[0], max_attempts=1)
    model[0].patience = 2
    workplace.write(12)
    (job_id,) = driven.submitted()
    wait_until(lambda: len(model[0].asked) == 3)
    driven.pipeline.provider("local").cancel(driven.job(job_id).job_id or "")
    model[0].released.set()
    assert driven.ended(job_id).phase == "cancelled"
    done = len(driven.finished(job_id).published)
    assert 2 <= done == len(model[0].asked) < 12
    assert driven.items() == {
        ("published", None, None): done,
        ("released", None, "cancelled"): 12 - done,
    }
    assert driven.summary().waiting == 12 - done
    report = driven.submit()
    assert report.documents == 12 - done
    driven.finished(report.submitted[0])
    assert driven.summary().published == 12
    assert sorted(model[0].asked) == list(range(12))  # nobody was asked about twice


def test_an_expired_batch_gives_what_was_done_and_only_the_rest_is_sent_again(
    workplace: Workplace, model: tuple[Model, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Field reports 12, 13, 14: a paid output file that nobody read, and a batch sent whole."""
    state = tmp_path_factory.mktemp("expiring") / "state"
    with running_server(
        state, relay_url=model[1], relay_concurrency=1, relay_attempts=1, window=0.8
    ) as server:
        driven = relayed(workplace, server, model[0], max_attempts=2)
        model[0].patience = 2
        workplace.write(12)
        (job_id,) = driven.submitted()
        expires_at = driven.pipeline.provider("local").status(driven.job(job_id).job_id or "")
        assert expires_at.expires_at is not None
        over = expires_at.expires_at.timestamp() + 1  # it is told in whole seconds
        wait_until(lambda: time.time() > over)
        model[0].released.set()
        assert driven.ended(job_id).phase == "expired"
        done = len(driven.finished(job_id).published)
        assert 2 <= done == len(model[0].asked) < 12
        assert driven.items() == {
            ("published", None, None): done,
            ("failed", "transport", "expired"): 12 - done,
        }
        assert driven.summary().waiting == 12 - done  # one attempt of two is used up
        server.restart(window=3600)
        (second,) = driven.submit().submitted
        assert driven.job(second).request_count == 12 - done
        driven.finished(second)
        assert driven.summary().published == 12
        assert sorted(model[0].asked) == list(range(12))


def failed(code: str | None) -> dict[str, object]:
    return {
        "status": "failed",
        "output_file_id": None,
        "error_file_id": None,
        "request_counts": None,
        "errors": {"data": [{"code": code, "message": "about Mr. Fictional Name"}]},
    }


@pytest.mark.parametrize(
    ("code", "item", "sent_again"),
    [
        ("token_limit_exceeded", ("released", None, "token_limit_exceeded"), True),
        ("server_error", ("released", None, "server_error"), True),
        ("insufficient_quota", ("failed", "account", "insufficient_quota"), True),
        ("invalid_json_line", ("failed", "rejected", "invalid_json_line"), False),
        (None, ("failed", "model", "job_failed"), False),
    ],
)
def test_a_batch_that_failed_as_a_whole_is_judged_by_its_code(
    driven: Driven,
    workplace: Workplace,
    proxy: Proxy,
    code: str | None,
    item: tuple[str, str | None, str],
    sent_again: bool,
) -> None:
    """Field reports 15, 40, 41: a queue that is full or an empty account uses up no attempt."""
    workplace.declare(max_attempts=1)
    driven = Driven(workplace.open(), driven.server)
    workplace.write(2)
    (job_id,) = driven.submitted()
    proxy.plan(POLL, saying(**failed(code)), times=None)
    driven.ended(job_id)
    job, landing = driven.collect(job_id)
    assert (job.state, job.failure_code, landing.landed) == (JobState.FAILED, code, 0)
    assert driven.publish(job_id).published == []
    assert driven.items() == {item: 2}
    counted = driven.summary()
    assert (counted.waiting, counted.failed) == ((2, 0) if sent_again else (0, 2))
    proxy.forget_plans()
    again = driven.submit()
    assert again.documents == (2 if sent_again else 0)
    published = [len(driven.finished(other).published) for other in again.submitted]
    assert published == ([1, 1] if code == "token_limit_exceeded" else [2] * sent_again)


@pytest.mark.parametrize("status", ["completed", "expired", "cancelled"])
def test_result_files_that_are_not_listed_yet_are_waited_for(
    driven: Driven, workplace: Workplace, proxy: Proxy, status: str
) -> None:
    """Field report 13: nothing is asked for again while a paid answer may still come."""
    workplace.write(2)
    (job_id,) = driven.submitted()
    driven.ended(job_id)
    late = saying(
        status=status,
        output_file_id=None,
        request_counts={"total": 2, "completed": 2, "failed": 0},
    )
    proxy.plan(POLL, late, times=2)
    for _ in range(2):
        with pytest.raises(CallFailed, match="not"):
            driven.collect(job_id)
        assert driven.job(job_id).state is JobState.ENDED
    assert driven.items() == {("claimed", None, None): 2}
    assert driven.collect(job_id)[1].landed == 2


def test_result_files_that_never_come_are_not_waited_for_for_ever(
    driven: Driven, workplace: Workplace, proxy: Proxy
) -> None:
    workplace.write(2)
    (job_id,) = driven.submitted()
    proxy.plan(
        POLL,
        saying(
            status="expired",
            output_file_id=None,
            request_counts={"total": 2, "completed": 2, "failed": 0},
        ),
        times=None,
    )
    driven.ended(job_id)
    for _ in range(EMPTY_END_PATIENCE):
        with pytest.raises(CallFailed):
            driven.collect(job_id)
    assert driven.collect(job_id)[1].missing == 2
    assert driven.items() == {("failed", "rejected", "results_lost"): 2}


@pytest.mark.parametrize("status", ["in_progress", "finalizing", "cancelling", "unheard_of"])
def test_a_reading_that_takes_the_end_back_ends_nobody(
    driven: Driven, workplace: Workplace, proxy: Proxy, status: str
) -> None:
    """A second reading may come from a replica that lags: the documents were paid for already."""
    workplace.write(2)
    (job_id,) = driven.submitted()
    driven.ended(job_id)
    proxy.plan(POLL, saying(status=status, output_file_id=None, request_counts=None))
    with pytest.raises(CallFailed):
        driven.collect(job_id)
    assert driven.job(job_id).state is JobState.ENDED
    assert driven.items() == {("claimed", None, None): 2}
    assert driven.collect(job_id)[1].landed == 2
    assert len(driven.publish(job_id).published) == 2


def test_no_word_of_the_providers_about_a_document_is_kept(
    driven: Driven, workplace: Workplace, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    workplace.write(1)
    (job_id,) = driven.submitted()
    proxy.plan(POLL, saying(**failed("invalid_request")), times=None)
    driven.ended(job_id)
    driven.collect(job_id)
    kept = [
        str(driven.rows(f"SELECT t::text FROM extraction.{table} t"))
        for table in ("batch_jobs", "batch_items", "audit_events")
    ]
    assert "Fictional Name" not in "".join(kept) + caplog.text


@pytest.mark.parametrize("code", ["token_limit_exceeded", None], ids=["limit", "cancelled"])
def test_jobs_that_are_always_given_back_come_to_an_end(
    driven: Driven,
    proxy: Proxy,
    workplace: Workplace,
    monkeypatch: pytest.MonkeyPatch,
    code: str | None,
) -> None:
    monkeypatch.setattr(items, "GIVEN_BACK_AT_MOST", 3)
    workplace.declare(max_attempts=2)
    driven = Driven(workplace.open(proxy.base_url, POLL_MAX_SECONDS="0.05"), driven.server)
    errors = {"data": [{"code": code, "message": "full"}]}
    proxy.plan(
        POLL,
        saying(status="failed", output_file_id=None, request_counts=None, errors=errors)
        if code
        else saying(status="cancelled", output_file_id=None, request_counts=None),
        times=None,
    )
    workplace.write(1)
    driven.scan()
    for _ in range(3):
        (job_id,) = driven.submit().submitted
        driven.finished(job_id)
        assert driven.summary().waiting == 1
    for _ in range(2):
        (job_id,) = driven.submit().submitted
        driven.finished(job_id)
    assert driven.submit().jobs == []
    assert driven.summary().failed == 1
    assert driven.items() == {
        ("released", None, code or "cancelled"): 3,
        ("failed", "transport", code or "cancelled"): 2,
    }
