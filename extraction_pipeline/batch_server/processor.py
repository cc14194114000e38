"""Takes accepted batches to their end, whatever stops the server in between.

One thread goes round the open batches and does for each what is next; every step can be done again
after a crash. A batch ends in `_validate` or `_finish` and nowhere else.
"""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import chain, islice
from typing import Any

from extraction_pipeline.batch_server.answer_pool import AnswerPool, Question, where
from extraction_pipeline.batch_server.answers import Answer, Answered, Answerer
from extraction_pipeline.batch_server.config import ServerConfig
from extraction_pipeline.batch_server.core_lines import CoreRequest, Refusal, check_requests
from extraction_pipeline.batch_server.dialects import Dialect
from extraction_pipeline.batch_server.faults.answering import said, spoiled
from extraction_pipeline.batch_server.faults.in_force import FaultsInForce
from extraction_pipeline.batch_server.openai.input_lines import check_input, read_line
from extraction_pipeline.batch_server.progress import BatchProgress, remove_progress
from extraction_pipeline.batch_server.questions import question_digest
from extraction_pipeline.batch_server.records import (
    Batch,
    BatchState,
    InputFault,
    InputReport,
    LinePlace,
    StoredFile,
    Tally,
)
from extraction_pipeline.batch_server.result_files import remove_results, write_results
from extraction_pipeline.batch_server.result_lines import (
    answer_line,
    tokens_of,
    unserved_line,
)
from extraction_pipeline.batch_server.state_folder import StateFolder
from extraction_pipeline.batch_server.store import Store
from extraction_pipeline.batch_server.webhooks.announcing import Announcements

logger = logging.getLogger(__name__)

TURN = 1.0
"""Seconds that a batch is worked on while others wait."""
IDLE = 60.0
"""Seconds between rounds when nothing is to be done; new work ends the pause at once."""
GLANCE = 0.25
"""Seconds between looks at whether a batch was cancelled, and between counts shown."""
PAUSE_AFTER_FAULT = 5.0


