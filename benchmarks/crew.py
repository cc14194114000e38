"""Steps of the pipeline done by several processes at once, as Dagster's run workers do them."""

import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from dagster import DagsterInstance

from extraction_pipeline.lifecycle.opening import open_pipeline
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.orchestration.recording import Recorder
from extraction_pipeline.settings import load_settings

Step = Callable[[Pipeline, Recorder, int], object]
"""A step about one batch job, or one part of a source, by its number. A function of a module."""

SETTLING = 1.0


@dataclass(frozen=True)
class Crew:
    """`workers` processes; one of them is this process itself, with no pool beside it."""

    pipeline: Pipeline
    to: Recorder
    workers: int
    pool: ProcessPoolExecutor | None

    def each(self, step: Step, numbers: Iterable[int]) -> None:
        """Take the step for each of the numbers, and raise what one of them raises."""
        if self.pool is None:
            for number in numbers:
                step(self.pipeline, self.to, number)
            return
        for future in [self.pool.submit(_take, step, number) for number in numbers]:
            future.result()


@contextmanager
def crew(pipeline: Pipeline, to: Recorder, workers: int) -> Iterator[Crew]:
    """A crew that has opened the pipeline already."""
    if workers == 1:
        yield Crew(pipeline, to, 1, None)
        return
    with ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=_open
    ) as pool:
        for settled in [pool.submit(time.sleep, SETTLING) for _ in range(workers)]:
            settled.result()
        try:
            yield Crew(pipeline, to, workers, pool)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # the rest would be done to its end
            raise


_opened: list[tuple[Pipeline, Recorder]] = []


def _open() -> None:
    instance = DagsterInstance.get()
    recorder = Recorder(instance, "benchmark", "benchmark", "benchmark")
    _opened.append((open_pipeline(load_settings()), recorder))


def _take(step: Step, number: int) -> None:
    ((pipeline, to),) = _opened
    step(pipeline, to, number)
