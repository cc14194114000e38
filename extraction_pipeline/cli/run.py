"""`extraction-pipeline run`."""

import sys

import click

from extraction_pipeline.cli.environment import read_settings
from extraction_pipeline.cli.output import say
from extraction_pipeline.installation.session import driving
from extraction_pipeline.ledger.summary import summarize
from extraction_pipeline.orchestration.driving import Target


@click.command()
@click.option("--collection", required=True, metavar="NAME", help="The collection to run.")
@click.option("--extraction-version", "version", metavar="NAME", help="Default: the active one.")
@click.option("--wait", is_flag=True, help="Wait until every batch job has ended and is published.")
def run(collection: str, version: str | None, wait: bool) -> None:
    """Scan one collection and submit what lacks an extraction.

    Without --wait it ends once the jobs are submitted; the status sensor of `extraction-pipeline
    dev`, or a later run with --wait, brings the results.

    \b
    Example:
      extraction-pipeline run --collection payer_notes --extraction-version v1 --wait
    """
    with driving(read_settings(), say) as driver:
        declared = driver.pipeline.collection(collection)
        target = Target(declared.name, declared.version(version or declared.active_version).name)
        driver.scan([target.collection])
        if wait:
            driver.finish([target])
        else:
            driver.submit(target)
        chosen = declared.version(target.version)
        with driver.pipeline.engine.connect() as connection:
            summary = summarize(connection, declared.name, chosen.name, chosen.max_attempts)
    click.echo(
        f"{declared.name} at {chosen.name}: {summary.documents:,} documents, "
        f"{summary.published:,} published, {summary.invalid + summary.failed:,} failed, "
        f"{summary.unreadable:,} unreadable, {summary.waiting:,} waiting."
    )
    if wait and summary.waiting:
        sys.exit(1)
