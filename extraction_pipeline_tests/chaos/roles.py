"""What the processes of a campaign do: the real server, the real sensor, the real jobs.

Each role is a function of JSON values that is called in a process of its own, made by fork from a
process in which all modules are loaded and no connection was made.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from dagster import AssetKey, DagsterInstance, Definitions, build_sensor_context
from dagster._core.instance.ref import InstanceRef
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
)

from extraction_pipeline.batch_server.app import serve
from extraction_pipeline.batch_server.config import ServerConfig
from extraction_pipeline.batch_server.faults.plan import FaultPlan
from extraction_pipeline.definitions import build_definitions
from extraction_pipeline.errors import ExtractionPipelineError
from extraction_pipeline.installation.session import NO_COMPUTE_LOGS
from extraction_pipeline.ledger import answers, items
from extraction_pipeline.orchestration import event_log
from extraction_pipeline.orchestration.driving import QUIET
from extraction_pipeline.orchestration.partitions import extraction_key, partitions_name
from extraction_pipeline.orchestration.resource import PipelineResource
from extraction_pipeline.settings import load_settings

PIECE = 2
"""Rows of one piece of work, in place of a thousand, so that a kill can come between two pieces."""
TICK_PAUSE_SECONDS = 0.25


@lru_cache
def definitions() -> Definitions:
    """The definitions, built once, before any fork."""
    return build_definitions(load_settings())


def prepare() -> None:
    """What every role needs and none may change."""
    items.CHUNK = answers.CHUNK = event_log.BATCH = PIECE
    for job in ("nightly", "collect_batch", "resolve_submission", "submit_missing"):
        definitions().resolve_job_def(job)
    definitions().resolve_implicit_global_asset_job_def()


def server(state: str, port: int, delay: float, faults: list[dict[str, object]]) -> int:
    """The batch server."""
    plan = FaultPlan.model_validate({"faults": faults})
    serve(ServerConfig(state=Path(state), port=port, delay=delay, faults=plan))
    return 0


def daemon(requests: str) -> int:
    """The sensor, tick by tick; what it asks for is a line in the file `requests`."""
    with _instance() as instance:
        sensor = definitions().resolve_sensor_def("batch_status")
        while True:
            context = build_sensor_context(
                instance=instance, resources={"pipeline": PipelineResource()}
            )
            try:
                asked = sensor.evaluate_tick(context).run_requests or []
            except ExtractionPipelineError as error:
                print(f"tick: {error}", flush=True)  # noqa: T201
                asked = []
            with Path(requests).open("a") as file:
                for one in asked:
                    line = {"job": one.job_name, "ops": one.run_config["ops"], "tags": one.tags}
                    file.write(json.dumps(line) + "\n")
            time.sleep(TICK_PAUSE_SECONDS)


def run(
    job: str,
    ops: Mapping[str, Any],
    tags: Mapping[str, str],
    partition: str | None = None,
) -> int:
    """A run of a job."""
    with _instance() as instance:
        result = (
            definitions()
            .resolve_job_def(job)
            .execute_in_process(
                run_config={"ops": dict(ops), "loggers": QUIET},
                instance=instance,
                tags=dict(tags),
                partition_key=partition,
                raise_on_error=False,
            )
        )
    return 0 if result.success else 3


def backfill(collection: str, asset: str, version: str, first: float, last: float) -> int:
    """A run over one range of old partitions, as a backfill of the UI starts it; `first` and
    `last` say where it lies, from 0 to 1."""
    with _instance() as instance:
        hashes = list(instance.get_dynamic_partitions(partitions_name(collection)))
        if not hashes:
            return 0
        at = [int(share * (len(hashes) - 1)) for share in (first, last)]
        low, high = (extraction_key(hashes[place], version) for place in sorted(at))
        result = (
            definitions()
            .resolve_implicit_global_asset_job_def()
            .execute_in_process(
                run_config={"loggers": QUIET},
                instance=instance,
                # By this a run that was killed is known as one of ours, and gives its place back.
                asset_selection=[AssetKey([collection, asset])],
                tags={
                    ASSET_PARTITION_RANGE_START_TAG: low,
                    ASSET_PARTITION_RANGE_END_TAG: high,
                },
                raise_on_error=False,
            )
        )
    return 0 if result.success else 3


def _instance() -> DagsterInstance:
    return DagsterInstance.from_ref(
        InstanceRef.from_dir(os.environ["DAGSTER_HOME"], overrides=NO_COMPUTE_LOGS)
    )


ROLES: Mapping[str, Callable[..., int]] = {
    "server": server,
    "daemon": daemon,
    "run": run,
    "backfill": backfill,
}
