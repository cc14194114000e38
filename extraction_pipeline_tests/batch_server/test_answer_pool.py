"""The threads that answer."""

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from extraction_pipeline.batch_server.answer_pool import AnswerPool, Question
from extraction_pipeline.batch_server.answers import Answered, Interrupted, NotAnswered
from extraction_pipeline.batch_server.records import LinePlace


class Echo:
    """Answers with what it was asked, or as the request says."""

    concurrency = 3

    def answer(self, body: Mapping[str, Any]) -> Answered:
        time.sleep(body.get("seconds", 0))
        if "error" in body:
            raise body["error"]
        return Answered(200, body)


def questions(name: str, count: int, **body: Any) -> Iterator[Question]:
    for number in range(count):
        yield LinePlace(number, f"{name}-{number}", 0, 0), {"name": name, **body}


@pytest.fixture
def pool() -> AnswerPool:
    return AnswerPool(Echo(), threading.Event())


def test_every_question_is_answered_once(pool):
    answers = list(pool.run(questions("a", 50), lambda: True))
    assert sorted(place.position for place, _ in answers) == list(range(50))


def test_a_run_that_broke_off_leaves_nothing_to_the_next(pool):
    first = pool.run(questions("a", 9, seconds=0.05), lambda: True)
    next(first)
    del first
    answers = list(pool.run(questions("b", 9), lambda: True))
    assert {answer.body["name"] for _, answer in answers if isinstance(answer, Answered)} == {"b"}
    assert len(answers) == 9


def test_a_request_that_the_answerer_fails_on_is_a_failure_of_its_own(pool, caplog):
    broken = questions("a", 1, error=KeyError("Jane Doe"))
    with caplog.at_level(logging.ERROR):
        ((_, answer),) = pool.run(broken, lambda: True)
    assert answer == NotAnswered("server_error", "The server failed on this request.")
    assert "KeyError at " in caplog.text and "Jane" not in caplog.text
    assert len(list(pool.run(questions("b", 9), lambda: True))) == 9


def test_an_interrupted_request_has_no_answer(pool):
    assert list(pool.run(questions("a", 2, error=Interrupted()), lambda: True)) == []


def test_what_was_asked_is_waited_for_when_the_run_is_to_end(pool):
    asked = []

    def go_on() -> bool:
        asked.append(1)
        return len(asked) <= 2

    assert len(list(pool.run(questions("a", 9, seconds=0.05), go_on))) == 2
