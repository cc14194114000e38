"""What `dagster.yaml` names under `storage`: runs, events and schedules in one PostgreSQL."""

from collections.abc import Mapping
from typing import Any

from dagster._core.storage.event_log import EventLogStorage
from dagster._serdes import ConfigurableClassData
from dagster_postgres import DagsterPostgresStorage
from dagster_postgres.utils import (
    get_token_provider_from_config,
    pg_url_from_config,
    retry_pg_connection_fn,
)
from sqlalchemy import Engine, inspect

from extraction_pipeline.dagster_storage.engines import engine_of
from extraction_pipeline.dagster_storage.event_log import BulkEventLogStorage
from extraction_pipeline.dagster_storage.tested_versions import require_tested_versions

MAIN_TABLES = frozenset({"event_logs", "runs", "instance_info", "jobs"})
"""Those by which Dagster tells whether its tables are made."""


class BulkPostgresStorage(DagsterPostgresStorage):
    """Dagster's storage in PostgreSQL, with events in bulk, over the one pool of this process.

    Its configuration is that of Dagster's own `postgres`. Raises `ConfigurationError` for a version
    of Dagster that it was not tested with.
    """

    def __init__(
        self,
        postgres_url: str,
        should_autocreate_tables: bool = True,
        inst_data: ConfigurableClassData | None = None,
        token_provider: Any = None,
    ) -> None:
        require_tested_versions()
        postgres_url = postgres_url.strip()  # the line break of a secret that was read from a file
        engine = engine_of(postgres_url, token_provider)
        lacking = should_autocreate_tables and not _has_tables(engine)
        super().__init__(postgres_url, lacking, inst_data, token_provider)
        self.should_autocreate_tables = should_autocreate_tables
        self._event_log_storage = BulkEventLogStorage(
            postgres_url, should_autocreate_tables=False, token_provider=token_provider
        )
        for storage in (self._run_storage, self._event_log_storage, self._schedule_storage):
            storage._engine = engine

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> "BulkPostgresStorage":
        """Make it from the lines of `dagster.yaml`."""
        return cls(
            pg_url_from_config(config_value),
            config_value.get("should_autocreate_tables", True),
            inst_data,
            get_token_provider_from_config(config_value),
        )

    @property
    def event_log_storage(self) -> EventLogStorage:
        """The storage of events."""
        return self._event_log_storage


def _has_tables(engine: Engine) -> bool:
    names: list[str] = retry_pg_connection_fn(lambda: inspect(engine).get_table_names())
    return set(names) >= MAIN_TABLES
