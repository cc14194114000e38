"""A process is cut off in each of its steps, others do its work, and then it comes back.

It holds no lock any more, and does not know. What it still does must change nothing: no second
batch, no second record, nothing taken back.
"""

from collections.abc import Sequence

import pytest

from extraction_pipeline.crash_points import CrashPoint
from extraction_pipeline.providers.registry import ProviderName
from extraction_pipeline_tests.chaos.ground import Ground, Step, Work

P = CrashPoint
DOCUMENTS = 3

OPENAI, ANTHROPIC = ProviderName.OPENAI, ProviderName.ANTHROPIC
"""One that a payload is uploaded to before the create call, and one whose call carries it."""

_REGISTERED = (Work.scan, Work.record_documents)
_SENT = (*_REGISTERED, Work.submit, Work.record_submission)
_ENDED = (*_SENT, Work.poll)
_COLLECTED = (*_ENDED, Work.collect)

COMES_BACK: Sequence[tuple[Sequence[Step], Step, Sequence[CrashPoint]]] = (
    ((), Work.scan, (P.TEXTS_STORED, P.DOCUMENTS_REGISTERED)),
    ((Work.scan,), Work.record_documents, (P.PARTITIONS_ADDED, P.EVENTS_PARTLY_WRITTEN)),
    (
        _REGISTERED,
        Work.submit,
        (
            P.INTENT_COMMITTED,
            P.PAYLOAD_WRITTEN,
            P.UPLOADED,
            P.CREATE_DUE,
            P.LOOKED_LAST,
            P.CREATE_ACCEPTED,
        ),
    ),
    ((*_REGISTERED, Work.submit), Work.record_submission, (P.SUBMISSION_NOT_MARKED,)),
    (_SENT, Work.poll, (P.READING_MADE,)),
    (_ENDED, Work.collect, (P.RESULTS_FETCHED, P.ROWS_LANDED, P.LANDED_NOT_MARKED)),
    (_COLLECTED, Work.publish, (P.ANSWERS_JUDGED, P.PARTLY_PUBLISHED)),
    ((*_COLLECTED, Work.publish), Work.record_results, (P.RESPONSES_RECORDED,)),
)
"""What is done before, the step that is cut off, and where."""

OF_THE_CALL = frozenset({P.CREATE_DUE, P.LOOKED_LAST, P.CREATE_ACCEPTED})
"""Points at which it matters what the create call carries."""


def _cut_off(
    ground: Ground, provider: ProviderName, before: Sequence[Step], step: Step, point: CrashPoint
) -> None:
    name = f"{provider}_notes"
    work = ground.work(name)
    ground.world.write(name, DOCUMENTS)
    for earlier in before:
        earlier(work)
    assert ground.is_cut_off_at(point, name, step, work.everything), f"{point} is never reached"
    assert not any(ground.counts().values()), (point, ground.counts())


@pytest.mark.parametrize(
    ("before", "step", "points"), COMES_BACK, ids=[one[1].__name__ for one in COMES_BACK]
)
def test_a_process_that_comes_back_changes_nothing_that_others_did_meanwhile(
    ground: Ground, before: Sequence[Step], step: Step, points: Sequence[CrashPoint]
) -> None:
    for point in points:
        _cut_off(ground, OPENAI, before, step, point)
        if point in OF_THE_CALL:
            _cut_off(ground, ANTHROPIC, before, step, point)


@pytest.mark.parametrize(
    ("at", "points"),
    [
        (P.CREATE_ACCEPTED, (P.FOUND,)),
        (P.CREATE_DUE, (P.INPUT_DELETED, P.ABSENCE_WRITTEN)),
    ],
    ids=["taken", "never made"],
)
def test_nor_does_one_that_was_looking_for_a_job(
    ground: Ground, at: CrashPoint, points: Sequence[CrashPoint]
) -> None:
    name = f"{OPENAI}_notes"

    def submit_and_die(work: Work) -> None:
        assert ground.dies_at(at, name, Work.submit, {})

    for point in points:
        _cut_off(ground, OPENAI, (*_REGISTERED, submit_and_die), Work.resolve, point)
