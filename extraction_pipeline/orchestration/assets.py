"""The four assets of a collection, in one group.

    documents ─▶ batch_submissions ─▶ raw_responses ─▶ extractions

A run never says more than is true: it yields no output for its range, and logs a materialization
for each document that passed. Where some did not, the run fails after that, and the grid shows
those red and the others green.
"""

from collections.abc import Callable, Iterator

from dagster import (
    AssetExecutionContext,
    AssetsDefinition,
    AssetSpec,
    BackfillPolicy,
    MaterializeResult,
    multi_asset,
)

from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.orchestration.partitions import (
    document_partitions,
    documents_asset,
    extraction_partitions,
    extractions_asset,
    responses_asset,
    submissions_asset,
)
from extraction_pipeline.orchestration.resource import PipelineResource
from extraction_pipeline.orchestration.stages import (
    replay_partitions,
    submit_partitions,
    verify_documents,
)

OWNERS = ["team:clinical-data"]

Stage = Callable[[AssetExecutionContext, Pipeline, Collection], None]


def collection_assets(collection: Collection) -> list[AssetsDefinition | AssetSpec]:
    """All assets of one collection."""
    tags = {"document_type": collection.document_type.replace(":", ".").split(".")[-1]}
    documents = AssetSpec(
        documents_asset(collection.name),
        description=(
            f"{collection.description}\n\nEvery document that could be read to text, by its hash. "
            "New documents arrive by the `scan_collections` job and the nightly refresh. "
            "Materializing reads a document again from its source and checks its content.\n\n"
            "A document that could not be read has no materialization here or downstream; the "
            "check `all_readable` names each with its reason, and so does its observation under "
            "Events."
        ),
        group_name=collection.name,
        owners=OWNERS,
        kinds={"file"},
        tags={**tags, "stage": "documents"},
        partitions_def=document_partitions(collection),
        skippable=True,
    )
    submissions = AssetSpec(
        submissions_asset(collection.name),
        deps=[documents.key],
        description=(
            "Documents whose request a provider has, and by which batch job.\n\n**Start backfills "
            "here**, over any selection of documents and versions. What was submitted before is "
            "never submitted again; results arrive by themselves when the batch job ends."
        ),
        group_name=collection.name,
        owners=OWNERS,
        kinds={"llm", "batch"},
        tags={**tags, "stage": "batch_submissions"},
        partitions_def=extraction_partitions(collection),
        skippable=True,
    )
    responses = AssetSpec(
        responses_asset(collection.name),
        deps=[submissions.key],
        description=(
            "The provider's answer for each document, verbatim, with its hash, stored before "
            "anything is parsed out of it. The `collect_batch` job brings it; it cannot be "
            "materialized by hand, because that would mean to ask the model again."
        ),
        group_name=collection.name,
        owners=OWNERS,
        kinds={"json"},
        tags={**tags, "stage": "raw_responses"},
        partitions_def=extraction_partitions(collection),
    )
    extractions = AssetSpec(
        extractions_asset(collection.name),
        deps=[responses.key],
        description=(
            "Validated, normalized records: one for each document and extraction version.\n\n"
            "Materializing normalizes again from the stored raw responses, with no inference."
        ),
        group_name=collection.name,
        owners=OWNERS,
        kinds={"postgres", "json"},
        tags={**tags, "stage": "extractions"},
        partitions_def=extraction_partitions(collection),
        skippable=True,
    )
    return [
        _ranged(collection, documents, verify_documents),
        _ranged(collection, submissions, submit_partitions),
        responses,
        _ranged(collection, extractions, replay_partitions),
    ]


def _ranged(collection: Collection, spec: AssetSpec, stage: Stage) -> AssetsDefinition:
    @multi_asset(
        name="__".join(spec.key.path),
        specs=[spec],
        backfill_policy=BackfillPolicy.single_run(),
        can_subset=False,
    )
    def run(
        context: AssetExecutionContext, pipeline: PipelineResource
    ) -> Iterator[MaterializeResult[None]]:
        with pipeline.working() as opened:
            stage(context, opened, collection)
        # A generator, because Dagster takes a returned None for an output, and would then mark
        # every document of the range as materialized.
        yield from ()

    return run
