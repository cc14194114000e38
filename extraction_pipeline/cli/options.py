"""Options that several commands have."""

from pathlib import Path

import click

corpus_option = click.option(
    "--corpus",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with a subfolder of documents for each collection. Default: EXTRACTION_CORPUS, "
    "then the one that --corpus named last in this home, then the samples.",
)
