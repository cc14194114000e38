"""Partitions: a document is its hash; what came of it is the hash and the extraction version."""

from collections.abc import Iterable, Iterator, Sequence

from dagster import (
    AssetKey,
    DagsterInstance,
    DynamicPartitionsDefinition,
    MultiPartitionsDefinition,
    StaticPartitionsDefinition,
)

from extraction_pipeline.collections.collection import Collection

DOCUMENT = "document"
VERSION = "version"
CHUNK = 5000

NIGHTLY = "nightly_refresh"
"""Name and key of the asset of the nights."""


def partitions_name(collection: str) -> str:
    """The name under which Dagster keeps the document hashes of a collection."""
    return f"{collection}_documents"


def document_partitions(collection: Collection) -> DynamicPartitionsDefinition:
    """One partition a document; keys are document hashes."""
    return DynamicPartitionsDefinition(name=partitions_name(collection.name))


def extraction_partitions(collection: Collection) -> MultiPartitionsDefinition:
    """One partition a document and extraction version."""
    return MultiPartitionsDefinition(
        {
            DOCUMENT: document_partitions(collection),
            VERSION: StaticPartitionsDefinition(
                [version.name for version in collection.extraction_versions]
            ),
        }
    )


def extraction_key(document_hash: str, version: str) -> str:
    """The partition key of one document at one version. Dagster joins the dimensions in order of
    their names; a `MultiPartitionKey` is this text, and costs fifty times as much to make."""
    return f"{document_hash}|{version}"


def parts_of_key(key: str) -> tuple[str, str]:
    """(document hash, version) of such a key."""
    document_hash, _, version = key.partition("|")
    return document_hash, version


def documents_asset(collection: str) -> AssetKey:
    """Key of the asset of the documents of a collection."""
    return AssetKey([collection, "documents"])


def submissions_asset(collection: str) -> AssetKey:
    """Key of the asset of requests that a provider has."""
    return AssetKey([collection, "batch_submissions"])


def responses_asset(collection: str) -> AssetKey:
    """Key of the asset of raw responses."""
    return AssetKey([collection, "raw_responses"])


def extractions_asset(collection: str) -> AssetKey:
    """Key of the asset of published extractions."""
    return AssetKey([collection, "extractions"])


def assets_of(collections: Iterable[str]) -> Iterator[AssetKey]:
    """Keys of all assets of these collections."""
    for name in collections:
        yield documents_asset(name)
        yield submissions_asset(name)
        yield responses_asset(name)
        yield extractions_asset(name)


def add_documents(
    instance: DagsterInstance, collection: str, document_hashes: Sequence[str]
) -> None:
    """Add document hashes as partitions, in chunks; those that are there stay."""
    for start in range(0, len(document_hashes), CHUNK):
        instance.add_dynamic_partitions(
            partitions_name(collection), list(document_hashes[start : start + CHUNK])
        )
