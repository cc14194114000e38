"""The plan that is in force, and what has come of it."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_args

from extraction_pipeline.batch_server.dialects import Dialect
from extraction_pipeline.batch_server.faults.called import Called
from extraction_pipeline.batch_server.faults.plan import (
    Announced,
    CallFault,
    Ends,
    Fault,
    FaultPlan,
    KeyRotated,
    Rows,
    Says,
    Stuck,
)
from extraction_pipeline.batch_server.records import Batch, BatchState
from extraction_pipeline.batch_server.store import Store

_CALL_FAULTS = get_args(CallFault)
_Kind = TypeVar("_Kind", Says, Rows, Stuck, Ends, Announced)


@dataclass
class _Occurrences:
    """How often a fault's subject came by, and how often the fault was applied to it."""

    draw: random.Random
    seen: int = 0
    applied: int = 0


@dataclass
class _Course:
    """A plan with what happened under it. Another plan begins anew."""

    plan: FaultPlan
    since: float = field(default_factory=time.time)
    occurrences: dict[tuple[int, str], _Occurrences] = field(default_factory=dict)
    decided: dict[tuple[int, str], bool] = field(default_factory=dict)
    keys: set[str | None] = field(default_factory=set)


class FaultsInForce:
    """Decides which fault is due. May be asked from any thread.

    What was applied is counted in the store, over all plans; `skip`, `first` and `every` begin with
    each plan, and with each start of the server.
    """

    def __init__(self, store: Store, plan: FaultPlan) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._course = _Course(plan)

    @property
    def plan(self) -> FaultPlan:
        """The plan."""
        return self._course.plan

    def put(self, plan: FaultPlan) -> None:
        """Put another plan in force."""
        with self._lock:
            self._course = _Course(plan)

    @property
    def of_calls(self) -> bool:
        """Whether any fault of calls is planned."""
        return any(isinstance(fault, _CALL_FAULTS) for fault in self._course.plan.faults)

    def of_call(self, called: Called, key: str | None) -> CallFault | None:
        """The fault to apply to a call that carries this key (a digest of it)."""
        course = self._course
        batch: Batch | None = None
        for place, fault in _places(course, _CALL_FAULTS):
            if fault.dialect not in (None, called.dialect):
                continue
            if not fault.is_of(called.name):
                continue
            if fault.needs_batch:
                batch = batch or self._batch_of(called)
                if batch is None or not self._is_about(course, fault, batch):
                    continue
                if fault.batch_is not in (None, "ended" if batch.state.is_end else "open"):
                    continue
            counted_for = batch.id if batch is not None and fault.per_batch else ""
            if isinstance(fault, KeyRotated):
                due = self._is_refused(course, place, fault, key)
            else:
                due = self._is_due(course, place, fault, counted_for)
            if due:
                return fault  # type: ignore[no-any-return]
        return None

    def says(self, batch: Batch) -> Says | None:
        """The fault to apply to the next answer of a batch."""
        course = self._course
        for place, fault in _places(course, (Says,)):
            if self._is_about(course, fault, batch) and self._is_due(course, place, fault, ""):
                return fault  # type: ignore[no-any-return]
        return None

    def rows(self, batch: Batch) -> list[Rows]:
        """The faults to apply to a batch's results."""
        return list(self._decided(batch, Rows))

    def stuck(self, batch: Batch) -> bool:
        """Whether a batch stays in its state."""
        return any(self._decided(batch, Stuck, lambda fault: fault.at is batch.state))

    def ends(self, batch: Batch) -> Ends | None:
        """How a batch ends before its time."""

        def possible(fault: Ends) -> bool:
            if fault.how is not BatchState.FAILED:
                return batch.state is BatchState.IN_PROGRESS
            never = batch.asked.dialect is Dialect.ANTHROPIC
            return batch.state is BatchState.VALIDATING and not never

        return next(self._decided(batch, Ends, possible), None)

    def announced(self, batch: Batch) -> Announced | None:
        """What is wrong with the webhook of a batch."""
        return next(self._decided(batch, Announced), None)

    def _decided(
        self, batch: Batch, kind: type[_Kind], possible: Callable[[_Kind], bool] = lambda _: True
    ) -> Iterator[_Kind]:
        """The faults of a batch, for each of which it is decided once whether it is due."""
        course = self._course
        for place, fault in _places(course, (kind,)):
            if not possible(fault) or not self._is_about(course, fault, batch):
                continue
            known = course.decided.get((place, batch.id))
            if known is None:
                known = self._is_due(course, place, fault, "")
                course.decided[place, batch.id] = known
            if known:
                yield fault

    def _is_about(self, course: _Course, fault: Fault, batch: Batch) -> bool:
        if fault.dialect not in (None, batch.asked.dialect):
            return False
        if fault.job_key is not None and fault.job_key not in batch.asked.job_keys:
            return False
        return fault.job is None or fault.job == self._store.ordinal(batch, course.since)

    def _batch_of(self, called: Called) -> Batch | None:
        if called.batch_id is not None:
            return self._store.find_batch(called.batch_id, called.dialect)
        if called.file_id is not None:
            return self._store.batch_with_results(called.file_id)
        return None

    def _is_due(self, course: _Course, place: int, fault: Fault, counted_for: str) -> bool:
        with self._lock:
            counted = course.occurrences.get((place, counted_for))
            if counted is None:
                counted = _Occurrences(random.Random(f"{fault.seed}/{counted_for}"))
                course.occurrences[place, counted_for] = counted
            counted.seen += 1
            number = counted.seen - fault.skip
            if number <= 0 or number % fault.every:
                return False
            if fault.first is not None and counted.applied >= fault.first:
                return False
            if counted.draw.random() >= fault.probability:
                return False
            counted.applied += 1
        self._store.count_fault(fault.label)
        return True

    def _is_refused(self, course: _Course, place: int, fault: KeyRotated, key: str | None) -> bool:
        with self._lock:
            counted = course.occurrences.setdefault((place, ""), _Occurrences(random.Random(0)))
            counted.seen += 1
            if counted.seen <= fault.skip:
                course.keys.add(key)
                return False
            refused = key in course.keys
        if refused:
            self._store.count_fault(fault.label)
        return refused


def _places(course: _Course, kinds: tuple[type, ...]) -> Iterator[tuple[int, Any]]:
    for place, fault in enumerate(course.plan.faults):
        if isinstance(fault, kinds):
            yield place, fault
