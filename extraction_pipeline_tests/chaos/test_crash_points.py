"""A process dies once at every crash point, and what it left comes to the same end all the same.

Field reports 1, 2, 4 and 11. A point that no process comes by is a defect of its own.
"""

import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest
from dagster import DagsterInstance

from extraction_pipeline.crash_points import CrashPoint
from extraction_pipeline.ledger import answers, items
from extraction_pipeline.lifecycle.opening import open_pipeline
from extraction_pipeline.orchestration import event_log
from extraction_pipeline.orchestration.resource import opened_pipeline
from extraction_pipeline.providers.registry import ProviderName
from extraction_pipeline.settings import load_settings
from extraction_pipeline_tests.batch_server.process import running_server
from extraction_pipeline_tests.chaos.ground import Ground, Step, Work
from extraction_pipeline_tests.chaos.roles import PIECE
from extraction_pipeline_tests.chaos.world import PROVIDERS, World
from extraction_pipeline_tests.conftest import TEMPLATE
from extraction_pipeline_tests.ledger.databases import database

P = CrashPoint
DOCUMENTS = 3

WITH_FILES = (ProviderName.OPENAI, ProviderName.GEMINI)
"""Providers to which the payload is uploaded before the create call."""


@dataclass(frozen=True)
class Scene:
    """Where a point lies: the steps before, the one in which the process dies, where an earlier
    process has died, and what is different in its environment."""

    step: Step
    before: tuple[Step, ...] = ()
    died_at: CrashPoint | None = None
    providers: tuple[ProviderName, ...] = PROVIDERS
    environment: Mapping[str, str] = field(default_factory=dict)


SUBMITTED = (Work.scan, Work.record_documents, Work.submit)
ENDED = (*SUBMITTED, Work.record_submission, Work.poll)
COLLECTED = (*ENDED, Work.collect)
PUBLISHED = (*COLLECTED, Work.publish)

_REGISTERING = Scene(Work.scan)
_RECORDING = Scene(Work.record_documents, (Work.scan,))
_SUBMITTING = Scene(Work.submit, SUBMITTED[:-1])
_UPLOADING = Scene(Work.submit, SUBMITTED[:-1], providers=WITH_FILES)
_ADOPTING = Scene(Work.resolve, SUBMITTED[:-1], died_at=P.CREATE_ACCEPTED)
_PROVING = Scene(Work.resolve, SUBMITTED[:-1], died_at=P.CREATE_DUE)
_WITHDRAWING = Scene(
    Work.resolve, SUBMITTED[:-1], died_at=P.CREATE_DUE, providers=(ProviderName.OPENAI,)
)
_READING = Scene(Work.poll, SUBMITTED)
_COLLECTING = Scene(Work.collect, ENDED)
_PUBLISHING = Scene(Work.publish, COLLECTED)

