"""Starting what the environment does not name: the database, the batch server, Dagster's home."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.installation.embedded_postgres import (
    EmbeddedPostgres,
    embedded_postgres,
    postgres_runs,
)
from extraction_pipeline.installation.instance_file import (
    is_instance_file_of_ours,
    write_instance_file,
)
from extraction_pipeline.installation.local_batch_server import (
    LocalBatchServer,
    batch_server_runs,
    local_batch_server,
    webhooks_file,
)
from extraction_pipeline.installation.sharing import end_unused
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.ledger.migrate import migrate, require_current
from extraction_pipeline.settings import Settings, load_settings

POSTGRES = "postgres"
BATCH_SERVER = "batch_server"


@contextmanager
def database(settings: Settings, *, create: bool = True) -> Iterator[Settings]:
    """A database that is migrated: the one of the environment, or the embedded one of the home.

    Sets the environment of this process and its children; yields the settings with it. With
    `create` unset, tables are checked and not made. Raises `ConfigurationError` or `LedgerError`.
    """
    with ExitStack() as stack:
        stack.callback(_end_unused, settings.home)
        if settings.database_url is None:
            make_home(settings.home)
            url = stack.enter_context(embedded_postgres(settings.home / POSTGRES))
        else:
            url = settings.database_url.get_secret_value()
        os.environ["EXTRACTION_DATABASE_URL"] = url
        os.environ["EXTRACTION_HOME"] = str(settings.home)
        engine = open_engine(url)
        try:
            migrate(engine) if create else require_current(engine)
        finally:
            engine.dispose()
        yield load_settings()


@contextmanager
def local_stack(settings: Settings) -> Iterator[Settings]:
    """A database, a Dagster home, and, unless the environment names another, a batch server."""
    # Not above: what shows the ledger alone would wait for Dagster's import.
    from extraction_pipeline.installation.dagster_tables import make_dagster_tables
    from extraction_pipeline.installation.usable_instance import require_usable_instance

    with database(settings) as ready, ExitStack() as stack:
        folder = dagster_home(settings.home)
        assert ready.database_url is not None
        make_dagster_tables(ready.database_url.get_secret_value())
        if not is_instance_file_of_ours(folder):
            require_usable_instance(folder)
        if "local_base_url" not in settings.model_fields_set:
            base_url = stack.enter_context(local_batch_server(settings.home / BATCH_SERVER))
            os.environ["EXTRACTION_LOCAL_BASE_URL"] = base_url
        yield load_settings()


def watched_services(settings: Settings) -> dict[str, Callable[[], bool]]:
    """Whether each service that `local_stack` provides for these settings runs, by its name."""
    services: dict[str, Callable[[], bool]] = {}
    if settings.database_url is None:
        services["PostgreSQL"] = lambda: postgres_runs(settings.home / POSTGRES)
    if "local_base_url" not in settings.model_fields_set:
        services["the batch server"] = lambda: batch_server_runs(settings.home / BATCH_SERVER)
    return services


def announced_to(settings: Settings) -> Path | None:
    """The file that says whom the batch server of `local_stack` tells of its batches; `None` where
    the environment names a batch server of its own."""
    if "local_base_url" in settings.model_fields_set:
        return None
    return webhooks_file(settings.home / BATCH_SERVER)


def dagster_home(home: Path) -> Path:
    """The folder of Dagster's instance, with the instance file of this code in it, unless a person
    has written to it."""
    given = os.environ.get("DAGSTER_HOME", "").strip()
    folder = Path(given or home / "dagster").expanduser().absolute()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not given:
            write_instance_file(folder)
    except OSError as error:
        raise ConfigurationError(
            f"Dagster's folder cannot be used: {error.filename or folder}: {error.strerror}.",
            remedy="Mend it, or set DAGSTER_HOME, or EXTRACTION_HOME, to another folder.",
        ) from None
    os.environ["DAGSTER_HOME"] = str(folder)
    return folder


def _end_unused(home: Path) -> None:
    """End what a killed command left running and the one that ends now had no use for."""
    end_unused(home / POSTGRES, EmbeddedPostgres(home / POSTGRES))
    end_unused(home / BATCH_SERVER, LocalBatchServer(home / BATCH_SERVER))


def require_reachable(home: Path) -> None:
    """Raise `ConfigurationError` where nobody can tell what is in the state folder, or whether it
    is there."""
    try:
        (home / POSTGRES).stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise _no_home(home, error) from None


def make_home(home: Path) -> None:
    """Make the state folder. Raises `ConfigurationError` where it cannot be made or written."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryFile(dir=home) as probe:
            probe.write(b"x")
    except OSError as error:
        raise _no_home(home, error) from None


def _no_home(home: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"The state folder {home} cannot be written: {error.strerror}.",
        remedy="Set EXTRACTION_HOME to a folder that can.",
    )
