"""A whole installation opened for one command: stack, Dagster instance, definitions, pipeline."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dagster import DagsterInstance
from dagster._core.instance.ref import InstanceRef

from extraction_pipeline.definitions import build_definitions
from extraction_pipeline.installation.stack import local_stack
from extraction_pipeline.lifecycle.opening import open_pipeline
from extraction_pipeline.orchestration.driving import Driver
from extraction_pipeline.settings import Settings

_RETRY = "Retrying failed database connection"

NO_COMPUTE_LOGS = {
    "compute_logs": {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    }
}
"""Runs in the command's own process print nothing. Dagster would start two processes for each to
keep that, and Ctrl-C at a terminal reaches them as well: they break off with tracebacks."""


@contextmanager
def driving(settings: Settings, tell: Callable[[str], None]) -> Iterator[Driver]:
    """A driver over the local stack. `tell` gets lines of progress."""
    # Alembic and Dagster log to the root at start; a person at a terminal gets our lines instead.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    with local_stack(settings) as ready, _retries_told(tell), _instance() as instance:
        pipeline = open_pipeline(ready)
        try:
            yield Driver(instance, build_definitions(ready), pipeline, tell)
        finally:
            pipeline.engine.dispose()


@contextmanager
def _retries_told(tell: Callable[[str], None]) -> Iterator[None]:
    """Have it told once, in a line, that Dagster waits for the database: it logs each of its many
    attempts with the driver's sentences."""
    told = False

    def only_others(record: logging.LogRecord) -> bool:
        nonlocal told
        if not str(record.msg).startswith(_RETRY):
            return True
        if not told:
            tell("The database does not answer; it is asked again for a while.")
        told = True
        return False

    root = logging.getLogger()
    root.addFilter(only_others)
    try:
        yield
    finally:
        root.removeFilter(only_others)


def _instance() -> DagsterInstance:
    """Dagster's instance in the home that the stack has set."""
    home = os.environ["DAGSTER_HOME"]
    return DagsterInstance.from_ref(InstanceRef.from_dir(home, overrides=NO_COMPUTE_LOGS))
