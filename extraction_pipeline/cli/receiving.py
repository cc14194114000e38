"""What `extraction-pipeline webhooks` does."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from extraction_pipeline.cli.environment import read_settings
from extraction_pipeline.cli.output import say
from extraction_pipeline.errors import DatabaseUnavailable
from extraction_pipeline.installation.stack import database
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.ledger.migrate import require_current
from extraction_pipeline.settings import Settings
from extraction_pipeline.webhooks.senders import senders
from extraction_pipeline.webhooks.server import DATABASE_SECONDS, serve


def receive(host: str, port: int, port_file: Path | None) -> None:
    """Receive until SIGTERM or SIGINT. Raises `ConfigurationError` or `LedgerError`."""
    settings = read_settings()
    known = senders(settings)
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    logging.getLogger("alembic").setLevel(logging.WARNING)
    with _database_of(settings) as url:
        say(f"Webhooks are taken from: {', '.join(sorted(known))}.")
        serve(known, url, host, port, port_file)


@contextmanager
def _database_of(settings: Settings) -> Iterator[str]:
    """The database's URL. One of the operator's may be away for now: senders try again."""
    if settings.database_url is None:
        with database(settings) as ready:
            assert ready.database_url is not None
            yield ready.database_url.get_secret_value()
        return
    url = settings.database_url.get_secret_value()
    engine = open_engine(url, patience=DATABASE_SECONDS)
    try:
        require_current(engine)
    except DatabaseUnavailable as error:
        say(f"{error.message} Until it is there, senders are asked to try again.")
    finally:
        engine.dispose()
    yield url
