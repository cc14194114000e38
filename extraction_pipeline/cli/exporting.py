"""What `extraction-pipeline export` does."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from sqlalchemy import Connection

from extraction_pipeline.cli.environment import read_settings
from extraction_pipeline.cli.output import counted
from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.installation.stack import database
from extraction_pipeline.ledger.published import published_rows
from extraction_pipeline.ledger.versions import find_version
from extraction_pipeline.lifecycle.opening import open_pipeline
from extraction_pipeline.lifecycle.recipes import recipe_of
from extraction_pipeline.reports.export import Export, write_export
from extraction_pipeline.reports.export_format import ExportFormat


def export_collection(
    collection: str, version: str | None, chosen: ExportFormat, output: Path
) -> None:
    """Write a collection's records to a file."""
    given = read_settings()
    # Who only reads brings no tables of a server to another version.
    with database(given, create=given.database_url is None) as settings:
        pipeline = open_pipeline(settings)
        declared = pipeline.collection(collection)
        name = version or declared.active_version
        with pipeline.engine.connect() as connection:
            written = write_export(
                Export(_schema(connection, declared, name), with_paths=declared.show_paths),
                published_rows(connection, declared.name, name),
                output,
                chosen,
            )
    click.echo(f"{counted(written, 'record')} of {declared.name} at {name} in {output}.")


def _schema(connection: Connection, collection: Collection, version: str) -> Mapping[str, Any]:
    """The schema that the version was asked with, or would be. Raises `CollectionError`."""
    used = find_version(connection, collection.name, version)
    if used is not None:
        schema: Mapping[str, Any] = used.recipe["json_schema"]
        return schema
    return recipe_of(collection, collection.version(version)).json_schema
