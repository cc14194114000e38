"""The pipeline as a Dagster resource: opened on first use, once per process."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from dagster import ConfigurableResource, InitResourceContext
from pydantic import PrivateAttr

from extraction_pipeline.errors import ExtractionPipelineError
from extraction_pipeline.lifecycle.opening import open_pipeline
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.orchestration.failures import one_line_failures
from extraction_pipeline.orchestration.liveness import hold_for_life
from extraction_pipeline.settings import load_settings


@lru_cache(maxsize=1)
def opened_pipeline() -> Pipeline:
    """The pipeline of this process. Raises `ConfigurationError` or `LedgerError`."""
    return open_pipeline(load_settings())


class PipelineResource(ConfigurableResource["Pipeline"]):
    """Ledger, store, collections and providers, by the settings of the environment."""

    _trouble: ExtractionPipelineError | None = PrivateAttr(default=None)

    def setup_for_execution(self, context: InitResourceContext) -> None:
        """Let the run, before its first step, be known to be alive for as long as its process is.

        A failure is kept for the step, which says it in one line.
        """
        if context.run is None or context.instance is None:
            return  # a tick of a sensor
        try:
            url = load_settings().database_url
            if url is not None:
                hold_for_life(url.get_secret_value(), context.instance, context.run.run_id)
        except ExtractionPipelineError as error:
            self._trouble = error

    def open(self) -> Pipeline:
        """The pipeline of this process. Raises `ConfigurationError` or `LedgerError`."""
        if self._trouble is not None:
            raise self._trouble
        return opened_pipeline()

    @contextmanager
    def working(self) -> Iterator[Pipeline]:
        """The pipeline for a step; errors of this project become failures of one line."""
        with one_line_failures():
            yield self.open()
