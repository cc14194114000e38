"""Which batch job a run is about."""

from pydantic import Field

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.ledger.jobs import JobRow, job_by_key
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.orchestration.typed import TypedConfig


class JobKeyConfig(TypedConfig):
    """A batch job of ours, by its key."""

    job_key: str = Field(description="Our key of the batch job, as `status` shows it.")

    def job(self, pipeline: Pipeline) -> JobRow:
        """The job of this key. Raises `ConfigurationError`."""
        with pipeline.engine.connect() as connection:
            found = job_by_key(connection, self.job_key)
        if found is None:
            raise ConfigurationError(
                f"There is no batch job {self.job_key}.",
                remedy="`extraction-pipeline status` shows the keys.",
            )
        return found
