"""The pipeline as a Dagster resource: opened on first use, once per process."""

from functools import lru_cache

from dagster import ConfigurableResource

from extraction_pipeline.lifecycle.opening import open_pipeline
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.settings import load_settings


@lru_cache(maxsize=1)
def opened_pipeline() -> Pipeline:
    """The pipeline of this process. Raises `ConfigurationError` or `LedgerError`."""
    return open_pipeline(load_settings())


class PipelineResource(ConfigurableResource["Pipeline"]):
    """Ledger, store, collections and providers, by the settings of the environment."""

    def open(self) -> Pipeline:
        """The pipeline of this process. Raises `ConfigurationError` or `LedgerError`."""
        return opened_pipeline()
