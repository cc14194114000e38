"""Threads that answer: as many requests at once as the answerer takes."""

import logging
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from extraction_pipeline.batch_server.answers import Answer, Answerer, Interrupted, NotAnswered
from extraction_pipeline.batch_server.records import LinePlace

logger = logging.getLogger(__name__)

Question = tuple[LinePlace, dict[str, Any]]
_Answers = queue.SimpleQueue[tuple[LinePlace, Answer | None]]


class AnswerPool:
    """Runs an answerer. Its threads are daemons: a server that stops does not wait for a model."""

    def __init__(self, answerer: Answerer, stopping: threading.Event) -> None:
        self._answerer = answerer
        self._stopping = stopping
        self._questions = queue.SimpleQueue[tuple[Question, _Answers]]()
        for _ in range(answerer.concurrency):
            threading.Thread(target=self._work, name="answers", daemon=True).start()

    def run(
        self, questions: Iterable[Question], go_on: Callable[[], bool]
    ) -> Iterator[tuple[LinePlace, Answer]]:
        """Answers as they come, in any order, until `go_on` says no or the questions end.

        Whatever was asked by then is waited for, except when the server stops.
        """
        remaining = iter(questions)
        # Of this run alone: a run that broke off must not leave its answers to another batch.
        answers = _Answers()
        asked = 0
        feeding = True
        while not self._stopping.is_set():
            while feeding and asked <= self._answerer.concurrency:
                question = next(remaining, None) if go_on() else None
                if question is None:
                    feeding = False
                else:
                    self._questions.put((question, answers))
                    asked += 1
            if asked == 0:
                return
            try:
                place, answer = answers.get(timeout=0.2)
            except queue.Empty:
                continue
            asked -= 1
            if answer is not None:
                yield place, answer

    def _work(self) -> None:
        while True:
            (place, body), answers = self._questions.get()
            answers.put((place, self._answer(body)))

    def _answer(self, body: dict[str, Any]) -> Answer | None:
        try:
            return self._answerer.answer(body)
        except Interrupted:
            return None
        except Exception as error:  # noqa: BLE001
            # An answerer reads any document there is; one that it fails on must not stop the rest.
            # Its message may quote the document, so only the place in the code is logged.
            logger.error("a request could not be answered: %s", where(error))
            return NotAnswered("server_error", "The server failed on this request.")


def where(error: BaseException) -> str:
    """The kind of an exception and the line that raised it, without its message."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return type(error).__name__
    code = traceback.tb_frame.f_code
    return f"{type(error).__name__} at {code.co_filename}:{traceback.tb_lineno}"
