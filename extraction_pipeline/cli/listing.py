"""The command that lists what is not published, with why and what to do. Pure."""

from collections.abc import Sequence

from extraction_pipeline.cli.program import with_program
from extraction_pipeline.collections.collection import Collection


def listing_command(undone: Sequence[tuple[Collection, str]]) -> str:
    """As it can be typed here, for these versions of collections: by itself it lists what is not
    published at the active ones."""
    command = with_program("extraction-pipeline status --documents")
    others = [version for collection, version in undone if version != collection.active_version]
    if not others:
        return command
    if len(others) == len(undone) and len(set(others)) == 1:
        return f"{command} --extraction-version {others[0]}"
    return f"{command}; of a version that is not the active one, with --extraction-version NAME"
