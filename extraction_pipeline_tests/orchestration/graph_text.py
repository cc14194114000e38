"""What a person sees in Dagster's UI before anything has run, as text.

`python -m extraction_pipeline_tests.orchestration.graph_text` prints it for the collections of the
environment; `asset_graph.txt` is that of the shipped ones.
"""

import sys
from collections.abc import Iterable, Iterator

from dagster import (
    Definitions,
    DynamicPartitionsDefinition,
    JobDefinition,
    MultiPartitionsDefinition,
    PartitionsDefinition,
)
from dagster._core.definitions.assets.graph.asset_graph import AssetGraph, AssetNode
from dagster._core.definitions.repository_definition import RepositoryDefinition

from extraction_pipeline.definitions import build_definitions
from extraction_pipeline.settings import load_settings


def graph_text(definitions: Definitions) -> str:
    """Assets with their checks, jobs with their settings, sensors and schedules, sorted."""
    lines = [
        *_assets(definitions.resolve_asset_graph()),
        *_jobs_and_automation(definitions.get_repository_def()),
    ]
    return "\n".join(lines) + "\n"


def _assets(graph: AssetGraph) -> Iterator[str]:
    for key in sorted(graph.get_all_asset_keys()):
        yield from _asset(graph.get(key))


def _asset(node: AssetNode) -> Iterator[str]:
    yield f"asset {node.key.to_user_string()}"
    yield f"    group       {node.group_name}"
    yield f"    depends on  {_listed(parent.to_user_string() for parent in node.parent_keys)}"
    yield f"    partitions  {_partitions(node.partitions_def)}"
    yield f"    kinds       {_listed(node.kinds)}"
    yield f"    owners      {_listed(node.owners)}"
    tags = (f"{name}={value}" for name, value in node.tags.items() if "/" not in name)
    yield f"    tags        {_listed(tags)}"
    yield f"    executable  {'yes' if node.is_executable else 'no'}"
    policy = node.backfill_policy.policy_type.value if node.backfill_policy else "none"
    yield f"    backfill    {policy}"
    yield f"    checks      {_listed(check.name for check in node.check_keys)}"
    yield f"    described   {'yes' if node.description else 'no'}"


def _partitions(partitions: PartitionsDefinition[str] | None) -> str:
    if isinstance(partitions, MultiPartitionsDefinition):
        return " x ".join(
            f"{one.name}: {_partitions(one.partitions_def)}" for one in partitions.partitions_defs
        )
    if isinstance(partitions, DynamicPartitionsDefinition):
        return f"dynamic {partitions.name}"
    return str(partitions).rstrip(".") if partitions else "none"


def _jobs_and_automation(repository: RepositoryDefinition) -> Iterator[str]:
    for job in sorted(repository.get_all_jobs(), key=lambda one: one.name):
        if not job.name.startswith("__"):
            yield from _job(job)
    for sensor in repository.sensor_defs:
        yield f"sensor {sensor.name}"
        yield f"    runs        {_listed(job.name for job in sensor.jobs)}"
        yield f"    state       {sensor.default_status.value}"
        yield f"    every       {sensor.minimum_interval_seconds} s"
    for schedule in repository.schedule_defs:
        yield f"schedule {schedule.name}"
        yield f"    runs        {schedule.job_name}"
        yield f"    state       {schedule.default_status.value}"
        yield f"    at          {schedule.cron_schedule} {schedule.execution_timezone}"


def _job(job: JobDefinition) -> Iterator[str]:
    yield f"job {job.name}"
    selected = (key.to_user_string() for key in job.asset_layer.selected_asset_keys)
    yield f"    assets      {_listed(selected)}"
    for node in job.nodes:
        schema = node.definition.config_schema
        fields = getattr(schema.config_type, "fields", None) or {} if schema else {}
        for name, field in sorted(fields.items()):
            need = "required" if field.is_required else "optional"
            yield f"    setting     {node.name}.{name}: {need}"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words)) or "none"


if __name__ == "__main__":
    sys.stdout.write(graph_text(build_definitions(load_settings())))
