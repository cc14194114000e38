"""Dagster's front door: everything it loads comes from here."""

import os
import warnings

from dagster import BetaWarning, Definitions, definitions, in_process_executor

from extraction_pipeline.collections.collection import Collection, ExtractionVersion
from extraction_pipeline.collections.loader import load_collections
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.lifecycle.ceilings import require_price
from extraction_pipeline.lifecycle.opening import endpoint_of
from extraction_pipeline.lifecycle.recipes import build_request, recipe_of
from extraction_pipeline.orchestration.assets import collection_assets
from extraction_pipeline.orchestration.checks import collection_checks
from extraction_pipeline.orchestration.jobs import ALL_JOBS, scan_in_parts
from extraction_pipeline.orchestration.lost_parts import lost_parts
from extraction_pipeline.orchestration.nightly import nightly_refresh
from extraction_pipeline.orchestration.resource import PipelineResource
from extraction_pipeline.orchestration.sensors import batch_status
from extraction_pipeline.prices.loader import load_prices
from extraction_pipeline.providers.registry import check_request
from extraction_pipeline.settings import Settings, load_settings

# Dagster warns of its own code here: it passes the parameter whenever it copies a sensor.
warnings.filterwarnings("ignore", message="Parameter `owners`", category=BetaWarning)


def build_definitions(settings: Settings) -> Definitions:
    """Definitions for the collections that the settings name. Makes no connection.

    Raises `ConfigurationError` for a collection that cannot work, so that it is refused when
    definitions load and not at night.
    """
    collections = load_collections(settings.collections, os.environ)
    prices = load_prices(settings.prices)
    for collection in collections:
        for version in collection.extraction_versions:
            _require_sendable(collection, version, settings)
            require_price(collection, version, prices)
    night, nightly_schedule = nightly_refresh(settings)
    parts = scan_in_parts([one.name for one in collections], settings.scan_parts)
    return Definitions(
        assets=[night, *(one for each in collections for one in collection_assets(each))],
        asset_checks=[collection_checks(each) for each in collections],
        jobs=[
            *ALL_JOBS,
            parts,
            nightly_schedule.job,
        ],
        sensors=[batch_status, lost_parts(parts)],
        schedules=[nightly_schedule],
        resources={"pipeline": PipelineResource()},
        # A run is one process. Its work is in the database and at the provider; a process for
        # each step would only cost seconds.
        executor=in_process_executor,
    )


def _require_sendable(
    collection: Collection, version: ExtractionVersion, settings: Settings
) -> None:
    """Raise `CollectionError` if the version's provider could not take any request of it."""
    like_all = build_request(recipe_of(collection, version), version.name, "", "", "")
    try:
        check_request(version.provider, endpoint_of(settings, version.provider), like_all.request)
    except ConfigurationError as error:
        raise collection.error(
            ("extraction_versions", version.name, "parameters"), error.message, error.remedy or ""
        ) from None


@definitions
def defs() -> Definitions:
    """What `dagster dev` and the code server load."""
    return build_definitions(load_settings())
