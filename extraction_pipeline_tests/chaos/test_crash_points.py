"""A process dies once at every crash point, and what it left comes to the same end all the same.

Field reports 1, 2, 4 and 11. A point that no process comes by is a defect of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from extraction_pipeline.crash_points import CrashPoint
from extraction_pipeline.providers.registry import ProviderName
from extraction_pipeline_tests.chaos.ground import Ground, Step, Work
from extraction_pipeline_tests.chaos.world import PROVIDERS

P = CrashPoint
DOCUMENTS = 3

WITH_FILES = (ProviderName.OPENAI, ProviderName.GEMINI)
"""Providers to which the payload is uploaded before the create call."""
LISTING = tuple(one for one in PROVIDERS if one is not ProviderName.INFRAI)
"""Providers that can be searched; the other one is asked again under the same key."""
CLEANING = {"EXTRACTION_DELETE_AT_PROVIDER": "true"}
REFUSED = {"kind": "answer", "call": "create", "status": 404, "page": True}
DROPPED = {"kind": "drop", "call": "create"}
"""Faults that a create call meets."""


@dataclass(frozen=True)
class Death:
    """One process that takes a step and dies in it, over what the one before it has left.

    `fresh` deaths have documents of their own, and the step `before` a death is taken to its end.
    Those that are not `everywhere` happen over one provider: what they leave is the same for all.
    """

    point: CrashPoint
    step: Step
    providers: tuple[ProviderName, ...] = PROVIDERS
    environment: Mapping[str, str] = field(default_factory=dict)
    fault: Mapping[str, object] | None = None
    fresh: bool = False
    before: Step | None = None
    everywhere: bool = False


DEATHS = (
    Death(P.TEXTS_STORED, Work.scan),
    Death(P.DOCUMENTS_REGISTERED, Work.scan),
    Death(P.PARTITIONS_ADDED, Work.record_documents),
    Death(P.EVENTS_PARTLY_WRITTEN, Work.record_documents),
    Death(P.DOCUMENTS_NOT_MARKED, Work.record_documents),
    Death(P.CLAIMED_NOT_COMMITTED, Work.submit),
    Death(P.INTENT_COMMITTED, Work.submit),
    Death(P.PAYLOAD_STORED, Work.submit),
    Death(P.PAYLOAD_WRITTEN, Work.submit),
    Death(P.UPLOADED, Work.submit, WITH_FILES),
    Death(P.UPLOAD_WRITTEN, Work.submit, WITH_FILES, everywhere=True),
    Death(P.CREATE_DUE, Work.submit, everywhere=True),
    Death(P.SEARCH_DUE, Work.resolve),
    Death(P.WITHDRAWAL_WRITTEN, Work.resolve, WITH_FILES, everywhere=True),
    Death(P.INPUT_DELETED, Work.resolve, WITH_FILES, everywhere=True),
    Death(P.INPUT_GONE_WRITTEN, Work.resolve, WITH_FILES),
    Death(P.ABSENCE_WRITTEN, Work.resolve, everywhere=True),
    Death(P.CREATE_ACCEPTED, Work.submit, everywhere=True),
    Death(P.FOUND, Work.resolve, LISTING, everywhere=True),
    Death(P.ADOPTED, Work.resolve, LISTING, everywhere=True),
    Death(P.JOB_ID_WRITTEN, Work.resolve, (ProviderName.INFRAI,)),
    Death(P.SUBMISSION_NOT_MARKED, Work.record_submission),
    Death(P.READING_MADE, Work.poll),
    Death(P.END_WRITTEN, Work.poll, everywhere=True),
    Death(P.RUN_CLAIMED, Work.ask_for_runs),
    Death(P.RESULTS_FETCHED, Work.collect, everywhere=True),
    Death(P.RESULTS_STORED, Work.collect),
    Death(P.RESULT_FILE_WRITTEN, Work.collect),
    Death(P.ROWS_NOT_COMMITTED, Work.collect),
    Death(P.ROWS_LANDED, Work.collect, everywhere=True),
    Death(P.LANDED_NOT_MARKED, Work.collect),
    Death(P.COLLECTED, Work.collect, everywhere=True),
    Death(P.ANSWERS_JUDGED, Work.publish),
    Death(P.PARTLY_PUBLISHED, Work.publish, everywhere=True),
    Death(P.PUBLISHED_NOT_MARKED, Work.publish),
    Death(P.PUBLISHED, Work.publish),
    Death(P.RESPONSES_RECORDED, Work.record_results),
    Death(P.RESULTS_NOT_MARKED, Work.record_results),
    Death(P.RESULTS_MARKED, Work.record_results),
    Death(P.CLEANED_NOT_WRITTEN, Work.clean_up, environment=CLEANING),
    Death(P.NIGHT_NOT_RECORDED, Work.night, fresh=True),
    Death(P.LATE_END_SEEN, Work.look_again, fresh=True, before=Work.give_up),
    Death(P.LATE_END_WRITTEN, Work.look_again),
    Death(P.CHOSEN_NOT_COMMITTED, Work.publish, before=Work.collect_late),
    Death(P.JOB_ID_WRITTEN, Work.submit, fresh=True, before=Work.publish, everywhere=True),
    Death(P.LOOKED_LAST, Work.submit, (ProviderName.ANTHROPIC,), fresh=True),
    Death(P.CREATE_REFUSED, Work.submit, (ProviderName.ANTHROPIC,), fault=REFUSED, fresh=True),
    Death(P.CREATE_UNKNOWN, Work.submit, (ProviderName.ANTHROPIC,), fault=DROPPED, fresh=True),
)


def deaths_at(provider: ProviderName) -> list[Death]:
    """All deaths for the first of a death's providers, and for the others those that differ."""
    return [
        death
        for death in DEATHS
        if provider in death.providers and (death.everywhere or provider == death.providers[0])
    ]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_job_whose_every_process_dies_comes_to_the_same_end(
    ground: Ground, provider: ProviderName
) -> None:
    name = f"{provider}_notes"
    work = ground.work(name)
    for place, death in enumerate(deaths_at(provider)):
        if place == 0 or death.fresh:
            ground.world.write(name, DOCUMENTS)
            if death.step is not Work.scan:
                work.scan()
        if death.before is not None:
            death.before(work)
        with ground.failing(death.fault):
            reached = ground.dies_at(death.point, name, death.step, death.environment)
        assert reached, f"{death.point} is never reached"
    work.everything()
    assert not any(ground.counts().values()), ground.counts()


def test_every_point_has_its_death() -> None:
    assert {death.point for death in DEATHS} == {*CrashPoint}
