"""What `extraction-pipeline dev` does."""

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import click

from extraction_pipeline.cli.environment import read_settings
from extraction_pipeline.cli.output import say
from extraction_pipeline.cli.signals import end_in_order
from extraction_pipeline.collections.loader import load_collections
from extraction_pipeline.errors import ConfigurationError, ExtractionPipelineError
from extraction_pipeline.installation.corpus import choose_corpus
from extraction_pipeline.installation.dagster_processes import DagsterProcesses
from extraction_pipeline.installation.local_receiver import local_receiver
from extraction_pipeline.installation.sharing import try_lock
from extraction_pipeline.installation.stack import (
    announced_to,
    local_stack,
    make_home,
    watched_services,
)
from extraction_pipeline.settings import Settings, load_settings

WATCH_SECONDS = 1.0
LOCK = "dev.lock"


def develop(host: str, port: int, webhooks_port: int, corpus: Path | None) -> None:
    """Run everything until Ctrl-C, or until a part of it ends. Raises `ConfigurationError` for an
    address that cannot be used, and for a second one over the same home."""
    given = read_settings()
    if (given.home / LOCK).exists():
        with _alone(given.home):
            pass  # its UI has the port: that it runs is what is to be told first
    chosen_port = _free_port(host, port)
    make_home(given.home)
    with _alone(given.home) as lock:
        _choose_corpus(given, corpus)
        with (
            local_stack(load_settings()) as settings,
            local_receiver(settings, webhooks_port, announced_to(given)) as receiver,
        ):
            click.echo(f"State: {settings.home}")
            click.echo(f"Batch server: {settings.local_base_url}")
            click.echo(f"Webhooks: {receiver.url}/webhooks/PROVIDER")
            click.echo(f"Dagster UI: http://{host}:{chosen_port}  (Ctrl-C to end)")
            end_in_order(even_if_ignored=True)
            dagster = DagsterProcesses(host, chosen_port, lock)
            try:
                services = watched_services(given) | {"the receiver of webhooks": receiver.runs}
                _watch(dagster, services)
            except KeyboardInterrupt:
                click.echo("Ending what was started.")
            finally:
                dagster.stop()


def _choose_corpus(settings: Settings, given: Path | None) -> None:
    """Set the corpus, and say which collections have no documents in it."""
    corpus = choose_corpus(settings.home, given, say)
    if corpus is None:
        return
    for collection in corpus.lacking(load_collections(settings.collections, os.environ)):
        say(
            f"{collection.name}: {corpus.place} has no folder of this name, so its scans fail. "
            "EXTRACTION_COLLECTIONS can leave it out."
        )
    corpus.remember(settings.home)


def _watch(dagster: DagsterProcesses, services: Mapping[str, Callable[[], bool]]) -> None:
    """Return never: raise when a part has ended."""
    while True:
        time.sleep(WATCH_SECONDS)  # three kinds of process, and not all are children to wait for
        dead = next((name for name, runs in services.items() if not runs()), dagster.ended())
        if dead is not None:
            raise ExtractionPipelineError(
                f"What ended by itself is {dead}; the rest was ended too.",
                remedy="Nothing is lost: start again with `extraction-pipeline dev`.",
            )


@contextmanager
def _alone(home: Path) -> Iterator[IO[bytes]]:
    """The lock of the one `dev` over a home."""
    with (home / LOCK).open("ab") as lock:
        if not try_lock(lock):
            raise ConfigurationError(
                f"Another `dev` runs over {home}.",
                remedy="End it, or set EXTRACTION_HOME to another folder.",
            )
        yield lock


def _free_port(host: str, port: int) -> int:
    """The port, or a free one for 0. Raises `ConfigurationError` if nothing can listen there."""
    if not 0 <= port <= 65535:
        raise ConfigurationError(f"{port} is no port; they go from 1 to 65535 (0: any free one).")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            return int(listener.getsockname()[1])
    except OSError as error:
        raise ConfigurationError(
            f"The Dagster UI cannot listen on {host}:{port}: {error.strerror}.",
            remedy="Stop what uses the port, or name another with --port.",
        ) from None
