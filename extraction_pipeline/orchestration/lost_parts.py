"""A part of a source whose worker was lost is read again.

Dagster tries a run of a job's backfill again only as long as other runs of that are under way, and
the lost one is most often the last that ends. So these runs are left out of Dagster's own retries,
and this sensor asks for them, as often as the instance allows for any run.
"""

from collections.abc import Collection

from dagster import (
    DagsterInstance,
    DagsterRun,
    DefaultSensorStatus,
    JobDefinition,
    RunFailureSensorContext,
    RunRequest,
    SensorDefinition,
    SkipReason,
    run_failure_sensor,
)
from dagster._core.events import RunFailureReason
from dagster._core.storage.tags import PARTITION_NAME_TAG, RUN_FAILURE_REASON_TAG

LOST_TAG = "extraction/workers_lost"
"""How many workers were lost over this part in a row, before the run that has it."""


def lost_parts(parts: JobDefinition) -> SensorDefinition:
    """The sensor over the runs of `scan_in_parts`."""
    known = frozenset(parts.partitions_def.get_partition_keys() if parts.partitions_def else ())

    @run_failure_sensor(
        name="lost_parts",
        monitored_jobs=[parts],
        request_job=parts,
        minimum_interval_seconds=15,
        default_status=DefaultSensorStatus.RUNNING,
        description="Reads a part of a source again whose worker was lost.",
    )
    def sensor(context: RunFailureSensorContext) -> RunRequest | SkipReason:
        return again(context.instance, context.dagster_run, known)

    return sensor


def again(
    instance: DagsterInstance, run: DagsterRun, known: Collection[str]
) -> RunRequest | SkipReason:
    """The run that reads the part of a failed one again, if it is one of the `known`; why there is
    none, if it is in vain."""
    part = run.tags.get(PARTITION_NAME_TAG)
    if part is not None and part not in known:
        # Asked for all the same, it would end this tick and each one after it.
        return SkipReason(f"Run {run.run_id} read a part that is none any more.")
    if part is None or run.tags.get(RUN_FAILURE_REASON_TAG) == RunFailureReason.STEP_FAILURE.value:
        return SkipReason(f"Run {run.run_id} has said why it failed.")
    said = run.tags.get(LOST_TAG, "0")
    lost = int(said) if said.isdecimal() else 0
    if not instance.run_retries_enabled or lost >= instance.run_retries_max_retries:
        return SkipReason(f"Run {run.run_id} was the last try.")
    return RunRequest(
        run_key=f"after {run.run_id}",
        job_name=run.job_name,
        partition_key=part,
        tags={LOST_TAG: str(lost + 1)},
    )
