"""`extraction-pipeline demo`."""

import sys
from pathlib import Path

import click

from extraction_pipeline.cli.options import corpus_option
from extraction_pipeline.cli.signals import importing


@click.command()
@corpus_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@click.option("--show-record", is_flag=True, help="Show a record of your own --corpus as well.")
def demo(corpus: Path | None, as_json: bool, show_record: bool) -> None:
    """Run the whole pipeline once on this machine, and show what came out.

    It starts a database and a batch server of its own, drives the real Dagster jobs and the real
    status sensor until every batch job has ended, and stops. Nothing leaves the machine. Run again,
    it submits nothing.

    \b
    Example:
      extraction-pipeline demo
      extraction-pipeline demo --corpus my_documents --json
    """
    with importing():
        from extraction_pipeline.cli.demonstration import demonstrate
    sys.exit(demonstrate(corpus, as_json=as_json, show_record=show_record))
