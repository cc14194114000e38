"""Extraction versions: a recipe is recorded at first use and never changes under its name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, text

from extraction_pipeline.errors import RecipeChanged


@dataclass(frozen=True)
class VersionRow:
    """A used extraction version."""

    id: int
    collection: str
    name: str
    fingerprint: str
    recipe: dict[str, Any]
    schema_version: str
    provider: str
    model: str


@dataclass(frozen=True)
class VersionRecipe:
    """What a version means, as it is recorded."""

    fingerprint: str
    recipe: dict[str, Any]
    schema_version: str
    provider: str
    model: str


def use_version(
    connection: Connection,
    collection: str,
    name: str,
    wanted: VersionRecipe,
    changed_parts: Callable[[dict[str, Any], dict[str, Any]], tuple[str, ...]],
) -> VersionRow:
    """The row of this version, written now if it is used for the first time.

    Raises `RecipeChanged` if another recipe was recorded under this name.
    """
    connection.execute(
        text("""
            INSERT INTO extraction.extraction_versions
                (collection, name, fingerprint, recipe, schema_version, provider, model)
            VALUES (:collection, :name, :fingerprint, CAST(:recipe AS jsonb), :schema_version,
                    :provider, :model)
            ON CONFLICT (collection, name) DO NOTHING
        """),
        {
            "collection": collection,
            "name": name,
            "fingerprint": wanted.fingerprint,
            "recipe": orjson.dumps(wanted.recipe).decode(),
            "schema_version": wanted.schema_version,
            "provider": wanted.provider,
            "model": wanted.model,
        },
    )
    row = find_version(connection, collection, name)
    if row is None or row.fingerprint != wanted.fingerprint:
        parts = changed_parts(row.recipe if row else {}, wanted.recipe)
        raise RecipeChanged(
            f"Version {name} of collection {collection} was used before with another recipe "
            f"(changed: {', '.join(parts) or 'its form'}).",
            remedy="Give the changed recipe a new version name in the collection's YAML, and set "
            "active_version to it.",
        )
    return row


def find_version(connection: Connection, collection: str, name: str) -> VersionRow | None:
    """The recorded version, or `None` if it was never used."""
    row = connection.execute(
        text("""
            SELECT id, collection, name, fingerprint, recipe, schema_version, provider, model
            FROM extraction.extraction_versions WHERE collection = :collection AND name = :name
        """),
        {"collection": collection, "name": name},
    ).one_or_none()
    return VersionRow(*row) if row else None


def used_versions(connection: Connection, collection: str) -> list[str]:
    """Names of the versions that were ever used, in order of first use."""
    return list(
        connection.execute(
            text("""
                SELECT name FROM extraction.extraction_versions
                WHERE collection = :collection ORDER BY id
            """),
            {"collection": collection},
        ).scalars()
    )


def version_by_id(connection: Connection, version: int) -> VersionRow:
    """The recorded version with this id."""
    return VersionRow(
        *connection.execute(
            text("""
                SELECT id, collection, name, fingerprint, recipe, schema_version, provider, model
                FROM extraction.extraction_versions WHERE id = :id
            """),
            {"id": version},
        ).one()
    )
