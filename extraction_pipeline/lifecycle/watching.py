"""Watching: which batch jobs of a collection need a person's eye."""

from sqlalchemy import Connection

from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.ledger.stuck import StuckJob, stuck_jobs
from extraction_pipeline.lifecycle.pausing import accounts
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.providers.names import ProviderName


def jobs_to_look_at(
    connection: Connection, pipeline: Pipeline, collection: Collection
) -> list[StuckJob]:
    """Jobs beyond the collection's waiting budget, or stuck in another way. Calls no provider."""
    return stuck_jobs(
        connection,
        collection.name,
        budget=collection.waiting_budget,
        retention_days=_retention_days(pipeline),
        accounts=accounts(pipeline),
    )


def _retention_days(pipeline: Pipeline) -> dict[str, int]:
    """How long providers that are set up keep results; those that do not say are left out."""
    found = {}
    for name in ProviderName:
        try:
            days = pipeline.provider(name).limits.result_retention_days
        except ConfigurationError:
            continue
        if days is not None:
            found[name.value] = days
    return found
