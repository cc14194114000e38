"""`extraction-pipeline webhooks`."""

from pathlib import Path

import click

from extraction_pipeline.cli.signals import importing


@click.command(context_settings={"show_default": True})
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8766, help="Port; 0 for any.")
@click.option(
    "--port-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the port here when the receiver is ready.",
)
def webhooks(host: str, port: int, port_file: Path | None) -> None:
    """Receive what providers announce, at /webhooks/NAME, so that results are fetched at once.

    A delivery only makes its job due: without it, the job is polled a little later. Several may
    run over one database. Put TLS in front of it.

    \b
    Example:
      EXTRACTION_OPENAI_WEBHOOK_SECRET=whsec_… extraction-pipeline webhooks --port 8766
    """
    with importing():
        from extraction_pipeline.cli.receiving import receive
    receive(host, port, port_file)
