"""The command line of the batch server."""

import logging
import os
import sys
from pathlib import Path

import click

from extraction_pipeline.batch_server.config import RelayConfig, ServerConfig
from extraction_pipeline.errors import ConfigurationError


@click.command("batch-server", context_settings={"show_default": True})
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".extraction_pipeline/batch_server"),
    help="Folder for everything that the server keeps.",
)
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, help="Port; 0 for any.")
@click.option(
    "--port-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the port here when the server is ready.",
)
@click.option(
    "--api-key-variable", metavar="NAME", help="Environment variable with the key to ask for."
)
@click.option("--delay", type=float, default=0.0, help="Seconds that a batch takes at least.")
@click.option(
    "--window", type=float, default=24 * 3600.0, help="Seconds after which a batch expires."
)
@click.option(
    "--relay-url",
    metavar="URL",
    help="OpenAI-compatible endpoint that answers, such as http://127.0.0.1:11434/v1.",
)
@click.option("--relay-model", metavar="NAME", help="Model to ask it for, whatever requests name.")
@click.option(
    "--relay-key-variable", metavar="NAME", help="Environment variable with the endpoint's key."
)
@click.option("--relay-concurrency", type=click.IntRange(1, 256), default=4, help="At once.")
@click.option("--relay-timeout", type=float, default=600.0, help="Seconds for one answer.")
@click.option(
    "--faults",
    type=click.Path(path_type=Path),
    help="Plan of faults (JSON): what is to go wrong, for tests of clients.",
)
@click.option(
    "--webhooks",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File (JSON) that says whom to tell when a batch has ended; it may change meanwhile.",
)
@click.option("--relay-attempts", type=click.IntRange(1), default=8, help="For one request.")
def batch_server(
    state: Path,
    host: str,
    port: int,
    port_file: Path | None,
    api_key_variable: str | None,
    delay: float,
    window: float,
    relay_url: str | None,
    relay_model: str | None,
    relay_key_variable: str | None,
    relay_concurrency: int,
    relay_timeout: float,
    relay_attempts: int,
    faults: Path | None,
    webhooks: Path | None,
) -> None:
    """Serve the batch APIs of OpenAI, Anthropic, Gemini and Infrai on this machine.

    Models called rules-baseline are answered by built-in rules; with --relay-url, all others by a
    model that you run.

    \b
    Example:
      extraction-pipeline batch-server --relay-url http://127.0.0.1:11434/v1 --relay-model qwen3
    """
    # Not at the top: it is slow to import, which `--help` need not wait for.
    from extraction_pipeline.batch_server.app import serve
    from extraction_pipeline.batch_server.faults.plan import FaultPlan, load_plan
    from extraction_pipeline.batch_server.webhooks.targets import read_targets

    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    for name in ("uvicorn", "python_multipart"):
        logging.getLogger(name).setLevel(logging.WARNING)
    if relay_url is None:
        for name, value in (("model", relay_model), ("key-variable", relay_key_variable)):
            if value is not None:
                raise click.UsageError(f"--relay-{name} needs --relay-url: where to relay to.")
    if webhooks is not None:
        read_targets(webhooks)  # what is wrong with it is told now
    relay = None
    if relay_url is not None:
        relay = RelayConfig(
            url=relay_url,
            model=relay_model,
            api_key=_from_environment(relay_key_variable),
            concurrency=relay_concurrency,
            timeout=relay_timeout,
            attempts=relay_attempts,
        )
    serve(
        ServerConfig(
            state=state,
            host=host,
            port=port,
            port_file=port_file,
            api_key=_from_environment(api_key_variable),
            delay=delay,
            window=window,
            relay=relay,
            faults=FaultPlan() if faults is None else load_plan(faults),
            webhooks=webhooks,
        )
    )


def _from_environment(variable: str | None) -> str | None:
    """A key by the name of its variable: on the command line it would show in process lists."""
    if variable is None:
        return None
    value = os.environ.get(variable)
    if not value:
        raise ConfigurationError(
            f"The environment variable {variable} is not set.",
            remedy="Set it to the key, or leave the option out.",
        )
    return value
