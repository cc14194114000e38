"""What goes wrong: each scenario once for the plain script and once for the pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DOCUMENTS = 6


@dataclass(frozen=True)
class Scenario:
    """One kind of trouble. The faults are the batch server's (`batch_server/faults/plan.py`).

    `killed`: the program is killed (-9) once there is a job and a fault holds it at a call.
    `at_once`: two of it are started together. `once_more`: it is started again after its good end,
    with nothing new. `pays_again`: some of its answers are of no use, so asking again is right.
    """

    name: str
    what: str
    faults: tuple[Mapping[str, Any], ...] = ()
    killed: bool = False
    at_once: bool = False
    once_more: bool = False
    pays_again: bool = False


def _create(kind: str, **more: object) -> Mapping[str, Any]:
    return {"kind": kind, "call": "create", "accepted": True, "first": 1, **more}


SCENARIOS = (
    Scenario("quiet", "nothing goes wrong"),
    Scenario(
        "killed",
        "killed (-9) between the provider's acceptance and its answer",
        (_create("hang", seconds=30),),
        killed=True,
    ),
    Scenario(
        "killed_waiting",
        "killed (-9) while it asks how far the job is",
        ({"kind": "hang", "call": "status", "seconds": 30, "first": 1},),
        killed=True,
    ),
    Scenario(
        "killed_taking",
        "killed (-9) while it takes the results",
        ({"kind": "hang", "call": "results", "seconds": 30, "first": 1},),
        killed=True,
    ),
    Scenario("dropped", "the job is accepted and the connection drops", (_create("drop"),)),
    Scenario("error_500", "the job is accepted and answered 500", (_create("answer", status=500),)),
    Scenario(
        "timeout", "the job is accepted and the answer too late", (_create("hang", seconds=8),)
    ),
    Scenario("at_once", "two are started at once", at_once=True),
    Scenario("once_more", "started again the next day, nothing new", once_more=True),
    Scenario(
        "polls_fail",
        "five polls in a row are answered 502",
        ({"kind": "answer", "call": "status", "status": 502, "page": True, "first": 5},),
    ),
    Scenario(
        "expired",
        "the job expires with half of its answers",
        ({"kind": "ends", "how": "expired", "after": DOCUMENTS // 2, "first": 1},),
    ),
    Scenario(
        "cut",
        "the results break off in the middle of a line",
        ({"kind": "cut", "at": "mid_line", "first": 1},),
    ),
    Scenario(
        "half_json",
        "one answer is half a JSON object",
        ({"kind": "says", "what": "half_json", "first": 1},),
        pays_again=True,
    ),
    Scenario(
        "all_errors",
        "every request of the job fails: there is no output file",
        ({"kind": "says", "what": "error", "first": DOCUMENTS},),
        pays_again=True,
    ),
    Scenario(
        "rows",
        "a row of the results comes twice, and in another order",
        (
            {"kind": "rows", "what": "repeated", "first": 1},
            {"kind": "rows", "what": "shuffled", "first": 1},
        ),
    ),
)
