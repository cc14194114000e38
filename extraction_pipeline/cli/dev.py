"""`extraction-pipeline dev`."""

import os
import signal
import subprocess
import sys

import click

from extraction_pipeline.cli.environment import read_settings
from extraction_pipeline.installation.stack import local_stack

STOP_SECONDS = 30


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address of the Dagster UI.")
@click.option("--port", type=int, default=3000, show_default=True, help="Port of the Dagster UI.")
def dev(host: str, port: int) -> None:
    """Run everything on this machine: database, batch server, Dagster UI and daemon.

    Ctrl-C ends all that it started. State is kept, and work goes on with the next start.

    \b
    Example:
      extraction-pipeline dev --port 3000
    """
    with local_stack(read_settings()) as settings:
        click.echo(f"State: {settings.home}")
        click.echo(f"Batch server: {settings.local_base_url}")
        click.echo(f"Dagster UI: http://{host}:{port}  (Ctrl-C to end)")
        # Both mean the same here. A shell makes its background jobs deaf to SIGINT, and a child
        # would inherit that, so this comes before it.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "dagster",
                "dev",
                "--module-name",
                "extraction_pipeline.definitions",
                "--host",
                host,
                "--port",
                str(port),
            ],
            start_new_session=True,
        )
        try:
            code = process.wait()
        except KeyboardInterrupt:
            click.echo("Ending what was started.")
            code = _stop(process)
    sys.exit(code)


def _stop(process: "subprocess.Popen[bytes]") -> int:
    """Ask Dagster to end in good order, and make its whole process group end if it does not."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(STOP_SECONDS)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):  # too slow, or Ctrl-C once more
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return 0
