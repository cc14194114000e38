"""The table of `test_faults_on_demand`: faults, and what must come of them.

What happens to a create call, to results and in the words of a wire format is tried in each; what
one place deals with for all of them, such as the errors of a reading, in one or two.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

DIALECTS = ("openai", "anthropic", "gemini", "infrai")
LINES = ("openai", "anthropic", "gemini")
"""Those whose results are lines, and are said to be somewhere."""
UPLOADING = ("openai", "gemini")
DOCUMENTS = 3
Fault = dict[str, object]


@dataclass(frozen=True)
class Case:
    """Faults, and the provider's and the ledger's counts at the end.

    `jobs` were made, `again` questions answered more than once, `published` documents have a
    record, and `reasons` say why the others have none. `only` are the wire formats that can have
    the fault. With `waits`, nothing comes to an end before the fault is over.
    """

    name: str
    faults: Sequence[Fault]
    only: Sequence[str] = DIALECTS
    jobs: int = 1
    again: int = 0
    published: int = DOCUMENTS
    reasons: Mapping[str, int] = field(default_factory=dict)
    waits: bool = False


def fault(kind: str, **values: object) -> Fault:
    return {"kind": kind, **values}


def once(kind: str, **values: object) -> Fault:
    return fault(kind, first=1, **values)


def errors(call: str, **values: object) -> Iterator[tuple[str, Fault]]:
    """What can happen to any call, once."""
    yield "dropped", once("drop", call=call, **values)
    yield "answered 500", once("answer", call=call, status=500, **values)
    yield "hanging", once("hang", call=call, **values)


def misplaced(what: str, **values: object) -> Fault:
    return fault("results_place", what=what, batch_is="ended", **values)


LOST = {"results_lost": 1}
"""The provider counts an answer and does not give it: to buy it again is for a person."""
CREATING = [
    *(Case(f"create taken and {what}", [one]) for what, one in errors("create", accepted=True)),
    *(Case(f"create {what}", [one]) for what, one in errors("create")),
    Case("create answered by a gateway", [once("answer", call="create", status=502, page=True)]),
    Case("create unavailable", [once("answer", call="create", status=503)], ("gemini",)),
    Case("create overloaded", [once("answer", call="create", status=529)], ("anthropic",)),
    Case(
        "create limited for seconds",
        [once("answer", call="create", status=429, retry_after=1)],
        ("openai", "infrai"),
    ),
    Case(
        "create limited until a date",
        [once("answer", call="create", status=429, retry_after=1, retry_after_as="date")],
        ("anthropic", "gemini"),
    ),
    Case("create limited", [fault("answer", call="create", status=429, first=2)]),
    Case("create without credit", [fault("no_credit", first=2)]),
    Case("create's answer slow", [once("slow", call="create", seconds=2)]),
    Case("create's answer cut", [once("cut", call="create", announced=True)]),
    Case("create's answer cut without a trace", [once("cut", call="create")]),
    Case(
        "create taken and dropped, and lists lag",
        [once("drop", call="create", accepted=True), fault("list_lags", seconds=0.3)],
    ),
    *(Case(f"upload {what}", [one], UPLOADING) for what, one in errors("upload")),
    Case("upload taken and dropped", [once("drop", call="upload", accepted=True)], UPLOADING),
]
READING = [
    Case("status dropped", [once("drop", call="status")]),
    Case("status answered 500", [once("answer", call="status", status=500)], ("anthropic",)),
    Case("status hanging", [once("hang", call="status")], ("gemini",)),
    Case("status slow", [once("slow", call="status", seconds=2)], ("infrai",)),
    Case(
        "status limited",
        [once("answer", call="status", status=429, retry_after=0.1)],
        ("openai",),
    ),
    Case("not found right after create", [fault("answer", call="status", status=404, first=2)]),
    Case(
        "not found right after the end",
        [fault("answer", call="status", status=404, skip=1, first=2, batch_is="ended")],
    ),
    Case("state unknown", [fault("state", word="pondering", first=3)]),
    Case("state empty", [fault("state", word="", first=3)], ("gemini",)),
    # Gemini says `done` beside it.
    Case(
        "state never an end",
        [fault("state", word="pondering")],
        ("openai", "anthropic", "infrai"),
        waits=True,
    ),
    *(
        Case(f"counts {what}", [fault("counts", what=what)])
        for what in ("missing", "null", "zero", "other_type", "too_many")
    ),
    *(Case(f"stuck when {at}", [fault("stuck", at=at)], waits=True) for at in ("validating",)),
    *(
        Case(f"results' place {what} for a while", [misplaced(what, first=2)], LINES)
        for what in ("missing", "null", "empty")
    ),
]
COLLECTING = [
    Case("results dropped", [once("drop", call="results")]),
    Case("results answered 500", [once("answer", call="results", status=500)], ("openai",)),
    Case("results hanging", [once("hang", call="results")], ("infrai",)),
    Case("results not there yet", [fault("answer", call="results", status=404, first=2)]),
    Case("results slow", [once("slow", call="results", seconds=0.4)], ("gemini",)),
    Case("results cut in mid-line", [once("cut")]),
    Case("results cut between lines", [once("cut", at="line_end")]),
    Case("results cut, and seen", [once("cut", at="line_end", announced=True)]),
    Case("a line garbled", [fault("garbled", line=1)], LINES, published=2, reasons=LOST),
    # A file of another size than its record says, and half a JSON text, are never taken.
    Case("results always cut", [fault("cut", at="line_end")], ("openai", "infrai"), waits=True),
    Case(
        "results always cut between lines",
        [fault("cut", at="line_end")],
        ("anthropic", "gemini"),
        published=2,
        reasons=LOST,
    ),
    Case("rows shuffled", [fault("rows", what="shuffled")]),
    Case("a row missing", [fault("rows", what="missing")], published=2, reasons=LOST),
    # OpenAI has no file for no rows, which is read as one that is not there yet.
    Case(
        "all rows missing",
        [fault("rows", what="missing", rows=[0, 1, 2])],
        ("anthropic", "gemini", "infrai"),
        published=0,
        reasons={"results_lost": 3},
    ),
    *(
        Case(f"results' place {what}", [misplaced(what)], UPLOADING, waits=True)
        for what in ("missing", "null", "empty")
    ),
    Case("rows repeated", [fault("rows", what="repeated", rows=[0, 1])]),
    Case("a row of somebody else", [fault("rows", what="foreign")]),
]
ENDING = [
    Case("expired with nothing", [once("ends", how="expired")], jobs=2),
    Case("cancelled with nothing", [once("ends", how="cancelled")], jobs=2),
    Case("cancelled with some answers", [once("ends", how="cancelled", after=2)], jobs=2),
    Case(
        "expired with some answers",
        [once("ends", how="expired", after=2)],
        ("openai", "anthropic", "infrai"),
        jobs=2,
    ),
    # Gemini counts what an expired batch answered, and gives none of it: to ask again is for a
    # person to decide.
    Case(
        "expired, and its answers with it",
        [once("ends", how="expired", after=2)],
        ("gemini",),
        published=0,
        reasons={"results_lost": 3},
    ),
    Case(
        "failed as a whole",
        [once("ends", how="failed", code="server_error")],
        ("openai", "gemini", "infrai"),
        jobs=2,
    ),
]
ANSWERING = [
    *(
        Case(f"an answer is {what}", [once("says", what=what)], jobs=2, again=1)
        for what in ("bad_json", "half_json", "refusal", "empty")
    ),
    Case("all answers refuse", [fault("says", what="refusal")], jobs=2, again=3, published=0),
    Case("an answer is an error", [once("says", what="error")], jobs=2),
    Case("answers lack credit", [fault("says", what="no_credit", first=2)], jobs=2),
    # The same limit cuts the same answer again, so that it is not asked for.
    Case(
        "an answer is truncated",
        [once("says", what="truncated")],
        published=2,
        reasons={"truncated": 1},
    ),
]
CASES = [*CREATING, *READING, *COLLECTING, *ENDING, *ANSWERING]
