"""What a person sees in Dagster's UI before anything has run, as text.

`python -m extraction_pipeline_tests.orchestration.graph_text` prints it for the collections of the
environment; `asset_graph.txt` is that of the shipped ones.
"""

from collections.abc import Iterator

from dagster import AssetNode, Definitions, MultiPartitionsDefinition, PartitionsDefinition
from dagster._core.definitions.assets.graph.base_asset_graph import BaseAssetNode
from dagster._core.definitions.repository_definition import RepositoryDefinition

from extraction_pipeline.definitions import defs


def graph_text(definitions: Definitions) -> str:
    """Assets, checks, jobs, sensors, schedules and resources, in a stable order."""
    return "\n".join([*_assets(definitions), *_rest(definitions.get_repository_def())]) + "\n"
