"""Which announcements a batch gives rise to: one at its end, or what a plan of faults says."""

import time
from dataclasses import replace

from extraction_pipeline.batch_server.dialects import Dialect
from extraction_pipeline.batch_server.faults.in_force import FaultsInForce
from extraction_pipeline.batch_server.faults.plan import Announced
from extraction_pipeline.batch_server.records import Batch, BatchState
from extraction_pipeline.batch_server.webhooks.events import Announcement, announce, foreign_id
from extraction_pipeline.batch_server.webhooks.sender import Sender


class Announcements:
    """Tells a sender what happened to batches; without one, nobody is told. For one thread."""

    def __init__(self, sender: Sender | None, faults: FaultsInForce) -> None:
        self._sender = sender
        self._faults = faults
        self._held_back: list[Announcement] = []

    def accepted(self, batch: Batch) -> None:
        """A batch was accepted: the plan may have its end announced before its client knows it."""
        fault = self._fault(batch)
        if self._sender is not None and fault is not None and fault.what == "early":
            self._sender.put(announce(batch, BatchState.COMPLETED, time.time()))

    def ended(self, batch: Batch) -> None:
        """A batch has come to its end."""
        if self._sender is None or batch.asked.dialect is Dialect.ANTHROPIC:
            return
        fault = self._fault(batch)
        said = announce(batch, batch.state, time.time())
        if fault is not None and fault.what == "out_of_order":
            self._held_back.append(said)
            return
        self._sender.put(*_as_planned(batch, said, fault), *self._held_back)
        self._held_back.clear()

    def _fault(self, batch: Batch) -> Announced | None:
        if self._sender is None or batch.asked.dialect is Dialect.ANTHROPIC:
            return None
        return self._faults.announced(batch)


def _as_planned(batch: Batch, said: Announcement, fault: Announced | None) -> list[Announcement]:
    if fault is None:
        return [said]
    match fault.what:
        case "repeated":
            return [said] * fault.times
        case "renumbered":
            return [said.renumbered() for _ in range(fault.times)]
        case "late":
            return [replace(said, age=fault.seconds)]
        case "foreign":
            return [announce(batch, batch.state, time.time(), about=foreign_id(batch)), said]
    return []  # it was early, or is lost
