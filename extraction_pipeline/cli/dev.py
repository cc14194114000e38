"""`extraction-pipeline dev`."""

from pathlib import Path

import click

from extraction_pipeline.cli.options import corpus_option
from extraction_pipeline.cli.signals import importing


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address of the Dagster UI.")
@click.option(
    "--port", type=int, default=3000, show_default=True, help="Its port; 0 for any free one."
)
@click.option(
    "--webhooks-port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port of this machine for webhooks; 0 for any free one.",
)
@corpus_option
def dev(host: str, port: int, webhooks_port: int, corpus: Path | None) -> None:
    """Run everything on this machine: database, batch server, webhooks, Dagster UI and daemon.

    Ctrl-C ends all that it started. State is kept, and work goes on with the next start. Should
    one of them end by itself, the others are ended too.

    \b
    Example:
      extraction-pipeline dev --port 3000
    """
    with importing():
        from extraction_pipeline.cli.development import develop
    develop(host, port, webhooks_port, corpus)
