"""From a version's few lines of YAML to the whole recipe, and from a recipe to one request."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from extraction_pipeline.collections.collection import Collection, ExtractionVersion
from extraction_pipeline.collections.recipe import (
    Recipe,
    changed_parts,
    fingerprint,
    recipe_document,
)
from extraction_pipeline.documents.identity import document_key
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.ledger.versions import VersionRecipe, VersionRow, use_version
from extraction_pipeline.lifecycle.naming import custom_id
from extraction_pipeline.providers.base import ModelRequest
from extraction_pipeline.schemas.document_type import DocumentType
from extraction_pipeline.schemas.prompt import render_document
from extraction_pipeline.schemas.registry import document_type_names, find_document_type


@dataclass(frozen=True)
class BuiltRequest:
    """One request, and the two names that tie its answer to the document and the job."""

    document_key: str
    request: ModelRequest


def type_of(collection: Collection) -> DocumentType:
    """The document type that the collection names. Raises `CollectionError` with file and line."""
    try:
        return find_document_type(collection.document_type)
    except ConfigurationError as error:
        raise collection.error(
            ("document_type",), error.message, error.remedy or "Name another."
        ) from None


def recipe_of(collection: Collection, version: ExtractionVersion) -> Recipe:
    """All that decides what is asked, from the version, the schema and the prompt."""
    kind = type_of(collection)
    return Recipe(
        instructions=version.instructions or kind.instructions,
        schema_name=kind.name,
        schema_version=kind.schema_version,
        json_schema=kind.json_schema,
        provider=version.provider.value,
        model=version.model,
        parameters=version.parameters,
        max_output_tokens=version.max_output_tokens,
    )


def recipe_from_document(stored: Mapping[str, Any]) -> Recipe:
    """The recipe that was recorded for a version: what a job was claimed for is what is sent."""
    return Recipe(**stored)


def type_of_recipe(recipe: Recipe, collections: Iterable[Collection]) -> DocumentType:
    """The document type that a recorded recipe asked for, whatever the YAML says by now.

    It is sought among the shipped types, then among those of the declared collections; one of the
    same schema version goes before. Raises `ConfigurationError` where there is none.
    """
    name = recipe.schema_name
    shipped = [find_document_type(name)] if name in document_type_names() else []
    declared = (type_of(collection) for collection in collections)
    found = [kind for kind in (*shipped, *declared) if kind.name == name]
    if not found:
        raise ConfigurationError(
            f"No declared collection has the document type {name}, which answers were asked for.",
            remedy="Declare a collection of this type; what has come in waits for it.",
        )
    return next((kind for kind in found if kind.schema_version == recipe.schema_version), found[0])


def version_in_use(
    connection: Connection, collection: Collection, version: ExtractionVersion
) -> tuple[VersionRow, Recipe]:
    """The ledger's row of a version, recorded now if it is new. Raises `RecipeChanged`."""
    recipe = recipe_of(collection, version)
    row = use_version(
        connection,
        collection.name,
        version.name,
        VersionRecipe(
            fingerprint=fingerprint(recipe),
            recipe=recipe_document(recipe),
            schema_version=recipe.schema_version,
            provider=recipe.provider,
            model=recipe.model,
        ),
        changed_parts,
    )
    return row, recipe


def build_request(
    recipe: Recipe, version_name: str, job_key: str, document_hash: str, text: str
) -> BuiltRequest:
    """The request about one document in one job. Pure and deterministic."""
    key = document_key(version_name, text)
    return BuiltRequest(
        document_key=key,
        request=ModelRequest(
            custom_id=custom_id(job_key, key, document_hash),
            model=recipe.model,
            instructions=recipe.instructions,
            document=render_document(text),
            schema_name=recipe.schema_name,
            json_schema=recipe.json_schema,
            max_output_tokens=recipe.max_output_tokens,
            parameters=recipe.parameters,
            document_hash=document_hash,
        ),
    )