SCENES: Mapping[CrashPoint, Scene] = {
    P.TEXTS_STORED: _REGISTERING,
    P.DOCUMENTS_REGISTERED: _REGISTERING,
    P.PARTITIONS_ADDED: _RECORDING,
    P.EVENTS_PARTLY_WRITTEN: _RECORDING,
    P.DOCUMENTS_NOT_MARKED: _RECORDING,
    P.CLAIMED_NOT_COMMITTED: _SUBMITTING,
    P.INTENT_COMMITTED: _SUBMITTING,
    P.PAYLOAD_STORED: _SUBMITTING,
    P.PAYLOAD_WRITTEN: _SUBMITTING,
    P.UPLOADED: _UPLOADING,
    P.UPLOAD_WRITTEN: _UPLOADING,
    P.CREATE_DUE: _SUBMITTING,
    P.CREATE_ACCEPTED: _SUBMITTING,
    P.JOB_ID_WRITTEN: _SUBMITTING,
    P.CREATE_REFUSED: Scene(
        Work.submit,
        SUBMITTED[:-1],
        environment={"EXTRACTION_ANTHROPIC_BASE_URL": "http://127.0.0.1:9"},
        providers=(ProviderName.ANTHROPIC,),
    ),
    P.CREATE_UNKNOWN: Scene(
        Work.submit,
        SUBMITTED[:-1],
        environment={"EXTRACTION_ANTHROPIC_BASE_URL": "silent"},
        providers=(ProviderName.ANTHROPIC,),
    ),
    P.SEARCH_DUE: _ADOPTING,
    P.FOUND: _ADOPTING,
    P.ADOPTED: _ADOPTING,
    P.WITHDRAWAL_WRITTEN: _WITHDRAWING,
    P.INPUT_DELETED: _WITHDRAWING,
    P.INPUT_GONE_WRITTEN: _WITHDRAWING,
    P.ABSENCE_WRITTEN: _PROVING,
    P.SUBMISSION_NOT_MARKED: Scene(Work.record_submission, SUBMITTED),
    P.READING_MADE: _READING,
    P.END_WRITTEN: _READING,
    P.RUN_CLAIMED: Scene(Work.ask_for_runs, ENDED),
    P.RESULTS_FETCHED: _COLLECTING,
    P.RESULTS_STORED: _COLLECTING,
    P.RESULT_FILE_WRITTEN: _COLLECTING,
    P.ROWS_NOT_COMMITTED: _COLLECTING,
    P.ROWS_LANDED: _COLLECTING,
    P.LANDED_NOT_MARKED: _COLLECTING,
    P.COLLECTED: _COLLECTING,
    P.ANSWERS_JUDGED: _PUBLISHING,
    P.PARTLY_PUBLISHED: _PUBLISHING,
    P.PUBLISHED_NOT_MARKED: _PUBLISHING,
    P.PUBLISHED: _PUBLISHING,
    P.RESPONSES_RECORDED: Scene(Work.record_results, PUBLISHED),
    P.RESULTS_NOT_MARKED: Scene(Work.record_results, PUBLISHED),
    P.RESULTS_MARKED: Scene(Work.record_results, PUBLISHED),
    P.CLEANED_NOT_WRITTEN: Scene(
        Work.clean_up,
        (*PUBLISHED, Work.record_results),
        environment={"EXTRACTION_DELETE_AT_PROVIDER": "true"},
        providers=(ProviderName.OPENAI,),
    ),
}
IN_A_RUN_OF_DAGSTER = frozenset({P.NIGHT_NOT_RECORDED})
"""Points that only a whole run comes by."""

EVERY_PROVIDER = frozenset({P.CREATE_DUE, P.CREATE_ACCEPTED, P.ROWS_LANDED})
"""Points at which what is left differs from provider to provider."""

CASES = [
    (point, provider)
    for place, (point, scene) in enumerate(SCENES.items())
    for provider in (
        scene.providers
        if point in EVERY_PROVIDER
        else [scene.providers[place % len(scene.providers)]]
    )
]


@pytest.fixture(scope="module")
def ground(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """One world for all points."""
    root = tmp_path_factory.mktemp("chaos")
    with (
        pytest.MonkeyPatch.context() as patch,
        database(postgres_url, TEMPLATE) as url,
        running_server(root / "batch_server") as server,
    ):
        world = World(root, PROVIDERS, int(server.root_url.rsplit(":", 1)[1]))
        for name, value in world.environment(url).items():
            patch.setenv(name, value)
        patch.setenv("EXTRACTION_READ_TIMEOUT", "0.6")
        patch.setenv("EXTRACTION_SEND_TIMEOUT", "0.3")
        patch.setenv("EXTRACTION_CONNECT_TIMEOUT", "0.3")
        for module, name in ((items, "CHUNK"), (answers, "CHUNK"), (event_log, "BATCH")):
            patch.setattr(module, name, PIECE)
        opened_pipeline.cache_clear()
        pipeline = open_pipeline(load_settings())
        with DagsterInstance.from_config(str(world.dagster_home)) as instance:
            yield Ground(world, pipeline, instance, server)
        pipeline.engine.dispose()
        opened_pipeline.cache_clear()


@pytest.fixture(scope="module")
def silence() -> Iterator[str]:
    """A server that takes connections and never says a word."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        yield f"http://127.0.0.1:{silent.getsockname()[1]}"


@pytest.mark.parametrize(("point", "provider"), CASES)
def test_a_process_dies_there_and_every_promise_holds(
    ground: Ground, silence: str, point: CrashPoint, provider: ProviderName
) -> None:
    scene, name = SCENES[point], f"{provider}_notes"
    environment = {
        variable: silence if value == "silent" else value
        for variable, value in scene.environment.items()
    }
    ground.world.write(name, DOCUMENTS)
    for step in scene.before:
        step(ground.work(name))
    if scene.died_at is not None:
        assert ground.dies_at(scene.died_at, name, Work.submit, environment={})
    assert ground.dies_at(point, name, scene.step, environment=environment), "it is never reached"
    ground.work(name).everything()
    assert not any(ground.counts().values()), ground.counts()


def test_every_point_has_its_scene() -> None:
    assert {*SCENES, *IN_A_RUN_OF_DAGSTER} == {*CrashPoint}
