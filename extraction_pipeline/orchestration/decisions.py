"""Jobs by which a person decides, from the launchpad and with a reason, which is kept."""

from collections.abc import Sequence

from dagster import JobDefinition, OpExecutionContext, job, op
from pydantic import Field

from extraction_pipeline.lifecycle.decisions import adopt, cancel, give_up, settle
from extraction_pipeline.lifecycle.releasing import release
from extraction_pipeline.orchestration.batch_job import JobKeyConfig
from extraction_pipeline.orchestration.liveness import OURS
from extraction_pipeline.orchestration.recording import record_ends, record_submission, recorder
from extraction_pipeline.orchestration.resource import PipelineResource
from extraction_pipeline.orchestration.typed import TypedConfig


class DecisionConfig(TypedConfig):
    """Why something is decided."""

    reason: str = Field(min_length=1, description="Why; without anything about a patient.")


class DecidedJobConfig(DecisionConfig, JobKeyConfig):
    """A batch job of ours, and why something is decided about it."""


class AdoptConfig(DecidedJobConfig):
    """A batch job of ours, and the batch at the provider that it is."""

    provider_job_id: str = Field(description="The batch's id at the provider.")


class SecondBatchConfig(DecidedJobConfig):
    """A batch job of ours that exists twice at the provider, and its batch that is not ours."""

    provider_job_id: str = Field(description="The second batch's id, as `status` shows it.")
    cancel_there: bool = Field(
        default=True,
        description="Ask the provider to stop it, if it still works on it; without this no call is "
        "made, because you have seen to it yourself.",
    )


class ReleaseConfig(DecisionConfig):
    """Documents that ended as failed or invalid."""

    collection: str = Field(description="Name of the collection.")
    extraction_version: str | None = Field(
        default=None, description="Version; the active one if left out."
    )
    document_hashes: list[str] = Field(description="Their partition keys.")


@op(description="Take a batch that was found at the provider for the one of a job of ours.")
def adopt_found_batch(
    context: OpExecutionContext, config: AdoptConfig, pipeline: PipelineResource
) -> None:
    """Adopt, and record the submission."""
    with pipeline.working() as opened:
        job_row = config.job(opened)
        adopt(opened, job_row.id, config.provider_job_id, context.run_id, config.reason)
        recorded = record_submission(opened, job_row.id, recorder(context))
    context.add_output_metadata({"recorded": recorded})


@op(description="Settle a second batch of a job of ours, which is never collected.")
def settle_found_batch(
    context: OpExecutionContext, config: SecondBatchConfig, pipeline: PipelineResource
) -> None:
    """Cancel it at the provider, and keep that it is settled."""
    with pipeline.working() as opened:
        state = settle(
            opened,
            config.job(opened).id,
            config.provider_job_id,
            context.run_id,
            config.reason,
            cancel_there=config.cancel_there,
        )
    context.add_output_metadata({"state": state})


@op(description="Ask the provider to stop a batch that it works on.")
def cancel_submitted_batch(
    context: OpExecutionContext, config: DecidedJobConfig, pipeline: PipelineResource
) -> None:
    """Cancel; the sensor brings what was answered by then."""
    with pipeline.working() as opened:
        job_row = config.job(opened)
        state = cancel(opened, job_row.id, context.run_id, config.reason)
    context.add_output_metadata({"state": state})


@op(description="Give up a batch job that is held, because its answers will never come.")
def give_up_held_batch(
    context: OpExecutionContext, config: DecidedJobConfig, pipeline: PipelineResource
) -> None:
    """End the members without an answer, so that they may be asked about again."""
    with pipeline.working() as opened:
        job_row = config.job(opened)
        ended = give_up(opened, job_row.id, context.run_id, config.reason)
        record_ends(opened, job_row.id, recorder(context))
    context.add_output_metadata({"ended": ended})


@op(description="Let documents that ended without a record be asked about again.")
def release_failed_documents(
    context: OpExecutionContext, config: ReleaseConfig, pipeline: PipelineResource
) -> None:
    """Release documents; the next submission asks about them. Says which were not, and why."""
    with pipeline.working() as opened:
        collection = opened.collection(config.collection)
        released = release(
            opened,
            collection.name,
            config.extraction_version or collection.active_version,
            config.document_hashes,
            context.run_id,
            config.reason,
        )
    context.log.info(released.line)
    context.add_output_metadata({"released": released.count, "note": released.line})


@job(
    tags=OURS,
    description="Adopt a batch that was found at the provider for a job that is held, unresolved, "
    "or was given up without one.",
)
def adopt_batch() -> None:
    """Adopt job."""
    adopt_found_batch()


@job(
    tags=OURS,
    description="Settle a batch that exists at the provider beside the one of a job of ours: it is "
    "cancelled there, if it has not ended, and named no more. Its answers are never collected.",
)
def settle_second_batch() -> None:
    """Settling job."""
    settle_found_batch()


@job(
    tags=OURS,
    description="Ask the provider to stop a batch. What was answered by then is published, the "
    "rest waits for the next submission.",
)
def cancel_batch() -> None:
    """Cancel job."""
    cancel_submitted_batch()


@job(
    tags=OURS,
    description="Give up a batch job that is held. Its documents are asked about again by the next "
    "night, backfill or submit_missing, which may cost a second inference. If it ends after all, "
    "the first answer of a document that is published is its record.",
)
def give_up_batch() -> None:
    """Give-up job."""
    give_up_held_batch()


@job(
    tags=OURS,
    description="Let documents that failed for good be asked about again, with all attempts. The "
    "next night, backfill or submit_missing does so, at its cost.",
)
def release_documents() -> None:
    """Release job."""
    release_failed_documents()


DECISIONS: Sequence[JobDefinition] = (
    adopt_batch,
    settle_second_batch,
    cancel_batch,
    give_up_batch,
    release_documents,
)
