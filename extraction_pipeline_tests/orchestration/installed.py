"""A whole installation in this process: real jobs, real instance, real batch server."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dagster import (
    AssetKey,
    AssetMaterialization,
    DagsterEventType,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    Definitions,
    EventLogRecord,
    ExecuteInProcessResult,
)
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
)
from sqlalchemy import text

from extraction_pipeline.definitions import build_definitions
from extraction_pipeline.lifecycle.pipeline import Pipeline
from extraction_pipeline.lifecycle.polling import poll_due
from extraction_pipeline.orchestration.driving import QUIET, Driver, Target
from extraction_pipeline.orchestration.lifeline import lifeline
from extraction_pipeline.orchestration.partitions import partitions_name
from extraction_pipeline.orchestration.resource import opened_pipeline
from extraction_pipeline.settings import load_settings
from extraction_pipeline_tests.batch_server.process import ServerProcess, wait_until
from extraction_pipeline_tests.conftest import Workplace

NOTES = Target("notes", "v1")
NOWHERE = "http://127.0.0.1:9/v1"


@dataclass(frozen=True)
class Installed:
    """One installation and the ways in which a test makes it work."""

    workplace: Workplace
    pipeline: Pipeline
    instance: DagsterInstance
    definitions: Definitions
    server: ServerProcess

    def driver(self, **options: Any) -> Driver:
        return Driver(self.instance, self.definitions, self.pipeline, lambda line: None, **options)

    def disconnect(self) -> None:
        """Let runs that open the pipeline anew reach for a provider where nothing listens."""
        self.workplace.environment.setenv("EXTRACTION_LOCAL_BASE_URL", NOWHERE)
        forget_pipeline()

    def reconnect(self) -> None:
        """Reach the batch server again, in runs that open the pipeline anew."""
        self.workplace.environment.setenv("EXTRACTION_LOCAL_BASE_URL", self.server.base_url)
        forget_pipeline()

    def redeclared(self, versions: str) -> "Installed":
        """The same installation after an edit of the YAML that adds versions."""
        file = self.workplace.collections / "notes.yaml"
        file.write_text(file.read_text() + versions)
        return self.reopened()

    def reopened(self) -> "Installed":
        """The same installation, with the collections that are declared by now."""
        forget_pipeline()
        return replace(
            self,
            pipeline=replace(self.pipeline, collections=self.workplace.open().collections),
            definitions=build_definitions(load_settings()),
        )

    def with_documents(self, count: int, *files: tuple[str, bytes]) -> list[str]:
        """Write notes and other files, scan them; all hashes, in order of registration."""
        self.workplace.write(count)
        for name, content in files:
            (self.workplace.documents / "notes" / name).write_bytes(content)
        self.driver().scan(["notes"])
        return self.partitions()

    def finish(self) -> None:
        """Submit what lacks an extraction at v1 and wait until it is published."""
        self.driver().finish([NOTES])

    def ended(self) -> None:
        """Poll until every submitted job has ended."""

        def none_left() -> bool:
            poll_due(self.pipeline, "test", 100, seconds=5)
            open_jobs = "SELECT 1 FROM extraction.batch_jobs WHERE state = 'submitted'"
            return not self.query(open_jobs)

        wait_until(none_left)

    def ended_job(self) -> str:
        """Submit all documents in one job, and wait for its end; its key."""
        assert self.submit().success
        self.ended()
        (key,) = self.query("SELECT job_key FROM extraction.batch_jobs")
        return str(key)

    def requested_ago(self, seconds: float) -> None:
        """Let the sensor have asked for all runs so long ago, for jobs that had ended by then."""
        self.execute(
            "UPDATE extraction.batch_jobs"
            " SET run_requested_at = now() - make_interval(secs => :seconds),"
            " ended_at = now() - make_interval(secs => :seconds + 60)",
            seconds=seconds,
        )

    def partitions(self, collection: str = "notes") -> list[str]:
        return list(self.instance.get_dynamic_partitions(partitions_name(collection)))

    def run(
        self, job: str, op: str, config: Mapping[str, object], **tags: str
    ) -> ExecuteInProcessResult:
        result = self.definitions.resolve_job_def(job).execute_in_process(
            run_config={"ops": {op: {"config": dict(config)}}, "loggers": QUIET},
            instance=self.instance,
            tags=tags,
            raise_on_error=False,
        )
        let_go_of_runs(self.pipeline)
        return result

    def submit(self, **config: object) -> ExecuteInProcessResult:
        return self.run(
            "submit_missing", "submit_missing_documents", {"collection": "notes", **config}
        )

    def materialize(self, asset: str, first: str, last: str | None = None, **tags: str):
        """Materialize a range of partitions of an asset of `notes`, as a backfill's run does."""
        return self.asset_run(
            AssetKey(["notes", asset]),
            {
                ASSET_PARTITION_RANGE_START_TAG: first,
                ASSET_PARTITION_RANGE_END_TAG: last or first,
                **tags,
            },
        )

    def asset_run(
        self, key: AssetKey, tags: Mapping[str, str], partition: str | None = None
    ) -> ExecuteInProcessResult:
        result = (
            self.definitions.resolve_implicit_global_asset_job_def()
            .get_subset(asset_selection={key})
            .execute_in_process(
                run_config={"loggers": QUIET},
                instance=self.instance,
                tags=dict(tags),
                partition_key=partition,
                raise_on_error=False,
            )
        )
        let_go_of_runs(self.pipeline)
        return result

    def add_run(self, job: str, status: DagsterRunStatus, **tags: str) -> None:
        """A run of another process, as it stands in Dagster's tables."""
        somewhere = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("somewhere"), "repository")
        self.instance.add_run(
            DagsterRun(
                job_name=job,
                status=status,
                tags=tags,
                remote_job_origin=RemoteJobOrigin(somewhere, job),
            )
        )

    def materialized(self, asset: str, collection: str = "notes") -> set[str]:
        return set(self.instance.get_materialized_partitions(AssetKey([collection, asset])))

    def records(
        self, asset: str, kind: DagsterEventType = DagsterEventType.ASSET_MATERIALIZATION
    ) -> list[EventLogRecord]:
        """All materializations (or observations) of an asset of `notes`, the oldest first."""
        fetch = (
            self.instance.fetch_materializations
            if kind is DagsterEventType.ASSET_MATERIALIZATION
            else self.instance.fetch_observations
        )
        return list(fetch(AssetKey(["notes", asset]), limit=1000, ascending=True).records)

    def provider_jobs(self) -> int:
        """How many batch jobs the server has ever accepted."""
        return int(str(self.server.statistics()["jobs_created"]))

    def query(self, statement: str, **values: object) -> list[Any]:
        """Rows of the installation's database; one column comes as plain values."""
        with self.pipeline.engine.connect() as connection:
            rows = connection.execute(text(statement), values).all()
        return [row[0] if len(row) == 1 else tuple(row) for row in rows]

    def execute(self, statement: str, **values: object) -> None:
        with self.pipeline.engine.begin() as connection:
            connection.execute(text(statement), values)

    def ledger_keys(self, version: str = "v1") -> set[str]:
        """Partition keys of what the ledger has published."""
        return {
            f"{one}|{version}"
            for one in self.query(
                "SELECT d.document_hash FROM extraction.extractions e"
                " JOIN extraction.documents d ON d.id = e.document_id"
                " JOIN extraction.extraction_versions v ON v.id = e.version_id"
                " WHERE v.name = :version",
                version=version,
            )
        }


def forget_pipeline() -> None:
    """Let the next run open the pipeline from the environment, as a new process would."""
    if opened_pipeline.cache_info().currsize:
        let_go_of_runs(opened_pipeline())
        opened_pipeline().engine.dispose()
    opened_pipeline.cache_clear()


def let_go_of_runs(pipeline: Pipeline) -> None:
    """Free the locks of this process's runs, as its end would."""
    url = pipeline.settings.database_url
    assert url is not None
    lifeline(url.get_secret_value()).let_go_of_all()


def cause(result: ExecuteInProcessResult) -> str:
    """The sentence that the failed step of a run shows."""
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    data = failure.step_failure_data
    assert data.user_failure_data is not None, data.error
    return data.user_failure_data.description or ""


def metadata_of(materialization: AssetMaterialization) -> dict[str, object]:
    return {name: value.value for name, value in materialization.metadata.items()}


def keys(hashes: Iterable[str], version: str = "v1") -> set[str]:
    return {f"{one}|{version}" for one in hashes}