class Processor:
    """The one thread that changes batches from inside; clients only create and cancel them."""

    def __init__(
        self,
        config: ServerConfig,
        folder: StateFolder,
        store: Store,
        answerer: Answerer,
        stopping: threading.Event,
        faults: FaultsInForce,
        announcements: Announcements,
    ) -> None:
        self._config = config
        self._faults = faults
        self._announcements = announcements
        self._folder = folder
        self._store = store
        self._stopping = stopping
        self._wake = threading.Event()
        self._pool = AnswerPool(answerer, stopping)
        self._resting: dict[str, float] = {}
        self._thread = threading.Thread(target=self._run, name="processor", daemon=True)

    def start(self) -> None:
        """Go on where the last process stopped."""
        self._thread.start()

    def wake(self) -> None:
        """Something was created or cancelled."""
        self._wake.set()

    def stop(self, timeout: float) -> None:
        """End between two requests; what is being answered by a model is left."""
        self._stopping.set()
        self._wake.set()
        self._thread.join(timeout)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            waits = [self._take_turn(batch.id) for batch in self._store.open_batches()]
            wait = min(waits, default=IDLE)
            if wait > 0:
                self._wake.wait(wait)

    def _take_turn(self, batch_id: str) -> float:
        """Do what is next for a batch; seconds until there is something to do again."""
        start = time.monotonic()
        rest = self._resting.get(batch_id, 0.0) - start
        if rest > 0:
            return rest
        wait = 0.0
        try:
            while wait == 0 and time.monotonic() - start < TURN and not self._stopping.is_set():
                wait = self._step(self._store.batch(batch_id))
        except Exception as error:  # noqa: BLE001
            # A full disk or a file removed by hand: the other batches go on, this one is tried
            # again. The message may quote a document, so only the place is logged.
            logger.error("batch %s: %s", batch_id, where(error))
            self._resting[batch_id] = time.monotonic() + PAUSE_AFTER_FAULT
            return PAUSE_AFTER_FAULT
        self._resting.pop(batch_id, None)
        return wait

    def _step(self, batch: Batch) -> float:
        """Do one thing; seconds until the next."""
        now = time.time()
        if self._faults.stuck(batch):
            return IDLE
        match batch.state:
            case BatchState.VALIDATING:
                self._validate(batch)
            case BatchState.CANCELLING:
                self._finish(batch, BatchState.CANCELLED)
            case BatchState.IN_PROGRESS if now >= batch.expires_at:
                self._finish(batch, BatchState.EXPIRED)
            case BatchState.IN_PROGRESS:
                due = batch.created_at + self._config.delay
                end = self._faults.ends(batch)
                if end is not None and batch.tally.answered >= end.after:
                    self._finish(batch, end.how)
                    return 0.0
                most = None if end is None else end.after
                if batch.tally.answered != batch.total and not self._answer(batch, most):
                    return 0.0
                if now < due:
                    return min(due, batch.expires_at) - now
                self._store.move(batch.id, BatchState.IN_PROGRESS, BatchState.FINALIZING)
            case BatchState.FINALIZING:
                self._finish(batch, BatchState.COMPLETED)
            case _:
                return IDLE
        return 0.0

    def _validate(self, batch: Batch) -> None:
        self._announcements.accepted(batch)
        report = self._check(batch)
        if (end := self._faults.ends(batch)) is not None:
            report.faults.append(InputFault(end.code, "A fault that was asked for."))
        if report.faults:
            if self._store.fail(batch.id, report.faults):
                logger.info("batch %s: failed, %s", batch.id, report.faults[0].code)
                self._announcements.ended(self._store.batch(batch.id))
            remove_progress(self._folder.batch_progress(batch.id))
        elif self._store.start(batch.id, report.model, report.total):
            logger.info("batch %s: %s requests", batch.id, report.total)

    def _check(self, batch: Batch) -> InputReport:
        """Check the input and note where each of its requests lies."""
        with (
            self._folder.file(batch.asked.input_file_id).open("rb") as lines,
            BatchProgress.make(self._folder.batch_progress(batch.id)) as progress,
        ):
            if batch.asked.dialect is Dialect.OPENAI:
                return check_input(
                    lines, batch.asked.endpoint, self._config.max_requests, progress.accept
                )

            def refuse(place: LinePlace, refusal: Refusal) -> None:
                _record(progress, batch.id, place, refusal.answer(), Tally(), None)

            return check_requests(lines, progress.accept, refuse)

    def _answer(self, batch: Batch, most: int | None) -> bool:
        """Work on a batch for a while, up to `most` answers; whether all its requests have one."""
        digests: dict[int, bytes] = {}
        with closing(self._progress(batch)) as progress:
            tally = progress.tally()
            watch = _Watch(self._store, batch)
            places = progress.unanswered()
            if most is not None:
                places = islice(places, most - tally.answered)
            questions = self._questions(batch, places, digests)
            for place, answer in self._pool.run(questions, watch.go_on):
                wrong = self._faults.says(batch)
                said_ = answer if wrong is None else said(answer, wrong, batch.asked.dialect)
                digest = digests.pop(place.position)
                tally = _record(progress, batch.id, place, said_, tally, digest)
                if watch.time_to_show():
                    self._store.count(batch.id, tally)
            self._store.count(batch.id, tally)
            return tally.answered == batch.total

    def _questions(
        self, batch: Batch, places: Iterator[LinePlace], digests: dict[int, bytes]
    ) -> Iterator[Question]:
        """The requests of these places; what each asks for is put into `digests`."""
        with self._folder.file(batch.asked.input_file_id).open("rb") as lines:
            for place in places:
                lines.seek(place.offset)
                body = _chat_body(batch.asked.dialect, lines.read(place.length))
                digests[place.position] = question_digest(body, place.custom_id)
                yield place, body

    def _finish(self, batch: Batch, end: BatchState) -> None:
        """Write what there is, complete or not, and end the batch with it."""
        output: StoredFile | None = None
        error: StoredFile | None = None
        tally = Tally()
        answered: list[bytes] = []
        if batch.deleted:
            remove_results(self._folder, batch.id)
        if batch.total is not None:
            with closing(self._progress(batch)) as progress:
                tally = progress.tally()
                answered = list(progress.answered())
                if not batch.deleted:
                    output, error = self._write(batch, end, progress)
        if self._store.finish(
            batch, end, tally=tally, output=output, error=error, answered=answered
        ):
            remove_progress(self._folder.batch_progress(batch.id))
            if not self._store.knows_file(batch.asked.input_file_id):
                self._folder.file(batch.asked.input_file_id).unlink(missing_ok=True)
            logger.info(
                "batch %s: %s, %s completed, %s failed",
                batch.id,
                end.value,
                tally.completed,
                tally.failed,
            )
            self._announcements.ended(self._store.batch(batch.id))

    def _write(
        self, batch: Batch, end: BatchState, progress: BatchProgress
    ) -> tuple[StoredFile | None, StoredFile | None]:
        """The result files: OpenAI's two, or one with everything in it."""

        def unserved(place: LinePlace) -> bytes:
            return unserved_line(batch.id, place, end)

        wrong = self._faults.rows(batch)
        if batch.asked.dialect is Dialect.OPENAI:
            succeeded = progress.lines(succeeded=True, seed=batch.id)
            failed = progress.lines(succeeded=False, seed=batch.id)
            rest = (unserved(place) for place in progress.unanswered())
            return (
                write_results(
                    self._folder, batch, "output", spoiled(succeeded, wrong, seed=batch.id)
                ),
                write_results(self._folder, batch, "error", chain(failed, rest)),
            )
        seed = None if batch.asked.keeps_order else batch.id
        every = progress.all_lines(unserved, seed=seed)
        lines = spoiled(every, wrong, seed=batch.id)
        return write_results(self._folder, batch, "output", lines), None

    def _progress(self, batch: Batch) -> BatchProgress:
        path = self._folder.batch_progress(batch.id)
        progress = BatchProgress.open(path)
        if progress is None:  # removed by hand, or not made yet: its input is there
            self._check(batch)
            progress = BatchProgress.open(path)
        if progress is None:
            raise FileNotFoundError(path)
        return progress


