"""`extraction-pipeline run`."""

import sys
from pathlib import Path

import click

from extraction_pipeline.cli.options import corpus_option
from extraction_pipeline.cli.signals import importing


@click.command()
@click.option("--collection", required=True, metavar="NAME", help="The collection to run.")
@click.option("--extraction-version", "version", metavar="NAME", help="Default: the active one.")
@click.option("--wait", is_flag=True, help="Wait until every batch job has ended and is published.")
@corpus_option
def run(collection: str, version: str | None, wait: bool, corpus: Path | None) -> None:
    """Scan one collection and submit what lacks an extraction.

    Without --wait it ends once the jobs are submitted; the status sensor of `extraction-pipeline
    dev`, or a later run with --wait, brings the results. It ends with 1 if a job could not be
    submitted yet, and with --wait if documents are left waiting.

    \b
    Example:
      extraction-pipeline run --collection payer_notes --extraction-version v1 --wait
    """
    with importing():
        from extraction_pipeline.cli.one_collection import run_collection
    sys.exit(run_collection(collection, version, corpus, wait=wait))
