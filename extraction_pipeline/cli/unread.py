"""What commands that scan say about files that could not be read."""

from collections.abc import Iterator, Mapping

from extraction_pipeline.cli.output import counted
from extraction_pipeline.cli.program import with_program
from extraction_pipeline.ledger.summary import CollectionSummary


def unread_lines(collections: Mapping[str, CollectionSummary]) -> Iterator[str]:
    """One line for each collection of which files, folders or rows of a manifest gave no
    document: they are in none of the other counts."""
    for name, summary in collections.items():
        if summary.sources_unread:
            yield with_program(
                f"{name}: {counted(summary.sources_unread, 'file')} could not be read, and the "
                "next scan tries again. Which, and why: extraction-pipeline status --documents"
            )