class _Watch:
    """Whether to go on with a batch: not cancelled, not expired, and no other one waiting long."""

    def __init__(self, store: Store, batch: Batch) -> None:
        self._store = store
        self._batch = batch
        self._start = self._looked = self._shown = time.monotonic()
        self._going = True

    def go_on(self) -> bool:
        now = time.monotonic()
        if self._going and now - self._looked >= GLANCE:
            self._looked = now
            open_batches = self._store.open_batches()
            others_wait = len(open_batches) > 1 and now - self._start >= TURN
            self._going = (
                not others_wait
                and time.time() < self._batch.expires_at
                and self._store.batch(self._batch.id).state is BatchState.IN_PROGRESS
            )
        return self._going

    def time_to_show(self) -> bool:
        now = time.monotonic()
        if now - self._shown < GLANCE:
            return False
        self._shown = now
        return True


def _chat_body(dialect: Dialect, line: bytes) -> dict[str, Any]:
    """The chat completion body of a request that was not refused."""
    if dialect is Dialect.OPENAI:
        return read_line(line).body
    asked = CoreRequest.read(line).asked
    return {} if isinstance(asked, Refusal) else dict(asked)


def _record(
    progress: BatchProgress,
    batch_id: str,
    place: LinePlace,
    answer: Answer,
    tally: Tally,
    digest: bytes | None,
) -> Tally:
    """Keep one answer; the tally with it."""
    succeeded = isinstance(answer, Answered) and answer.succeeded
    tokens = tokens_of(answer)
    progress.record(
        place.position,
        succeeded=succeeded,
        line=answer_line(batch_id, place, answer),
        tally=tokens,
        digest=digest,
    )
    return Tally(
        completed=tally.completed + succeeded,
        failed=tally.failed + (not succeeded),
        input_tokens=tally.input_tokens + tokens.input_tokens,
        output_tokens=tally.output_tokens + tokens.output_tokens,
    )
